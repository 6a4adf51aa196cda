"""A run whose judge is asked by batch: submitted, collected by another process, gone on with, equal to a live one."""

import json

import dagster as dg
import pytest

from eval_pipeline.defs.resources import ProjectResource
from eval_pipeline.evaluation.due import ended_batches

COLUMNS = "item_id, metric, status, value, lower, upper"


@pytest.fixture
def batched(judged_with_labels):
    """The judge is asked by batch; faithfulness is asked too, so that questions follow from answers."""
    path = judged_with_labels / "evaluation.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "    api_key_env: JUDGE_KEY", "    api_key_env: JUDGE_KEY\n    batch: true"
    )
    path.write_text(text.replace("metrics:\n", "metrics:\n  faithfulness: {}\n", 1), encoding="utf-8")
    return judged_with_labels


def scores(run_cli, folder):
    found = run_cli("query", f"select {COLUMNS} from scores order by item_id, metric", "--json", cwd=folder)
    return json.loads(found.stdout)


def finish(run_cli, folder, key):
    """Polls and goes on until nothing waits; how often it went on."""
    for rounds in range(1, 8):
        polled = run_cli("batch", "poll", cwd=folder, JUDGE_KEY=key)
        assert polled.returncode == 0, polled.stderr
        done = run_cli("run", "--resume", cwd=folder, JUDGE_KEY=key)
        if done.returncode == 0:
            return rounds
        assert done.returncode == 5, done.stderr
    raise AssertionError("never finished")


@pytest.mark.slow
def test_a_batched_run_waits_and_then_equals_the_live_one(batched, loopback, run_cli, judge_key):
    loopback.control(batch={"polls": 3})
    waiting = run_cli("run", cwd=batched, JUDGE_KEY=judge_key)
    assert waiting.returncode == 5, waiting.stderr
    assert "batch poll" in waiting.stderr
    assert loopback.counters()["peak_open"] == 0, "nothing is asked live"
    known = json.loads(run_cli("batch", "status", "--json", cwd=batched).stdout)
    assert known
    assert all(row["is_open"] for row in known)
    assert finish(run_cli, batched, judge_key) >= 2, "claims first, then what is asked about them"
    assert loopback.counters()["peak_open"] == 0
    assert not any(row["is_open"] for row in json.loads(run_cli("batch", "status", "--json", cwd=batched).stdout))
    by_batch = scores(run_cli, batched)
    assert len(json.loads(run_cli("evaluations", "--json", cwd=batched).stdout)) == 1

    path = batched / "evaluation.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("batch: true", "batch: false"), encoding="utf-8")
    (batched / "warehouse").rename(batched / "by_batch")
    assert run_cli("run", cwd=batched, JUDGE_KEY=judge_key).returncode == 0
    assert by_batch == scores(run_cli, batched)


@pytest.mark.slow
def test_failed_lines_are_asked_in_the_next_batch(batched, loopback, run_cli, judge_key):
    loopback.control(batch={"failed_lines": 7})
    run_cli("run", "--metric", "answer_accuracy", cwd=batched, JUDGE_KEY=judge_key)
    polled = json.loads(run_cli("batch", "poll", "--json", cwd=batched, JUDGE_KEY=judge_key).stdout)
    assert sum(polled[0]["failed"].values()) >= 7
    assert polled[0]["open_count"] == 0
    loopback.control(batch={})
    assert run_cli("run", "--resume", "--metric", "answer_accuracy", cwd=batched, JUDGE_KEY=judge_key).returncode == 5
    run_cli("batch", "poll", cwd=batched, JUDGE_KEY=judge_key)
    done = run_cli("run", "--resume", "--metric", "answer_accuracy", "--json", cwd=batched, JUDGE_KEY=judge_key)
    assert done.returncode == 0, done.stderr
    whole = next(row for row in json.loads(done.stdout)["summaries"] if row["stratum"] == "all")
    assert (whole["not_asked_count"], whole["invalid_count"]) == (0, 0)


def test_batch_submit_asks_a_live_judge_by_batch_this_once(judged, loopback, run_cli, judge_key):
    done = run_cli("batch", "submit", cwd=judged, JUDGE_KEY=judge_key)
    assert done.returncode == 5, done.stderr
    assert (loopback.counters()["peak_open"], loopback.counters()["batches"]) == (0, 1)
    assert run_cli("batch", "poll", cwd=judged, JUDGE_KEY=judge_key).returncode == 0
    assert run_cli("run", "--resume", cwd=judged, JUDGE_KEY=judge_key).returncode == 0
    assert loopback.counters()["peak_open"] == 0


def test_a_judge_without_an_endpoint_cannot_be_batched(project, run_cli):
    path = project / "evaluation.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("{provider: embedded}", "{provider: embedded, batch: true}"), encoding="utf-8")
    done = run_cli("run", cwd=project)
    assert done.returncode == 2
    assert "batch" in done.stderr


