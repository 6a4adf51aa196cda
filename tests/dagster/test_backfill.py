"""`backfill`: what a system or a judge still lacks, shown first, run here where no daemon runs."""

import json

import pytest


@pytest.fixture
def two_judges(folder, loopback):
    """The evaluated project with a second judge at the loopback server."""
    second = {"provider": "openai", "model": "judge-2024-07-18", "base_url": loopback.base_url}
    folder.edit(lambda content: content["judges"].update(second=second))
    return folder


def gate(run_cli, folder):
    found = json.loads(run_cli("gate", "--policy", "nightly", "--json", cwd=folder).stdout)
    return {rule["metric"]: rule["verdict"] for rule in found["rules"] if rule["rule"] == "judge"}


def test_a_dry_run_shows_partitions_and_predicted_calls_and_sends_nothing(two_judges, loopback, run_cli):
    (row,) = json.loads(run_cli("backfill", "--judge", "second", "--dry-run", "--json", cwd=two_judges.root).stdout)
    assert row["configuration"].startswith("aurora@1.4@second@")
    assert row["responses_of"] == two_judges.evaluation_id
    assert 0 < row["calls"] <= row["calls_at_most"]
    (system,) = json.loads(
        run_cli("backfill", "--system", "borealis", "--dry-run", "--json", cwd=two_judges.root).stdout
    )
    assert (system["configuration"].split("@")[:2], system["responses_of"]) == (["borealis", "0.9"], None)
    assert loopback.counters()["requests"] == 0
    assert len(json.loads(run_cli("evaluations", "--json", cwd=two_judges.root).stdout)) == 1


def test_what_cannot_be_filled_is_said_in_both_languages(two_judges, run_cli):
    done = run_cli("backfill", cwd=two_judges.root)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "--system NAME" in done.stderr
    assert "무엇을 채울지" in run_cli("backfill", "--lang", "ko", cwd=two_judges.root).stderr
    assert run_cli("backfill", "--judge", "nobody", cwd=two_judges.root).returncode == 2
    assert (
        "빠진 것이 없습니다" in run_cli("backfill", "--judge", "embedded", "--lang", "ko", cwd=two_judges.root).stdout
    )


def test_a_judge_that_was_backfilled_blocks_every_night_until_it_is_accepted(two_judges, run_cli):
    two_judges.edit(lambda content: content.update(default_judge="second"))
    done = run_cli("backfill", "--judge", "second", "--json", cwd=two_judges.root)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert run_cli("backfill", "--judge", "second", cwd=two_judges.root).stdout == "Nothing is missing.\n"
    rows = json.loads(run_cli("evaluations", "--json", cwd=two_judges.root).stdout)
    assert rows[-1]["evaluation_id"] == row["evaluation_id"]

    # A night by the new judge has an earlier one to pair with, and still may not decide.
    assert run_cli("run", cwd=two_judges.root).returncode == 0
    assert set(gate(run_cli, two_judges.root).values()) == {"BLOCKED"}
    done = run_cli("judges", "accept", "second", "--message", "cheaper", cwd=two_judges.root)
    assert done.returncode == 0, done.stderr
    assert gate(run_cli, two_judges.root) == {}
