"""A run that is killed or stopped goes on with the same evaluation, and the instance is not stuck."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.daemon
ITEMS_WITH_RESPONSES = 135
COUNTING = """
def answer(item):
    with open("asked.txt", "a") as file:
        file.write("x ")
    return {"response": item["user_input"], "retrieved_contexts": [item["user_input"]]}
"""


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


def test_a_release_is_read_once_for_a_whole_evaluation_and_recorded(folder, release_url, run_cli):
    folder.edit(
        lambda content: content["systems"]["aurora"].update(release={"url": release_url.url, "path": "$.git_sha"})
    )
    done = run_cli("run", "--json", cwd=folder.root)
    assert done.returncode == 0, done.stderr
    assert release_url.read_count == 1
    rows = json.loads(run_cli("evaluations", "--json", cwd=folder.root).stdout)
    assert rows[-1]["system_release"] == "r1"


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


@pytest.mark.slow
def test_responses_that_an_earlier_try_stored_are_not_fetched_again_even_without_its_journal(
    project, run_cli, clean_environment
):
    (project / "answering.py").write_text(COUNTING, encoding="utf-8")
    path = project / "evaluation.yaml"
    live = 'aurora:\n    source: python\n    function: answering:answer\n    release: "1.4"\n'
    text = path.read_text(encoding="utf-8")
    start, end = text.index("  aurora:"), text.index("  borealis:")
    path.write_text(f"{text[:start]}  {live}{text[end:]}", encoding="utf-8")
    killed = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_run.py")), "claims", "entry"], cwd=project,
        env=clean_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    asked = (project / "asked.txt").read_text(encoding="utf-8")
    for journal in (project / "warehouse" / "journal").iterdir():
        journal.unlink()
    done = run_cli("run", "--resume", cwd=project)
    assert done.returncode == 0, done.stderr
    assert len(asked.split()) > 100
    assert (project / "asked.txt").read_text(encoding="utf-8") == asked
