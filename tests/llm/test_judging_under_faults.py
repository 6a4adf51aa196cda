"""The judging stage over a real server that fails: every question accounted for, nothing lost, nothing paid twice."""

import asyncio
import json
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import polars as pl
import pytest

from eval_pipeline.asking import Asker
from eval_pipeline.llm.ledger import Ledger
from eval_pipeline.llm.ledgered_chat import LedgeredChat
from eval_pipeline.llm.limits import Budget
from eval_pipeline.llm.openai_chat import OpenAIChat
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.declaration import Sample
from eval_pipeline.stages import judging
from eval_pipeline.verdict_rows import Origin

MODEL = "judge-2024-07-18"
METRICS = ("answer_accuracy", "context_relevance", "response_groundedness")
KEY = "sk-recognisable-0123456789"


def samples(count):
    return [
        Sample(item_id=f"i{n}", user_input=f"What is setting {n}?", response=f"It is {n}.", reference=f"{n}", retrieved_contexts=(f"Setting {n} is {n}.",))
        for n in range(count)
    ]  # fmt: skip


def judge(base_url, ledger_url, count, *, budget=None, attempts=3, **options):
    """Verdicts of the three dual metrics, and what stopped the run."""
    metrics = {name: declare(name) for name in METRICS}
    origins = {name: Origin("e", name, "j", MODEL, "k") for name in METRICS}
    options = {"api_key": KEY, "max_in_flight": 64, "timeout_seconds": 2.0, **options}

    async def run():
        async with Ledger(ledger_url) as ledger, OpenAIChat(MODEL, base_url=base_url, budget=budget, **options) as chat:
            asker = Asker(LedgeredChat(chat, ledger), attempts=attempts)
            frames = [
                frame async for frame in judging.judge(samples(count), metrics, dict.fromkeys(METRICS, asker), origins)
            ]
            return pl.concat(frames), asker.stopped

    return asyncio.run(run())


def grades(verdicts):
    return verdicts.select("metric", "item_id", "template_id", "grade").sort("metric", "item_id", "template_id")


@pytest.fixture
def ledger_url(tmp_path):
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


def test_six_thousand_calls_under_faults_are_all_accounted_for(loopback, ledger_url):
    loopback.control(
        faults={"429": 0.05, "500": 0.03, "hang": 0.01, "reset": 0.01, "chatty": 0.025, "off_scale": 0.025},
        retry_after=0.1,
    )
    started = time.monotonic()
    verdicts, stopped = judge(loopback.base_url, ledger_url, 1000, timeout_seconds=1.0, transport_retries=5)
    took = time.monotonic() - started
    assert stopped is None
    assert verdicts.height == 6000
    assert verdicts.select("metric", "item_id", "template_id").is_unique().all()
    assert (verdicts["outcome"] == "graded").mean() > 0.99
    assert verdicts["attempt_count"].max() <= 3
    assert verdicts["transport_retry_count"].max() <= 5 * 3
    # 60 hangs of 1 s side by side in 64 places cost seconds; one after the other they would cost a minute.
    assert took < 40, took
    counters = loopback.counters()
    assert counters["by_fault"]["hang"] > 20, "the faults did happen"


def test_what_the_faults_did_to_the_grades_is_nothing(loopback, ledger_url, tmp_path):
    clean, _ = judge(loopback.base_url, ledger_url, 100)
    loopback.control(faults={"429": 0.1, "500": 0.1, "reset": 0.05}, retry_after=0.01)
    faulty, _ = judge(loopback.base_url, f"sqlite:///{tmp_path / 'other.sqlite'}", 100, transport_retries=8)
    assert grades(clean).equals(grades(faulty))


def test_a_quota_in_mid_run_stops_it_and_the_rerun_asks_only_what_is_missing(loopback, ledger_url):
    loopback.control(quota_after=200)
    verdicts, stopped = judge(loopback.base_url, ledger_url, 100)
    assert stopped is not None
    assert stopped.exit_code == 5
    assert "quota" in str(stopped)
    asked = (verdicts["outcome"] == "graded").sum()
    assert asked == 200
    assert (verdicts["outcome"] == "not_asked").sum() == 600 - asked
    loopback.control()
    again, stopped = judge(loopback.base_url, ledger_url, 100)
    assert stopped is None
    assert loopback.counters()["requests"] == 600 - 200
    assert (again["outcome"] == "graded").all()