def test_batch_verbs_say_when_there_is_nothing(project, run_cli):
    assert "No batch" in run_cli("batch", "poll", cwd=project).stdout
    assert "배치가 없습니다" in run_cli("batch", "status", "--lang", "ko", cwd=project).stdout


def test_the_sensor_brings_batches_in_and_lets_the_evaluation_go_on(judged, loopback, run_cli, judge_key, monkeypatch):
    from eval_pipeline.definitions import build_definitions
    from eval_pipeline.defs.requests import EVALUATION_TAG
    from eval_pipeline.defs.sensors import build_sensors

    loopback.control(batch={"polls": 3})
    assert run_cli("batch", "submit", cwd=judged, JUDGE_KEY=judge_key).returncode == 5
    (evaluation,) = json.loads(run_cli("evaluations", "--json", cwd=judged).stdout)
    monkeypatch.setenv("EVAL_PROJECT", str(judged))
    monkeypatch.setenv("JUDGE_KEY", judge_key)
    monkeypatch.setenv("DAGSTER_HOME", str(judged / "dagster_home"))
    sensor = next(sensor for sensor in build_sensors() if sensor.name == "batches")
    with dg.DagsterInstance.get() as instance, dg.build_sensor_context(instance=instance) as context:
        first = sensor(context)
        assert not first.run_requests
        assert "still open" in first.skip_reason.skip_message
        found = next(one for one in (sensor(context) for _ in range(5)) if one.run_requests)
        (request,) = found.run_requests
        assert request.tags[EVALUATION_TAG] == evaluation["evaluation_id"]
        assert sensor(context).run_requests[0].run_key == request.run_key, "the same round asks for the same run"
        job = build_definitions().resolve_job_def("evaluate")
        done = job.execute_in_process(
            instance=instance, partition_key=request.partition_key, run_config=request.run_config, tags=request.tags
        )
        assert done.success
        assert not sensor(context).run_requests
    (row,) = json.loads(run_cli("evaluations", "--json", cwd=judged).stdout)
    assert (row["evaluation_id"], row["is_partial"]) == (evaluation["evaluation_id"], False)


@pytest.fixture
def gathered(judged):
    """The judge of the three dual metrics is asked by batch."""
    path = judged / "evaluation.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("api_key_env: JUDGE_KEY", "api_key_env: JUDGE_KEY\n    batch: true"), encoding="utf-8")
    return judged


@pytest.mark.slow
def test_questions_that_no_batch_answers_are_submitted_once_more_and_then_left(
    gathered, loopback, run_cli, judge_key, monkeypatch
):
    monkeypatch.setenv("EVAL_PROJECT", str(gathered))
    monkeypatch.setenv("JUDGE_KEY", judge_key)
    project = ProjectResource().load()
    loopback.control(batch={"failed_lines": 10_000})
    looks = []
    for _ in range(2):
        assert run_cli("run", *(["--resume"] if looks else []), cwd=gathered, JUDGE_KEY=judge_key).returncode == 5
        looks.append(ended_batches(project, None))
    assert len({due.run_key for look in looks for due in look.due}) == 1, "Dagster starts one run a key"
    assert "run --resume" in looks[-1].remarks[0]
    loopback.control(batch={})
    assert run_cli("run", "--resume", cwd=gathered, JUDGE_KEY=judge_key).returncode == 5
    healed = ended_batches(project, None)
    assert healed.due[0].run_key != looks[0].due[0].run_key
    assert not healed.remarks
    assert run_cli("run", "--resume", cwd=gathered, JUDGE_KEY=judge_key).returncode == 0
    assert not ended_batches(project, None).due


def test_an_open_batch_of_a_judge_that_was_taken_out_is_told_and_brought_in_when_it_is_back(
    gathered, loopback, run_cli, judge_key, monkeypatch
):
    loopback.control(batch={"polls": 3})
    assert run_cli("run", cwd=gathered, JUDGE_KEY=judge_key).returncode == 5
    path = gathered / "evaluation.yaml"
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace("judge-2024-07-18", "judge-2026-01-01"), encoding="utf-8")
    polled = run_cli("batch", "poll", cwd=gathered, JUDGE_KEY=judge_key).stdout
    assert "judge-2024-07-18: 1 batches open, of no judge in evaluation.yaml" in polled
    assert "No batch is open" not in polled
    assert "--resume" not in polled
    assert "심판이 evaluation.yaml에 없습니다" in run_cli("batch", "poll", "--lang", "ko", cwd=gathered).stdout
    monkeypatch.setenv("EVAL_PROJECT", str(gathered))
    assert "put it back" in ended_batches(ProjectResource().load(), None).remarks[0]
    path.write_text(before, encoding="utf-8")
    for _ in range(5):
        (row,) = json.loads(run_cli("batch", "poll", "--json", cwd=gathered, JUDGE_KEY=judge_key).stdout)
        if not row["open_count"]:
            break
    assert row["reply_count"] > 0
    assert row["is_configured"]
