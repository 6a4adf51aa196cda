"""Alerts: what is told, in which words, once; a receiver that is down loses none. The receiver is on loopback."""

import json
import shutil
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import dagster as dg
import pytest

from eval_pipeline.config import AlertConfig
from eval_pipeline.defs.alerts import PROCESS_TAG, alerts
from eval_pipeline.evaluation.alerts import GRACE, Ended, is_missed, of_run
from eval_pipeline.evaluation.webhook import post
from eval_pipeline.vocabulary import Language

NIGHT = datetime(2026, 6, 11, 2, 0, tzinfo=UTC)
WHEN = AlertConfig(webhook_env="HOOK")
ROW = {"dataset": "helpdesk", "dataset_tag": "v4", "system": "rag", "system_release": "9f31c2e", "judge": "mini",
       "evaluation_id": "20260611T020000-1a2b3c4d", "partial_reason": None}  # fmt: skip
BLOCKED = {
    "verdict": "BLOCKED",
    "evidence": "canary: the judge changed",
    "evidence_ko": "카나리아: 심판이 바뀜",
    "item_ids": ["q017"],
}


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.tries += 1
        if self.server.status == 200:
            self.server.received.append(json.loads(body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.received, server.status, server.tries = [], 200, 0
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}/hooks/s3cret"
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("since", "started", "late", "missed"),
    [
        (NIGHT - timedelta(days=1), [], GRACE, True),
        (NIGHT - timedelta(days=1), [NIGHT - timedelta(days=1)], GRACE, True),
        (NIGHT - timedelta(days=1), [NIGHT + timedelta(seconds=8)], GRACE, False),
        (NIGHT - timedelta(days=1), [], GRACE / 2, False),
        (NIGHT + timedelta(minutes=1), [], GRACE, False),
        (None, [], GRACE, False),
    ],
    ids=["nothing started", "only the night before", "it started", "still time", "installed later", "never evaluated"],
)
def test_a_night_is_missed_when_nothing_started_in_time_and_somebody_waited_for_it(since, started, late, missed):
    assert is_missed(NIGHT, since, started, NIGHT + late) is missed


def test_an_alert_says_what_why_and_what_to_do_in_both_languages():
    english = of_run(Ended("r", row=ROW, decision=BLOCKED, failed_checks=["canary_drift"]), WHEN, Language.EN)
    assert "BLOCKED helpdesk@v4 · rag 9f31c2e · mini" in english
    assert "the judge changed" in english
    assert "Failed checks: canary_drift" in english
    assert "eval-pipeline show q017 · eval-pipeline report --evaluation 20260611T020000-1a2b3c4d" in english
    korean = of_run(Ended("r", row=ROW, decision=BLOCKED), WHEN, Language.KO)
    assert "심판이 바뀜" in korean
    stopped = of_run(Ended("r", row=ROW | {"partial_reason": "stopped: quota"}, decision=BLOCKED), WHEN, Language.EN)
    assert "eval-pipeline run --resume" in stopped
    assert "&lt;!channel&gt;" in of_run(Ended("r", error="<!channel> down"), WHEN, Language.EN)


def test_only_what_was_asked_for_is_told():
    passed = Ended("r", row=ROW, decision=BLOCKED | {"verdict": "PASS"})
    assert of_run(passed, WHEN, Language.EN) is None
    only_fail = AlertConfig(webhook_env="HOOK", when=("FAIL",))
    assert of_run(Ended("r", row=ROW, decision=BLOCKED, failed_checks=["canary_drift"]), only_fail, Language.EN) is None
    assert of_run(Ended("r", error="boom"), only_fail, Language.EN) is None


def test_a_busy_receiver_is_tried_again_and_a_refusal_names_no_url(receiver):
    receiver.status = 503
    assert post(receiver.url, "x", sleep=lambda _: None) == "HTTP 503"
    assert receiver.tries == 3
    receiver.status = 404
    assert post(receiver.url, "x", sleep=lambda _: None) == "HTTP 404"
    assert receiver.tries == 4
    assert "s3cret" not in post("ftp://s3cret", "x")
    assert "s3cret" not in post("http://127.0.0.1:1/s3cret", "x", sleep=lambda _: None)


