"""docs/operations.md: its commands parse, its settings are read, and every check, sensor and alert has its line."""

import re
import shlex
from pathlib import Path
from typing import get_args

import dagster as dg
import pytest
import typer
import yaml
from dagster._cli import create_dagster_cli
from dagster._daemon.cli import create_dagster_daemon_cli
from dagster_webserver.cli import create_dagster_webserver_cli

from eval_pipeline.cli.app import app
from eval_pipeline.config import AlertConfig, EvaluationConfig
from eval_pipeline.definitions import build_definitions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
PROGRAMS = {
    "eval-pipeline": typer.main.get_command(app),
    "dagster": create_dagster_cli(),
    "dagster-daemon": create_dagster_daemon_cli(),
    "dagster-webserver": create_dagster_webserver_cli(),
}
STARTS = "|".join(sorted(PROGRAMS, key=len, reverse=True))
COMMANDS = sorted({
    *(line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
      if re.match(rf"({STARTS}) ", line)),
    *re.findall(rf"`((?:{STARTS}) [^`]+)`", PAGE),
    *re.findall(rf"(?:^ExecStart=\S+/| evaluation )((?:{STARTS}) .*)$", PAGE, re.MULTILINE),
    *(shlex.join(re.findall(r'"([^"]+)"', line)) for line in re.findall(r"^CMD (.*)$", PAGE, re.MULTILINE)),
})  # fmt: skip
VERBS_ALONE = {"eval-pipeline dataset add"}
"""Named without their arguments."""


def parse(command, words):
    """Lets click read the words as it would, down to the last verb, and runs nothing."""
    verbs = getattr(command, "commands", {})  # typer's own click and Dagster's have no class in common
    if words and words[0] in verbs:
        return parse(verbs[words[0]], words[1:])
    return command.make_context("command", list(words))


def test_there_are_commands():
    assert len(COMMANDS) >= 25


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_shown_parses(line):
    program, *words = shlex.split(line)
    if line in VERBS_ALONE:
        words += ["NAME", "FILE", "--tag", "v1", "--message", "why"]
    assert parse(PROGRAMS[program], words).command.callback is not None


def lines(before):
    """First cells of the table under these words."""
    table = PAGE.split(before, 1)[1].lstrip().split("\n\n", 1)[0]
    return {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_every_check_sensor_and_alert_has_its_line_and_no_other_does(monkeypatch, finished):
    folder = finished[0]
    monkeypatch.setenv("EVAL_PROJECT", str(folder))
    definitions = build_definitions()
    repository = definitions.get_repository_def()
    checks = {key.name for key in repository.asset_graph.asset_check_keys}
    assert lines("Checks, by their name in the UI; each carries its rows and a sentence of advice:") == checks
    sensors = {sensor.name for sensor in repository.sensor_defs}
    assert lines("## What happens by itself") == sensors | {"nightly"}
    alerts = set(get_args(get_args(AlertConfig.model_fields["when"].annotation)[0]))
    assert lines("Alerts, by the word in `alerts.when`:") == alerts


def test_the_configuration_shown_is_valid():
    block = next(found for found in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "schedule:" in found)
    whole = yaml.safe_load((ROOT / "evaluation.yaml").read_text(encoding="utf-8")) | yaml.safe_load(block)
    assert EvaluationConfig.model_validate(whole).schedule.timezone == "Asia/Seoul"


def test_the_variables_named_are_read_somewhere():
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "eval_pipeline").rglob("*.py"))
    assert all(f'"{name}"' in code for name in set(re.findall(r"`(EVAL_[A-Z_]+)`", PAGE)))


@pytest.mark.postgres
def test_the_storage_shown_opens_on_a_real_postgresql(postgres_url, tmp_path, monkeypatch):
    block = next(found for found in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "postgres_db:" in found)
    user, password, host, port, name = re.match(
        r"[^:]+://([^:@]+)(?::([^@]*))?@([^:/]+):(\d+)/(\w+)", postgres_url
    ).groups()
    for variable, value in {"HOST": host, "USERNAME": user, "PASSWORD": password or "x", "DB": name}.items():
        monkeypatch.setenv(f"DAGSTER_PG_{variable}", value)
    settings = yaml.safe_load(block)
    settings["storage"]["postgres"]["postgres_db"]["port"] = int(port)
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.get_runs_count() == 0
