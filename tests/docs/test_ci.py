"""docs/ci.md: its YAML is YAML, its commands parse, its GitHub steps are those of the workflow that `init` writes."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
import yaml

from eval_pipeline.cli.app import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
TEMPLATE = (ROOT / "eval_pipeline/cli/templates/github__workflows__evaluation.yml").read_text(encoding="utf-8")
GITHUB, GITLAB = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
WORKFLOW = yaml.safe_load(TEMPLATE)["jobs"]["evaluate"]["steps"]
PRINTS = """
import sys
sys.argv = ["/usr/bin/eval-pipeline", "--show-completion", "{shell}"]
from eval_pipeline.cli import main
try:
    main()
finally:
    print(sorted({{"dagster", "duckdb", "polars", "openai", "scipy"}} & set(sys.modules)), file=sys.stderr)
"""


def commands(steps):
    return [step["run"] for step in steps if step.get("run", "").startswith("eval-pipeline")]


SHOWN = sorted({
    *commands(GITHUB["steps"]), *commands(WORKFLOW), *re.findall(r"`(eval-pipeline --?[^`]+)`", PAGE),
    *(line for part in ("script", "after_script") for line in GITLAB["evaluation"][part] if line.startswith("eval-pipeline")),
})  # fmt: skip


@pytest.mark.parametrize("command", SHOWN)
def test_every_command_shown_parses(command):
    group = typer.main.get_command(app)
    _, *arguments = shlex.split(command)
    if arguments[0].startswith("--"):
        assert arguments[0] in {option for param in group.params for option in param.opts}
        return
    verb = group.get_command(None, arguments[0])
    verb.make_context(arguments[0], arguments[1:])


def test_the_steps_shown_are_those_of_the_workflow():
    assert commands(GITHUB["steps"]) == commands(WORKFLOW)
    assert [step["uses"] for step in GITHUB["steps"] if "uses" in step] == [
        step["uses"] for step in WORKFLOW if "cache" in step.get("uses", "")
    ]


def test_gitlab_reads_the_junit_file_that_the_gate_writes():
    job = GITLAB["evaluation"]
    assert any(f"--junit {job['artifacts']['reports']['junit']}" in line for line in job["script"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed_without_loading_anything_heavy(shell, clean_environment):
    code = PRINTS.format(shell=shell)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env=clean_environment(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "_EVAL_PIPELINE_COMPLETE" in done.stdout
    assert done.stderr.strip() == "[]"
