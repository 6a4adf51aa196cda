"""A run killed with `kill -9` in any stage goes on as the same evaluation, pays nothing twice, and readers see whole files."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

pytestmark = pytest.mark.daemon
KEY = "sk-recognisable-0123456789"
IN_FLIGHT = 8
LIMITED = ["--limit", "40"]
"""Enough questions in every stage, and quick."""
SCRIPT = Path(__file__).with_name("killed_run.py")
STAGES = ["golden_items", "responses", "claims", "verdicts", "scores", "summaries", "calibrations", "gate_decisions", "results", "report"]  # fmt: skip
ASKING = ["claims", "verdicts", "calibrations"]
MOMENTS = [
    *((stage, moment) for stage in STAGES for moment in ("entry", "midway")),
    *((stage, "asking") for stage in ASKING),
    ("report", "end"),
]
ALWAYS = {("verdicts", "asking"), ("results", "midway")}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory, _loopback, run_cli):
    """A project with one finished, published evaluation of another system, by the loopback judge; its id."""
    folder = tmp_path_factory.mktemp("evaluated")
    assert run_cli("init", folder, cwd=folder).returncode == 0
    path = folder / "evaluation.yaml"
    judge = f"""embedded:
    provider: openai
    model: judge-2024-07-18
    base_url: {_loopback.base_url}
    api_key_env: JUDGE_KEY
    max_in_flight: {IN_FLIGHT}"""
    path.write_text(path.read_text("utf-8").replace("embedded: {provider: embedded}", judge), encoding="utf-8")
    # Labels are judged in the evaluations under test.
    labels = folder / "datasets" / "helpdesk" / "labels"
    labels.rename(labels.with_name("labels-later"))
    done = run_cli("run", "--system", "borealis", *LIMITED, "--json", cwd=folder, JUDGE_KEY=KEY)
    assert done.returncode == 0, done.stderr
    labels.with_name("labels-later").rename(labels)
    return folder, json.loads(done.stdout)["evaluation_id"]


def published(project):
    """Evaluations in the published database, each with how many scores it has there."""
    with duckdb.connect(str(project / "warehouse" / "results.duckdb"), read_only=True) as connection:
        query = "select evaluation_id, count(*) from evaluations join scores using (evaluation_id) group by all"
        return dict(connection.sql(query).fetchall())


def calls(project, evaluation_id):
    with duckdb.connect(str(project / "warehouse" / "results.duckdb"), read_only=True) as connection:
        query = "select call_count from evaluations where evaluation_id = ?"
        return connection.execute(query, [evaluation_id]).fetchone()[0]


@pytest.mark.parametrize(
    ("stage", "moment"),
    [pytest.param(*one, id="-".join(one), marks=[] if one in ALWAYS else [pytest.mark.slow]) for one in MOMENTS],
)
def test_a_run_killed_here_goes_on_as_the_same_evaluation(stage, moment, evaluated, loopback, run_cli, clean_environment, tmp_path):  # fmt: skip
    source, first = evaluated
    project = shutil.copytree(source, tmp_path / "project")
    before = published(project)
    killed = subprocess.run(
        [sys.executable, str(SCRIPT), stage, moment, *LIMITED], cwd=project, env=clean_environment(JUDGE_KEY=KEY),
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr[-2000:]
    (open_run,) = json.loads(run_cli("status", "--json", cwd=project).stdout)
    assert (open_run["status"], open_run["resume"]) == ("FAILURE", "eval-pipeline run --resume")
    between = published(project)
    assert between.pop(first) == before[first]

    resumed = run_cli("run", "--resume", *LIMITED, "--json", cwd=project, JUDGE_KEY=KEY)
    assert resumed.returncode == 0, resumed.stderr
    evaluation_id = json.loads(resumed.stdout)["evaluation_id"]
    assert evaluation_id.endswith(open_run["run_id"][:8])
    after = published(project)
    assert sorted(after) == sorted([first, evaluation_id])
    assert all(after[name] == count for name, count in between.items())
    counters = loopback.counters()
    assert counters["repeated"] <= IN_FLIGHT
    # Every try counts; what was in flight when the process died was answered to nobody.
    assert 0 <= counters["requests"] - calls(project, evaluation_id) <= IN_FLIGHT