@pytest.fixture
def watched(finished, tmp_path, monkeypatch, receiver):
    """A finished project with alerts, a Dagster instance that is not its own, and what the sensor returns and remembers."""
    folder = tmp_path / "watched"
    shutil.copytree(finished[0], folder, ignore=shutil.ignore_patterns("dagster_home"))
    with (folder / "evaluation.yaml").open("a", encoding="utf-8") as file:
        file.write("alerts: {webhook_env: TEST_HOOK, when: [FAIL, BLOCKED, error, missed]}\n")
    monkeypatch.setenv("EVAL_PROJECT", str(folder))
    monkeypatch.setenv("TEST_HOOK", receiver.url)
    with dg.instance_for_test() as instance:
        yield instance, finished[1]["evaluation_id"]


def run(instance, evaluation_id=None, **tags):
    """A run of a job named as the real one, that fails or leaves an evaluation."""

    @dg.op
    def step(context):
        if evaluation_id is None:
            raise RuntimeError("the provider is down")
        context.log_event(dg.AssetMaterialization("gate_decisions", metadata={"evaluation_id": evaluation_id}))

    @dg.job(name="evaluate")
    def job():
        step()

    job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)


def look(instance, cursor):
    context = dg.build_sensor_context(instance=instance, cursor=cursor)
    said = alerts(context).skip_message
    return said, context.cursor


def test_failed_runs_and_bad_decisions_are_told_once_and_older_ones_or_those_of_a_terminal_not_at_all(
    watched, receiver
):
    instance, evaluation_id = watched
    run(instance)
    said, cursor = look(instance, None)
    assert said == "watching from now on"
    run(instance)
    run(instance, evaluation_id)
    run(instance, **{PROCESS_TAG: "host:1"})
    said, cursor = look(instance, cursor)
    assert said == "2 sent"
    failed, blocked = (one["text"] for one in receiver.received)
    assert "the provider is down" in failed
    assert "run --resume" in failed
    assert blocked.startswith("BLOCKED helpdesk@")
    assert evaluation_id in blocked
    assert look(instance, cursor)[0] == "0 sent"
    assert len(receiver.received) == 2


def test_a_receiver_that_is_down_kills_nothing_and_loses_nothing(watched, receiver, capfd):
    instance, _ = watched
    _, cursor = look(instance, None)
    run(instance)
    receiver.status = 404
    said, cursor = look(instance, cursor)
    assert said == "0 sent"
    receiver.status = 200
    said, cursor = look(instance, cursor)
    assert said == "1 sent"
    assert "s3cret" not in cursor
    printed = "".join(capfd.readouterr())
    assert "could not be sent: HTTP 404" in printed
    assert "s3cret" not in printed


def test_a_night_that_did_not_start_is_told_once_and_status_shows_it(watched, receiver, tmp_path, run_cli):
    instance, _ = watched
    folder = tmp_path / "watched"
    now = datetime.now(UTC)
    due_at = (now - timedelta(hours=2)).replace(minute=0, second=0, microsecond=0)
    with (folder / "evaluation.yaml").open("a", encoding="utf-8") as file:
        file.write(f'schedule: {{cron: "0 {due_at.hour} * * *", timezone: UTC}}\n')
    before = json.dumps({"since": (now - timedelta(days=3)).isoformat(), "told": []})
    assert look(instance, before)[0] == "0 sent"  # the finished evaluation started after that time
    _move(folder, due_at - timedelta(days=1))
    said, cursor = look(instance, before)
    assert said == "1 sent"
    assert due_at.isoformat(timespec="minutes") in receiver.received[0]["text"]
    assert look(instance, cursor)[0] == "0 sent"
    rows = json.loads(run_cli("status", "--json", cwd=folder).stdout)
    assert [(row["status"], row["resume"]) for row in rows] == [("MISSED", "eval-pipeline run --gate nightly")]


def _move(folder, started_at):
    """Lets the one evaluation have started at another time."""
    import polars as pl

    part = next((folder / "warehouse" / "tables" / "evaluations").rglob("*.parquet"))
    frame = pl.read_parquet(part)
    zone = frame.schema["started_at"]
    frame.with_columns(pl.lit(started_at).cast(zone).alias("started_at")).write_parquet(part)


def test_without_a_webhook_nothing_is_sent_and_the_reason_is_said(watched, monkeypatch):
    instance, _ = watched
    monkeypatch.delenv("TEST_HOOK")
    assert look(instance, None)[0] == "environment variable TEST_HOOK is not set"
