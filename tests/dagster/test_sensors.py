"""Ticks of the sensors and of the nightly schedule, without a daemon."""

from datetime import UTC, datetime

import dagster as dg
import pytest

from eval_pipeline.defs.requests import RELEASE_TAG
from eval_pipeline.defs.schedules import build_schedules
from eval_pipeline.defs.sensors import build_sensors
from eval_pipeline.errors import SettingInvalid


@pytest.fixture
def scheduled(folder, monkeypatch):
    """The project with a schedule, found as a daemon finds it."""
    folder.edit(
        lambda content: content.update(schedule={"cron": "0 2 * * *", "timezone": "Asia/Seoul", "policy": "release"})
    )
    monkeypatch.setenv("EVAL_PROJECT", str(folder.root))
    return folder


@pytest.fixture
def instance():
    with dg.instance_for_test() as opened:
        yield opened


def tick(name, instance, cursor=None):
    sensor = next(sensor for sensor in build_sensors() if sensor.name == name)
    with dg.build_sensor_context(instance=instance, cursor=cursor) as context:
        return sensor(context)


def policy(request):
    return request.run_config["resources"]["run_options"]["config"]["policy"]


def test_a_changed_system_becomes_one_run_on_a_partition_that_exists(scheduled, instance):
    first = tick("system_releases", instance)
    assert not first.run_requests
    assert "First look" in first.skip_reason.skip_message
    scheduled.edit(lambda content: content["systems"]["aurora"].update(release="2.0"))
    found = tick("system_releases", instance, first.cursor)
    (request,) = found.run_requests
    keys = request.partition_key.keys_by_dimension
    assert keys["configuration"].startswith("aurora@2.0@embedded@")
    assert instance.has_dynamic_partition("configuration", keys["configuration"])
    assert instance.has_dynamic_partition("dataset_version", keys["dataset_version"])
    assert (request.tags[RELEASE_TAG], policy(request)) == ("2.0", "release")
    again = tick("system_releases", instance, first.cursor)
    assert [one.run_key for one in again.run_requests] == [request.run_key], (
        "a tick that is repeated asks for the same run"
    )
    assert not tick("system_releases", instance, found.cursor).run_requests


@pytest.mark.parametrize("name", ["dataset_versions", "system_releases", "judge_changes"])
def test_a_broken_file_is_the_reason_of_a_skip_and_the_next_tick_reads_it_anew(name, scheduled, instance):
    whole = scheduled.file.read_text(encoding="utf-8")
    seen = tick(name, instance).cursor
    scheduled.file.write_text(whole.replace("systems:", "sistems:"), encoding="utf-8")
    skipped = tick(name, instance, seen)
    assert isinstance(skipped, dg.SkipReason)
    assert "did you mean 'systems'" in skipped.skip_message
    scheduled.file.write_text(whole, encoding="utf-8")
    assert tick(name, instance, seen).skip_reason.skip_message == "Nothing new."


def test_sensors_run_by_themselves_where_there_is_a_schedule_and_wait_where_there_is_none(scheduled, monkeypatch):
    assert {sensor.default_status for sensor in build_sensors()} == {dg.DefaultSensorStatus.RUNNING}
    scheduled.edit(lambda content: content.pop("schedule"))
    assert {sensor.default_status for sensor in build_sensors()} == {dg.DefaultSensorStatus.STOPPED}
    assert build_schedules() == []


def test_how_often_sensors_look_can_be_set(scheduled, monkeypatch):
    assert {sensor.minimum_interval_seconds for sensor in build_sensors()} == {60}
    monkeypatch.setenv("EVAL_SENSOR_SECONDS", "5")
    assert {sensor.minimum_interval_seconds for sensor in build_sensors()} == {5}
    monkeypatch.setenv("EVAL_SENSOR_SECONDS", "often")
    with pytest.raises(SettingInvalid, match="EVAL_SENSOR_SECONDS=often"):
        build_sensors()


def test_the_night_is_of_what_the_file_says_at_its_tick_with_the_policy_of_the_schedule(scheduled, instance):
    (nightly,) = build_schedules()
    assert (nightly.cron_schedule, nightly.execution_timezone) == ("0 2 * * *", "Asia/Seoul")
    assert nightly.default_status == dg.DefaultScheduleStatus.RUNNING

    def night(day):
        when = datetime(2026, 6, day, 17, 0, tzinfo=UTC)  # 02:00 in Seoul
        context = dg.build_schedule_context(instance=instance, scheduled_execution_time=when)
        return nightly(context)

    first = night(10)
    assert policy(first) == "release"
    assert first.run_key == night(10).run_key
    scheduled.edit(lambda content: content.update(default_system="borealis"))
    scheduled.edit(lambda content: content["schedule"].update(policy="nightly"))
    second = night(11)
    assert second.run_key != first.run_key
    assert second.partition_key.keys_by_dimension["configuration"].startswith("borealis@0.9@embedded@")
    assert policy(second) == "nightly"
    scheduled.file.write_text("version: [", encoding="utf-8")
    assert "not YAML" in night(12).skip_message
