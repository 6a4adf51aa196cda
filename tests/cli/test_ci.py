"""What a CI system gets of a gate: a valid JUnit file and an exit code that agree, and what GitHub shows."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from lxml import etree

from eval_pipeline.report.github import COMMENT_LIMIT, comment
from eval_pipeline.report.markdown import MARKER

SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).parents[1] / "report" / "junit.xsd"))


def junit_of(folder, path, run_cli, *arguments):
    done = run_cli("gate", "--junit", path, *arguments, cwd=folder)
    top = etree.parse(path).getroot()
    SCHEMA.assertValid(top)
    return done.returncode, int(top.get("failures")) + int(top.get("errors"))


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_file_of_a_blocked_gate_is_valid_and_red(finished, run_cli, tmp_path, language):
    code, red = junit_of(finished[0], tmp_path / "gate.xml", run_cli, "--lang", language)
    assert (code, red > 0) == (3, True)


def test_a_partial_evaluation_is_never_green(project, run_cli, tmp_path):
    assert run_cli("run", "--limit", 2, cwd=project).returncode == 0
    rows = run_cli("query", "SELECT evaluation_id, is_partial FROM evaluations", "--format", "csv", cwd=project).stdout
    evaluation_id, partial = rows.split()[-1].split(",")
    assert partial.lower() == "true"
    code, red = junit_of(project, tmp_path / "gate.xml", run_cli, "--evaluation", evaluation_id)
    assert code in {1, 3}
    assert red > 0


def test_github_gets_a_summary_annotations_and_a_comment_of_one_decision(finished, run_cli, tmp_path):
    summary, body = tmp_path / "summary.md", tmp_path / "comment.md"
    done = run_cli("gate", "--github", "--comment", body, cwd=finished[0], GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 3, done.stderr
    commands, printed = done.stdout.split("::stop-commands::", 1)
    assert commands.startswith("::error title=BLOCKED")
    assert all(re.match(r"::(error|warning) title=[^:,]*::", line) for line in commands.splitlines())
    token, *table, end = printed.rstrip("\n").split("\n")
    assert len(token) == 32 and end == f"::{token}::", "what is printed for people is no command"
    assert table[0].startswith("BLOCKED")
    assert body.read_text(encoding="utf-8").startswith(MARKER)
    assert body.read_text(encoding="utf-8").strip() == summary.read_text(encoding="utf-8").strip()


def test_a_comment_alone_needs_no_github_and_leaves_json_json(finished, run_cli, tmp_path):
    done = run_cli("gate", "--comment", tmp_path / "comment.md", "--json", cwd=finished[0])
    assert json.loads(done.stdout)["exit_code"] == 3
    assert (tmp_path / "comment.md").read_text(encoding="utf-8").startswith(MARKER)


def test_a_comment_too_long_for_github_keeps_whole_lines_and_its_marker():
    long = f"{MARKER}\n" + "| a row |\n" * 20_000
    found = comment(long)
    assert len(found) < 65_536
    assert found.startswith(MARKER)
    assert found.removesuffix("\n…\n").endswith("| a row |\n")
    assert len(long) > COMMENT_LIMIT
    assert comment("short\n") == "short\n"


@pytest.mark.parametrize(("earlier", "asked"), [(True, "PATCH"), (False, "POST")])
def test_the_workflow_of_init_posts_one_comment_and_then_brings_it_up_to_date(project, tmp_path, earlier, asked):
    workflow = yaml.safe_load((project / ".github" / "workflows" / "evaluation.yml").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    (step,) = [one for one in workflow["jobs"]["evaluate"]["steps"] if "comment on" in one.get("name", "").lower()]
    assert MARKER in step["run"]
    tools = tmp_path / "tools"
    tools.mkdir()
    program = tools / "gh"
    answer = "echo 77; echo 78" if earlier else ":"
    program.write_text(f'#!/bin/sh\necho "$*" >> "{tools}/asked"\ncase "$*" in *--paginate*) {answer};; esac\n')
    program.chmod(0o755)
    subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], check=True, cwd=tmp_path, env={
        "PATH": f"{tools}:/usr/bin:/bin", "GITHUB_REPOSITORY": "we/shop", "NUMBER": "5"})  # fmt: skip
    search, write = (tools / "asked").read_text().splitlines()
    assert search.startswith("api repos/we/shop/issues/5/comments --paginate")
    place = "repos/we/shop/issues/comments/77" if earlier else "repos/we/shop/issues/5/comments"
    assert write == f"api --method {asked} {place} -F body=@comment.md --silent"