def test_a_budget_sends_no_more_than_it_allows(loopback, ledger_url):
    verdicts, stopped = judge(loopback.base_url, ledger_url, 50, budget=Budget(max_calls=100))
    assert stopped.exit_code == 5
    assert loopback.counters()["requests"] == 100
    assert (verdicts["outcome"] == "graded").sum() == 100


def test_a_rerun_makes_no_calls_and_one_changed_item_its_own_only(loopback, ledger_url):
    judge(loopback.base_url, ledger_url, 50)
    loopback.control()
    again, _ = judge(loopback.base_url, ledger_url, 50)
    assert loopback.counters()["requests"] == 0
    assert again["is_cached"].all()
    judge(loopback.base_url, ledger_url, 51)
    assert loopback.counters()["requests"] == 6


@pytest.mark.parametrize("options", [{"api_key": "sk-other"}, {"timeout_seconds": 9.0}, {"max_in_flight": 3}])
def test_what_cannot_move_a_reply_hits_the_ledger(loopback, ledger_url, options):
    judge(loopback.base_url, ledger_url, 5)
    loopback.control()
    judge(loopback.base_url, ledger_url, 5, **options)
    assert loopback.counters()["requests"] == 0


def test_other_parameters_miss_the_ledger(loopback, ledger_url):
    judge(loopback.base_url, ledger_url, 5)
    loopback.control()
    judge(loopback.base_url, ledger_url, 5, parameters={"temperature": 0.7})
    assert loopback.counters()["requests"] == 30


def test_invalid_attempts_are_continued_not_read_again(loopback, ledger_url):
    loopback.control(faults={"chatty": 1.0})
    first, _ = judge(loopback.base_url, ledger_url, 3, attempts=2)
    assert set(first["outcome"]) == {"unparseable"}
    loopback.control()
    again, _ = judge(loopback.base_url, ledger_url, 3, attempts=3)
    assert loopback.counters()["requests"] == 18
    assert set(again["outcome"]) == {"graded"}
    assert set(again["attempt_count"]) == {3}
    assert set(again["call_count"]) == {1}  # two of the three attempts came from the ledger


def test_the_key_is_in_no_file(loopback, ledger_url, tmp_path):
    verdicts, _ = judge(loopback.base_url, ledger_url, 5)
    verdicts.write_parquet(tmp_path / "verdicts.parquet", compression="uncompressed")
    assert loopback.counters()["authorizations"] == [f"Bearer {KEY}"]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


RUN = """
    import importlib.util, sys
    spec = importlib.util.spec_from_file_location("faults", sys.argv[3])
    faults = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(faults)
    faults.judge(sys.argv[1], sys.argv[2], int(sys.argv[4]))
"""


def start(loopback, ledger_url, count):
    command = [
        sys.executable,
        "-c",
        textwrap.dedent(RUN),
        loopback.base_url,
        ledger_url,
        str(Path(__file__)),
        str(count),
    ]
    return subprocess.Popen(command)


@pytest.mark.parametrize("moment", [pytest.param(n, marks=[] if n < 3 else pytest.mark.slow) for n in range(10)])
def test_killed_in_the_middle_only_what_was_in_flight_is_sent_twice(loopback, ledger_url, tmp_path, moment):
    count = 334  # 2,004 calls
    loopback.control(latency=0.02)
    process = start(loopback, ledger_url, count)
    wanted = random.Random(moment).randrange(50, 1900)
    while loopback.counters()["requests"] < wanted and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    verdicts, _ = judge(loopback.base_url, ledger_url, count)
    counters = loopback.counters()
    assert counters["distinct"] == count * 6
    assert counters["most_repeated"] <= 2
    # A place is held until the reply is durable, so these 64 are all that a kill can lose.
    assert counters["repeated"] <= 64, json.dumps(
        {name: counters[name] for name in ("requests", "distinct", "repeated")}
    )
    whole, _ = judge(loopback.base_url, f"sqlite:///{tmp_path / 'undisturbed.sqlite'}", count)
    assert grades(verdicts).equals(grades(whole))


def test_two_processes_on_one_ledger_agree_and_lose_nothing(loopback, ledger_url):
    loopback.control(latency=0.01)
    both = [start(loopback, ledger_url, 60) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    loopback.control()
    verdicts, _ = judge(loopback.base_url, ledger_url, 60)
    assert loopback.counters()["requests"] == 0
    assert (verdicts["outcome"] == "graded").all()
