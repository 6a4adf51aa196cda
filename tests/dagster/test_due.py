"""What is due since the last look: a new dataset version, system release or judge, each once."""

import json

import pytest

from eval_pipeline.errors import BackfillNeedsTarget
from eval_pipeline.evaluation.due import (
    backfill,
    changed,
    changed_judge,
    changed_systems,
    new_dataset_versions,
    nightly,
)

LOOKS = [new_dataset_versions, changed_systems, changed_judge]


def other_judge(content):
    content["judges"]["second"] = {
        "provider": "openai",
        "model": "judge-2024-07-18",
        "base_url": "http://127.0.0.1:9/v1",
    }
    content["default_judge"] = "second"


@pytest.mark.parametrize(
    ("before", "now", "names"),
    [
        (None, {"a": "1"}, []),
        ({}, {"a": "1"}, ["a"]),
        ({"a": "1"}, {"a": "1"}, []),
        ({"a": "1"}, {"a": "2", "b": "1"}, ["a", "b"]),
        ({"a": "1", "gone": "1"}, {"a": "1"}, []),
    ],
)
def test_what_is_new_or_differs_counts_as_changed_and_nothing_on_the_first_look(before, now, names):
    assert changed(before, now) == names


@pytest.mark.parametrize("look", LOOKS)
def test_the_first_look_takes_note_and_the_next_finds_nothing(look, folder):
    first = look(folder.load(), None)
    assert first.due == ()
    assert "First look" in first.remarks[0]
    again = look(folder.load(), first.seen)
    assert (again.due, again.remarks, again.seen) == ((), (), first.seen)


def test_a_new_tag_is_evaluated_with_the_systems_its_dataset_is_used_with(folder, run_cli):
    before = new_dataset_versions(folder.load(), None).seen
    folder.add_dataset_version("v2", run_cli)
    found = new_dataset_versions(folder.load(), before)
    (due,) = found.due
    assert due.of.dataset_key.startswith("helpdesk@v2@")
    assert due.of.configuration_key.startswith("aurora@1.4@embedded@")
    assert due.responses_of is None
    assert new_dataset_versions(folder.load(), found.seen).due == ()


def test_a_pinned_tag_is_not_left_for_a_newer_one(folder, run_cli):
    folder.edit(lambda content: content["datasets"]["helpdesk"].update(tag="v1"))
    before = new_dataset_versions(folder.load(), None).seen
    folder.add_dataset_version("v2", run_cli)
    assert new_dataset_versions(folder.load(), before).due == ()
    folder.edit(lambda content: content["datasets"]["helpdesk"].update(tag="v2"))
    assert len(new_dataset_versions(folder.load(), before).due) == 1


def test_a_release_is_read_once_a_look_and_a_new_one_is_due_once(folder, release_url):
    folder.edit(
        lambda content: content["systems"]["aurora"].update(release={"url": release_url.url, "path": "$.git_sha"})
    )
    before = changed_systems(folder.load(), None).seen
    assert release_url.read_count == 1
    release_url.release = "r2"
    found = changed_systems(folder.load(), before)
    assert release_url.read_count == 2
    (due,) = found.due
    assert (due.of.system, due.of.release) == ("aurora", "r2")
    assert changed_systems(folder.load(), found.seen).due == ()


def test_a_release_that_cannot_be_read_is_a_remark_and_is_looked_at_again(folder, release_url):
    folder.edit(
        lambda content: content["systems"]["aurora"].update(release={"url": release_url.url, "path": "$.git_sha"})
    )
    before = changed_systems(folder.load(), None).seen
    release_url.release = None
    broken = changed_systems(folder.load(), before)
    assert (broken.due, broken.seen) == ((), before)
    assert "HTTP 503" in broken.remarks[0]
    release_url.release = "r3"
    assert [due.of.release for due in changed_systems(folder.load(), broken.seen).due] == ["r3"]


def test_a_changed_definition_of_a_system_is_due_and_its_concurrency_is_not(folder):
    before = changed_systems(folder.load(), None).seen
    folder.edit(lambda content: content["systems"]["borealis"].update(max_in_flight=3))
    assert changed_systems(folder.load(), before).due == ()
    folder.edit(lambda content: content["systems"]["borealis"].update(models=["exaone-4.0-32b"]))
    assert [due.of.system for due in changed_systems(folder.load(), before).due] == ["borealis"]


def test_a_changed_judge_judges_the_stored_responses_of_the_window_beside_the_old_one(folder):
    before = changed_judge(folder.load(), None).seen
    folder.edit(other_judge)
    found = changed_judge(folder.load(), before)
    (due,) = found.due
    assert (due.of.judge, due.of.release) == ("second", "1.4")
    assert due.responses_of == folder.evaluation_id
    assert changed_judge(folder.load(), found.seen).due == ()


def test_a_new_metric_is_no_change_of_judge(folder):
    before = changed_judge(folder.load(), None).seen
    folder.edit(lambda content: content["metrics"].update(context_recall={}))
    found = changed_judge(folder.load(), before)
    assert found.due == ()
    assert "context_recall" in json.loads(found.seen)


def test_nights_with_equal_responses_are_judged_once_and_by_the_same_judge_never(folder, run_cli):
    assert run_cli("run", cwd=folder.root).returncode == 0
    assert backfill(folder.load(), None, "embedded") == []
    folder.edit(other_judge)
    assert len(backfill(folder.load(), None, "second")) == 1
    assert backfill(folder.load(), "borealis", "second") == [], "it was never evaluated"


def test_tonight_is_the_default_dataset_system_and_judge_as_they_are_now(folder):
    due = nightly(folder.load(), "a night")
    assert (due.run_key, due.of.system, due.of.judge, due.of.dataset) == ("a night", "aurora", "embedded", "helpdesk")


def test_a_backfill_of_nothing_in_particular_is_refused(folder):
    with pytest.raises(BackfillNeedsTarget, match="aurora, borealis, embedded"):
        backfill(folder.load(), None, None)
