"""What the command line says of a run holds: predictions, limits, what changed, what is stuck, and whose fault it is."""

import json

import pytest


def test_a_dry_run_after_a_run_predicts_no_calls_for_claims_either(project, run_cli):
    assert run_cli("run", cwd=project).returncode == 0
    rows = json.loads(run_cli("run", "--dry-run", "--json", cwd=project).stdout)
    assert {row["metric"]: row["calls_at_most"] for row in rows if row["calls_at_most"]} == {}
    assert json.loads(run_cli("run", "--json", cwd=project).stdout)["is_partial"] is False
    last = json.loads(run_cli("evaluations", "--json", cwd=project).stdout)[-1]
    assert last["call_count"] == 0


def test_a_dry_run_before_anything_was_asked_gives_claims_a_range_and_writes_no_ledger(project, run_cli):
    rows = {row["metric"]: row for row in json.loads(run_cli("run", "--dry-run", "--json", cwd=project).stdout)}
    assert rows["faithfulness"]["calls"] < rows["faithfulness"]["calls_at_most"]
    assert rows["answer_accuracy"]["calls"] == rows["answer_accuracy"]["calls_at_most"]
    assert not (project / "warehouse" / "ledger.sqlite").exists()


def test_a_limit_of_calls_holds_for_the_embedded_judge_too(project, run_cli):
    done = run_cli("run", "--max-calls", "10", "--json", cwd=project)
    assert done.returncode == 5, done.stderr
    assert "max_calls 10" in done.stderr
    assert json.loads(done.stdout)["is_partial"] is True
    assert json.loads(run_cli("evaluations", "--json", cwd=project).stdout)[0]["call_count"] == 10


def test_other_answers_under_the_same_release_are_not_called_unchanged(project, run_cli):
    run_cli("run", cwd=project)
    path = project / "datasets" / "helpdesk" / "responses" / "aurora.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows[:7]:
        row["response"] = "I do not know."
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    shown = run_cli("run", cwd=project).stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("What changed")]
    assert "same release 1.4, 7 items answered otherwise" in line
    assert "system" not in line.split("unchanged")[0].rsplit(";", 1)[-1]


def test_an_edited_dataset_is_not_called_unchanged(project, run_cli):
    run_cli("run", cwd=project)
    path = project / "datasets" / "helpdesk" / "items.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("locked out", "locked oot", 1), encoding="utf-8")
    shown = run_cli("run", cwd=project).stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("What changed")]
    assert "dataset edited under its tag v1" in line
    assert "dataset" not in line.split("unchanged")[0].rsplit(";", 1)[-1]


def test_a_recorded_system_without_any_of_the_items_is_refused_not_scored_zero(project, run_cli):
    path = project / "datasets" / "helpdesk" / "responses" / "aurora.jsonl"
    path.write_text('{"item_id": "another", "response": "x"}\n', encoding="utf-8")
    done = run_cli("run", cwd=project)
    assert done.returncode == 2
    for word in ("aurora", "135 items", "--system"):
        assert word in done.stderr


@pytest.mark.parametrize(
    "verb",
    [
        ["query", "select 1 as a", "--format", "csv", "--out"],
        ["gate", "--junit"],
        ["export", "--as", "parquet", "--out"],
        ["dataset", "export", "helpdesk", "--out"],
    ],
)
@pytest.mark.parametrize("target", ["no/such/folder/x.csv", "."])
def test_a_place_that_cannot_be_written_is_the_user_s_to_fix_not_a_defect(finished, run_cli, verb, target):
    folder, _ = finished
    done = run_cli(*verb, target, cwd=folder)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert "defect" not in done.stderr
    assert not (folder / "no").exists()


def test_every_call_is_in_the_printed_count_those_for_the_labels_too(project, run_cli):
    predicted = json.loads(run_cli("run", "--dry-run", "--json", cwd=project).stdout)
    run_cli("run", cwd=project)
    (row,) = json.loads(run_cli("evaluations", "--json", cwd=project).stdout)
    (kept,) = json.loads(run_cli("ledger", "stats", "--json", cwd=project).stdout)
    assert row["call_count"] == kept["reply_count"]
    sql = "select metric, count(*) as n from verdicts where not is_cached group by metric"
    made = {
        one["metric"]: one["n"] for one in json.loads(run_cli("query", sql, "--format", "json", cwd=project).stdout)
    }
    exact = {one["metric"]: one["calls"] for one in predicted if one["calls"] == one["calls_at_most"]}
    assert {"claims", "answer_accuracy", "labels: answer_accuracy", "labels: context_relevance"} <= set(exact)
    assert exact == {name: made.get(name, 0) for name in exact}
    assert all(made.get(one["metric"], 0) <= one["calls_at_most"] for one in predicted)


def test_a_limit_reached_while_labels_are_judged_stops_the_run_and_keeps_no_calibration(project, run_cli):
    assert run_cli("run", cwd=project, EVAL_WAREHOUSE=project / "whole").returncode == 0
    sql = "select count(*) as n from verdicts where not starts_with(metric, 'labels: ') and not is_cached"
    (own,) = json.loads(run_cli("query", sql, "--format", "json", cwd=project, EVAL_WAREHOUSE=project / "whole").stdout)
    done = run_cli("run", "--max-calls", own["n"] + 25, "--json", cwd=project)
    assert done.returncode == 5, done.stderr
    found = json.loads(done.stdout)
    assert (found["is_partial"], found["gate"]["decision"]) == (True, "BLOCKED")
    assert all(row["not_asked_count"] == 0 for row in found["summaries"]), "the items themselves were all judged"
    (row,) = json.loads(run_cli("evaluations", "--json", cwd=project).stdout)
    assert row["call_count"] == own["n"] + 25
    assert json.loads(run_cli("query", "select * from calibrations", "--format", "json", cwd=project).stdout) == []
