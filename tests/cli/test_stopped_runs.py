"""Whole runs against a loopback judge: quotas, budgets, interruptions, keys, and the prediction of a dry run."""

import json
import signal
import subprocess
import sys
import time

import pytest

KEY = "sk-recognisable-0123456789"


def test_a_quota_in_mid_run_exits_5_and_the_rerun_asks_only_what_is_missing(judged, loopback, run_cli):
    loopback.control(quota_after=300)
    stopped = run_cli("run", cwd=judged, JUDGE_KEY=KEY)
    assert stopped.returncode == 5, stopped.stderr
    assert "quota" in stopped.stderr
    assert "same command" in stopped.stderr
    loopback.control()
    done = run_cli("run", "--json", cwd=judged, JUDGE_KEY=KEY)
    assert done.returncode == 0, done.stderr
    asked = sum(row["scored_count"] for row in json.loads(done.stdout)["summaries"] if row["stratum"] == "all")
    assert loopback.counters()["requests"] + 300 <= 2 * asked + 10
    assert json.loads(done.stdout)["is_partial"] is False


def test_max_calls_sends_no_more_marks_the_result_partial_and_exits_5(judged, loopback, run_cli):
    done = run_cli("run", "--max-calls", "100", "--json", cwd=judged, JUDGE_KEY=KEY)
    assert done.returncode == 5, done.stderr
    assert loopback.counters()["requests"] == 100
    found = json.loads(done.stdout)
    assert found["is_partial"] is True
    assert found["gate"]["decision"] == "BLOCKED"
    assert any(row["not_asked_count"] for row in found["summaries"])


def test_a_dry_run_predicts_calls_exactly_those_for_labels_too_and_sends_nothing(judged_with_labels, loopback, run_cli):
    predicted = json.loads(run_cli("run", "--dry-run", "--json", cwd=judged_with_labels, JUDGE_KEY=KEY).stdout)
    assert loopback.counters()["requests"] == 0
    run_cli("run", cwd=judged_with_labels, JUDGE_KEY=KEY)
    counters = loopback.counters()
    assert sum(row["calls"] for row in predicted) == counters["requests"]
    again = json.loads(run_cli("run", "--dry-run", "--json", cwd=judged_with_labels, JUDGE_KEY=KEY).stdout)
    assert sum(row["calls"] for row in again) == 0


def test_a_dry_run_predicts_tokens_within_a_tenth_once_the_ledger_knows_how_the_provider_counts(
    judged, loopback, run_cli
):
    loopback.control(token_ratio=1.7)
    run_cli("run", "--limit", "20", cwd=judged, JUDGE_KEY=KEY)
    before = loopback.counters()["tokens"]
    predicted = json.loads(run_cli("run", "--dry-run", "--json", cwd=judged, JUDGE_KEY=KEY).stdout)
    run_cli("run", cwd=judged, JUDGE_KEY=KEY)
    counted = loopback.counters()["tokens"] - before
    assert sum(row["input_tokens"] for row in predicted) == pytest.approx(counted, rel=0.10)


def test_the_key_is_in_no_file_and_no_output(judged, run_cli):
    done = run_cli("run", cwd=judged, JUDGE_KEY=KEY)
    assert KEY not in done.stdout + done.stderr
    for path in judged.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


def test_a_missing_key_is_named_before_anything_is_asked(judged, loopback, run_cli):
    done = run_cli("run", cwd=judged)
    assert done.returncode == 2
    assert "JUDGE_KEY" in done.stderr
    assert loopback.counters()["requests"] == 0


def test_an_interrupted_run_exits_130_and_what_was_answered_is_kept(judged, loopback, run_cli, clean_environment):
    loopback.control(latency=0.3)
    process = subprocess.Popen(
        [sys.executable, "-m", "eval_pipeline.cli", "run"], cwd=judged, env=clean_environment(JUDGE_KEY=KEY),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while loopback.counters()["answered"] < 64 and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=240)[1]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    kept = loopback.counters()["answered"]
    loopback.control()
    assert run_cli("run", cwd=judged, JUDGE_KEY=KEY).returncode == 0
    assert loopback.counters()["requests"] < 804 - kept + 64
