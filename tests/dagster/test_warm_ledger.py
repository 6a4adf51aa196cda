"""An evaluation's questions asked by several workers; the ordinary run then asks nothing and tells the same."""

import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from eval_pipeline.evaluation.judges import Limits
from eval_pipeline.evaluation.warming import Share
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import CLAIMS, SCORES, SUMMARIES, VERDICTS

IN_FLIGHT = 32
"""Of one judge in one process, by default."""
KEY = "sk-recognisable-0123456789"
TRIES = ["evaluation_id", "is_cached", "call_count", "cost_usd", "latency_seconds", "transport_retry_count"]
"""Columns that tell which try and which process asked, not what was answered."""
TWO_WORKERS = {
    "in_process": {},
    "multiprocess": {"max_concurrent": 2},
    "dask": {"cluster": {"local": {"n_workers": 2, "dashboard_address": None}}},
}


@pytest.fixture
def warm(judged_with_claims, clean_environment):
    """Runs the job as an operator does; its output."""

    def run(executor, shards=3, **variables):
        config = judged_with_claims / "warm.yaml"
        config.write_text(json.dumps({"execution": {"config": TWO_WORKERS[executor]}}), encoding="utf-8")
        home = judged_with_claims / "dagster_home"
        home.mkdir(exist_ok=True)
        command = [str(Path(sys.executable).with_name("dagster")), "job", "execute", "-m", "eval_pipeline.definitions",
                   "-j", "warm_ledger", "-c", str(config)]  # fmt: skip
        environment = clean_environment(
            EVAL_EXECUTOR=executor, EVAL_SHARDS=str(shards), EVAL_PROJECT=str(judged_with_claims), DAGSTER_HOME=str(home),
            JUDGE_KEY=KEY, **variables,
        )  # fmt: skip
        return subprocess.run(
            command, cwd=judged_with_claims, env=environment, capture_output=True, text=True, check=False, timeout=300
        )

    return run


def tables(project, evaluation_id):
    """What an evaluation says, apart from who asked when."""
    warehouse = Warehouse(str(project / "warehouse"))
    found = {}
    for table in (CLAIMS, VERDICTS, SCORES, SUMMARIES):
        frame = warehouse.read(table, evaluation_id)
        frame = frame.drop(name for name in TRIES if name in frame.columns)
        found[table.name] = frame.sort(name for name in table.key if name != "evaluation_id")
    return found


