"""A run that is killed or stopped goes on with the same evaluation, and the instance is not stuck."""

import json
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.daemon
ITEMS_WITH_RESPONSES = 135


def test_a_killed_run_leaves_nothing_stuck_and_resumes_with_its_evaluation_id(project, run_cli, clean_environment):
    process = subprocess.Popen(
        [sys.executable, "-m", "eval_pipeline.cli", "run"], cwd=project, env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )  # fmt: skip
    verdicts = project / "warehouse" / "tables" / "claims"
    while not verdicts.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    half = next(verdicts.iterdir()).name.split("=", 1)[1]
    resumed = run_cli("run", "--resume", "--json", cwd=project)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["evaluation_id"] == half
    rows = json.loads(run_cli("evaluations", "--json", cwd=project).stdout)
    assert [row["evaluation_id"] for row in rows] == [half]
    assert "STARTED" not in run_cli("status", "--json", cwd=project).stdout


def test_an_evaluation_without_its_row_is_in_no_view(project, run_cli):
    run_cli("run", cwd=project)
    done = json.loads(run_cli("evaluations", "--json", cwd=project).stdout)
    row = next((project / "warehouse" / "tables" / "evaluations").iterdir())
    for part in row.iterdir():
        part.unlink()
    row.rmdir()
    again = json.loads(run_cli("run", "--json", cwd=project).stdout)
    shown = json.loads(
        run_cli("query", "select distinct evaluation_id from metric_trend", "--format", "json", cwd=project).stdout
    )
    assert [one["evaluation_id"] for one in shown] == [again["evaluation_id"]] != [done[0]["evaluation_id"]]
