"""A worse system and an edited dataset, at the command line."""

import json
from pathlib import Path

import dagster as dg
import pytest


@pytest.fixture
def baseline(project, run_cli):
    """A project with one evaluation, pinned."""
    assert run_cli("run", cwd=project).returncode == 0
    assert run_cli("gate", "pin", cwd=project).returncode == 0
    return project


def rules(done):
    return json.loads(done.stdout)["gate"]["rules"]


def test_a_worse_release_is_a_proven_regression_shown_though_the_judge_blocks(baseline, run_cli):
    path = baseline / "datasets" / "helpdesk" / "responses" / "aurora.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows[::5]:
        row["response"] = "I do not know."
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    config = baseline / "evaluation.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace('release: "1.4"', 'release: "1.5"'), encoding="utf-8")
    done = run_cli("run", "--gate", "pr", "--json", cwd=baseline)
    assert done.returncode == 3, done.stderr
    proven = [
        rule for rule in rules(done) if rule["rule"].startswith("regression") and rule["metric"] == "answer_accuracy"
    ]
    assert {rule["verdict"] for rule in proven} == {"FAIL"}
    assert "en-faq-01" in proven[0]["item_ids"]


def test_an_unchanged_release_is_no_regression(baseline, run_cli):
    found = rules(run_cli("run", "--json", cwd=baseline))
    assert {rule["verdict"] for rule in found if rule["rule"].startswith("regression")} <= {"PASS", "PASS_UNPROVEN"}


def test_a_one_character_edit_after_tagging_blocks_and_names_dataset_tag_item_and_field(baseline, run_cli):
    path = baseline / "datasets" / "helpdesk" / "items.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("locked out", "locked oot", 1), encoding="utf-8")
    done = run_cli("run", "--gate", "pr", "--json", cwd=baseline)
    assert done.returncode == 3, done.stderr
    (rotten,) = [rule for rule in rules(done) if rule["rule"] == "dataset"]
    assert rotten["verdict"] == "BLOCKED"
    for word in ("helpdesk@v1", "en-faq-01", "user_input"):
        assert word in rotten["evidence"]
    report = Path(json.loads(done.stdout)["report"]).read_text(encoding="utf-8")
    rot = report[report.index('id="rot"') : report.index('id="since"')]
    assert "en-faq-01" in rot and "without the rotten rows" in rot and ">134<" in rot
    checked = run_cli("dataset", "check", "helpdesk", cwd=baseline)
    assert checked.returncode == 1
    assert "helpdesk@v1: en-faq-01 (user_input)" in checked.stdout
    shown = check_in_dagster(baseline, "golden_items", "golden_items_suite")
    assert (shown.passed, shown.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "en-faq-01" in shown.metadata["rows"].value and "content_is_as_tagged" in shown.metadata[
        "rows"
    ].value.replace("&#95;", "_")
    assert "new tag" in shown.metadata["advice"].value


def check_in_dagster(project, asset, name):
    """What the Dagster instance of a project holds of the newest execution of an asset check."""
    with dg.DagsterInstance.from_config(str(project / "dagster_home")) as instance:
        key = dg.AssetCheckKey(dg.AssetKey(asset), name)
        [record] = instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
        return record.event.dagster_event.event_specific_data
