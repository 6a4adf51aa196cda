"""A deployment as operators run it: nights by schedule, changes noticed, a judge accepted, restarts and crashes survived."""

import json
from collections import Counter

import duckdb
import pytest
from deployment import Deployment

pytestmark = [pytest.mark.daemon, pytest.mark.slow]
SENSORS = {"dataset_versions", "system_releases", "judge_changes"}
"""Those that keep what they saw."""
ITEM_COUNT = 12


@pytest.fixture
def deployed(folder_of_few, release_url, loopback, clean_environment, run_cli):
    """A running daemon and webserver on a small project whose system tells its release by URL."""

    def set_up(content):
        content["schedule"] = {"cron": "* * * * *", "timezone": "Asia/Seoul"}
        content["systems"]["aurora"]["release"] = {"url": release_url.url, "path": "$.git_sha"}
        content["judges"]["second"] = {
            "provider": "openai", "model": "judge-2024-07-18", "base_url": loopback.base_url, "api_key_env": "JUDGE_KEY",
        }  # fmt: skip

    folder_of_few.edit(set_up)
    environment = clean_environment(
        DAGSTER_HOME=str(folder_of_few.root / "dagster_home"), EVAL_PROJECT=str(folder_of_few.root),
        EVAL_SENSOR_SECONDS="5", JUDGE_KEY="sk-recognisable-0123456789",
    )  # fmt: skip
    # Webserver and daemon that open an empty DAGSTER_HOME at the same moment can break it: it is made first.
    assert run_cli("status", cwd=folder_of_few.root, DAGSTER_HOME=environment["DAGSTER_HOME"]).returncode == 0
    running = Deployment(folder_of_few.root, environment)
    try:
        running.start_webserver()
        running.start_daemon()
        yield running
    finally:
        running.close()


def published(project, sql):
    with duckdb.connect(str(project / "warehouse" / "results.duckdb"), read_only=True) as connection:
        return connection.sql(sql).fetchall()


def looked(deployed):
    """Sensors that looked at least once, with a cursor of their own."""
    query = """{ sensorsOrError(repositorySelector: {repositoryLocationName: "eval_pipeline", repositoryName: "__repository__"}) {
        ... on Sensors { results { name sensorState { status typeSpecificData { ... on SensorData { lastCursor } } } } } } }"""
    rows = deployed.ask(query)["sensorsOrError"].get("results", [])
    return {
        row["name"] for row in rows
        if row["name"] in SENSORS and row["sensorState"]["status"] == "RUNNING" and row["sensorState"]["typeSpecificData"]["lastCursor"]
    }  # fmt: skip


def gate(run_cli, project):
    rules = json.loads(run_cli("gate", "--policy", "nightly", "--json", cwd=project).stdout)["rules"]
    about_judge = [rule for rule in rules if rule["rule"] == "judge" or rule["rule"].startswith("regression")]
    return {rule["verdict"] for rule in about_judge}


def run_keys(deployed):
    return Counter((run["tags"].get("dagster/sensor_name", "nightly"), run["tags"]["dagster/run_key"])
                   for run in deployed.runs() if "dagster/run_key" in run["tags"])  # fmt: skip


def test_nights_run_by_themselves_and_changes_are_noticed_each_once(deployed, folder_of_few, release_url, run_cli):
    project = folder_of_few.root
    deployed.wait(lambda: looked(deployed) == SENSORS, "first look of every sensor")
    deployed.wait(lambda: deployed.succeeded(schedule_name="nightly"), "run of the schedule")
    assert not [run for run in deployed.runs() if "dagster/sensor_name" in run["tags"]], "the first look starts nothing"
    (first,) = published(project, "select system_release, item_count from evaluations order by started_at limit 1")
    assert first == ("r1", ITEM_COUNT)

    release_url.release = "r2"
    (noticed,) = deployed.wait(lambda: deployed.succeeded(sensor_name="system_releases"), "run of the new release")
    assert noticed["tags"]["dagster/partition/configuration"].startswith("aurora@r2@embedded@")
    folder_of_few.edit(lambda content: content["systems"]["borealis"].update(models=["exaone-4.0-32b"]))
    deployed.wait(lambda: len(deployed.succeeded(sensor_name="system_releases")) == 2, "run of the changed model")
    found = published(project, "select distinct system, system_release from evaluations order by all")
    assert found == [("aurora", "r1"), ("aurora", "r2"), ("borealis", "0.9")]

    folder_of_few.edit(lambda content: content.update(default_judge="second"))
    baseline = deployed.wait(lambda: deployed.succeeded(sensor_name="judge_changes"), "parallel baseline")
    beside = "select count(*) from evaluations where judge = 'second'"
    assert published(project, beside)[0][0] >= len(baseline) >= 3, "aurora r1, aurora r2 and borealis"
    assert len({run["tags"]["dagster/run_key"] for run in baseline}) == len(baseline)
    assert "BLOCKED" in gate(run_cli, project)

    known = run_keys(deployed)
    deployed.stop("dagster-daemon")
    deployed.start_daemon()
    nights = len(deployed.runs(schedule_name="nightly"))
    deployed.wait(
        lambda: len(deployed.succeeded(schedule_name="nightly")) >= nights + 2, "two nights after the restart"
    )
    assert "BLOCKED" in gate(run_cli, project), "nights by the new judge do not make it the judge of record"
    after = run_keys(deployed)
    assert set(after.values()) == {1}
    assert {key for key in after if key[0] in SENSORS} == {key for key in known if key[0] in SENSORS}
    done = run_cli("judges", "accept", "second", "--message", "cheaper", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "BLOCKED" not in gate(run_cli, project)


def test_a_run_that_is_killed_is_retried_from_its_failure_as_the_same_evaluation(deployed, folder_of_few, loopback):
    project = folder_of_few.root
    loopback.control(latency=5.0)
    folder_of_few.edit(lambda content: content.update(default_judge="second"))
    run = deployed.wait(lambda: next(iter(deployed.runs(schedule_name="nightly")), None), "run of the schedule")
    evaluation_id = deployed.wait(lambda: asked(project, run["runId"][:8]), "questions of the run")
    deployed.kill_run(run["runId"])
    loopback.control()
    (retry,) = deployed.wait(lambda: deployed.succeeded(parent_run_id=run["runId"]), "retry")
    assert retry["tags"]["dagster/is_resume_retry"] == "true"
    ids = {row[0] for row in published(project, "select evaluation_id from evaluations")}
    assert evaluation_id in ids
    assert not [name for name in ids if name.endswith(retry["runId"][:8])]


def test_a_backfill_is_put_into_the_queue_where_a_daemon_runs(deployed, folder_of_few, run_cli):
    project, home = folder_of_few.root, deployed.environment["DAGSTER_HOME"]
    deployed.wait(lambda: looked(deployed) == SENSORS, "first look of every sensor")
    done = run_cli("backfill", "--system", "borealis", "--json", cwd=project, DAGSTER_HOME=home)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["evaluation_id"] is None

    partition = {"partition/configuration": row["configuration"]}
    (run,) = deployed.wait(lambda: deployed.succeeded(**partition), "run of the backfill")
    assert run["runId"] == row["queued_run_id"]
    assert published(project, "select count(*) from evaluations where system = 'borealis'") == [(1,)]


def asked(project, run):
    """The evaluation of a run that has come to its judge."""
    folders = (project / "warehouse" / "tables" / "claims").glob(f"*-{run}")
    return next((folder.name.split("=", 1)[1] for folder in folders), None)
