"""What a CI system gets of a gate: a valid JUnit file and an exit code that agree, also where little was evaluated."""

from pathlib import Path

import pytest
from lxml import etree

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