def run_once(project, run_cli, *arguments, **variables):
    done = run_cli("run", "--json", *arguments, cwd=project, JUDGE_KEY=KEY, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["evaluation_id"]


def workers(done):
    """Processes that finished a shard."""
    return set(re.findall(r" - (\d+) - shard_\d+ - STEP_SUCCESS", done.stderr))


def orchestrators(done):
    """The process that started the shards."""
    return set(re.findall(r" - (\d+) - RUN_START", done.stderr))


def paid_calls(project, run_cli, evaluation_id):
    rows = json.loads(run_cli("evaluations", "--json", cwd=project).stdout)
    return next(row["call_count"] for row in rows if row["evaluation_id"] == evaluation_id)


@pytest.mark.parametrize(
    "executor",
    [pytest.param("in_process", marks=pytest.mark.slow), pytest.param("multiprocess", marks=pytest.mark.slow), "dask"],
)
def test_after_the_workers_the_run_asks_nothing_and_its_tables_are_those_of_one_process(executor, warm, judged_with_claims, loopback, run_cli):  # fmt: skip
    done = warm(executor)
    assert done.returncode == 0, done.stderr[-3000:]
    # Dask alone decides which of its two workers takes a shard: an idle one steals, if it has done importing in time.
    assert len(workers(done)) >= (2 if executor == "multiprocess" else 1)
    assert orchestrators(done)
    assert orchestrators(done).isdisjoint(workers(done)) == (executor != "in_process")
    asked = loopback.counters()
    # The same question may be open in two processes at once; nothing else is sent twice.
    assert asked["repeated"] <= IN_FLIGHT
    warmed = run_once(judged_with_claims, run_cli, "--resume")
    assert loopback.counters()["requests"] == asked["requests"]
    assert paid_calls(judged_with_claims, run_cli, warmed) == asked["requests"]
    (judged_with_claims / "warehouse" / "ledger.sqlite").rename(judged_with_claims / "set-aside.sqlite")
    alone = run_once(judged_with_claims, run_cli)
    assert loopback.counters()["requests"] > asked["requests"]
    expected = tables(judged_with_claims, alone)
    for name, frame in tables(judged_with_claims, warmed).items():
        assert frame.equals(expected[name]), name


@pytest.mark.slow
def test_a_new_evaluation_of_the_same_responses_asks_nothing_either_and_paid_nothing(
    warm, judged_with_claims, loopback, run_cli
):
    assert warm("in_process").returncode == 0
    asked = loopback.counters()["requests"]
    fresh = run_once(judged_with_claims, run_cli)
    assert loopback.counters()["requests"] == asked
    assert paid_calls(judged_with_claims, run_cli, fresh) == 0


@pytest.mark.slow
@pytest.mark.postgres
def test_two_processes_share_a_ledger_on_postgresql(warm, judged_with_claims, loopback, run_cli, postgres_url):
    done = warm("multiprocess", EVAL_LEDGER=postgres_url)
    assert done.returncode == 0, done.stderr[-3000:]
    asked = loopback.counters()
    assert asked["repeated"] <= IN_FLIGHT
    warmed = run_once(judged_with_claims, run_cli, "--resume", EVAL_LEDGER=postgres_url)
    assert loopback.counters()["requests"] == asked["requests"]
    assert paid_calls(judged_with_claims, run_cli, warmed) == asked["requests"]
    assert not (judged_with_claims / "warehouse" / "ledger.sqlite").exists()


@pytest.mark.slow
def test_a_share_keeps_to_its_part_of_the_limits_and_the_resumed_run_asks_the_rest(
    warm, judged_with_claims, loopback, run_cli
):
    path = judged_with_claims / "evaluation.yaml"
    path.write_text(path.read_text("utf-8").replace("limits: {}", "limits: {max_calls: 200}"), encoding="utf-8")
    done = warm("multiprocess", shards=2)
    assert done.returncode != 0
    assert "max_calls 100" in done.stderr
    assert loopback.counters()["requests"] == 200
    refused = run_cli("run", "--resume", cwd=judged_with_claims, JUDGE_KEY=KEY)
    assert refused.returncode == 5
    assert loopback.counters()["requests"] == 200
    run_once(judged_with_claims, run_cli, "--resume", "--max-calls", "100000")
    assert loopback.counters()["repeated"] == 0


@pytest.mark.parametrize("count", [1, 2, 7])
def test_every_item_falls_to_exactly_one_share_and_the_shares_spend_no_more_than_the_whole(count):
    items = pl.DataFrame({"item_id": [f"q{n}" for n in range(500)]})
    shares = [Share(index, count) for index in range(count)]
    assert sorted(item for share in shares for item in share.of(items)["item_id"]) == sorted(items["item_id"])
    limits = [share.limits(Limits(100, 5.0)) for share in shares]
    assert sum(one.max_calls for one in limits) == 100
    assert sum(one.max_cost_usd for one in limits) == pytest.approx(5.0)
    assert shares[0].limits(Limits()) == Limits()


def test_an_unknown_executor_is_named_with_those_there_are(project, clean_environment):
    code = "import eval_pipeline.definitions"
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(EVAL_EXECUTOR="spark"), cwd=project,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode != 0
    assert (
        "EVAL_EXECUTOR=spark is not usable. Set it to in_process, multiprocess, dask, celery, kubernetes."
        in done.stderr
    )
