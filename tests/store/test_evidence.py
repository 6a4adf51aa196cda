"""Evidence in git: stable lines that come back as they went in, and damage that is named."""

import json
from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.errors import FileUnreadable
from eval_pipeline.store.evidence import (
    BASELINE_COLUMNS,
    accept_judge,
    accepted_judges,
    add_calibrations,
    baseline_path,
    judge_decisions,
    read_baseline,
    read_calibrations,
    write_baseline,
)
from eval_pipeline.tables import CALIBRATIONS, SCORES


def test_a_baseline_comes_back_with_its_nulls_whatever_the_order_it_was_given_in(filled, tmp_path):
    scores = filled.read(SCORES, "e1")
    path = write_baseline(tmp_path, "기준", scores)
    first = path.read_bytes()
    assert read_baseline(tmp_path, "기준").equals(scores.select(BASELINE_COLUMNS).sort("metric", "item_id"))
    write_baseline(tmp_path, "기준", scores.reverse())
    assert path.read_bytes() == first
    assert len(first.splitlines()) == scores.height
    assert read_baseline(tmp_path, "another") is None


@given(st.text(st.characters(codec="utf-8"), max_size=300))
def test_no_label_leaves_the_folder(tmp_path_factory, label):
    folder = tmp_path_factory.getbasetemp()
    assert baseline_path(folder, label).resolve().parent == (folder / "baselines").resolve()


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4))
def test_decisions_are_only_added_and_come_back_whole(tmp_path_factory, messages):
    folder = tmp_path_factory.mktemp("judges")
    before = b""
    for number, message in enumerate(messages):
        accept_judge(folder, {"judge_key": f"k{number}", "message": message})
        after = (folder / "judges.jsonl").read_bytes()
        assert after.startswith(before)
        before = after
    assert [row["message"] for row in judge_decisions(folder)] == messages
    assert accepted_judges(folder) == {f"k{number}" for number in range(len(messages))}


def test_hangul_is_written_as_it_is(tmp_path):
    accept_judge(tmp_path, {"judge_key": "k", "message": "더 정확함"})
    assert "더 정확함" in (tmp_path / "judges.jsonl").read_text(encoding="utf-8")


def test_calibrations_come_back_in_order_of_time_each_once(filled, tmp_path):
    rows = filled.read(CALIBRATIONS).sort("calibrated_at")
    assert read_calibrations(tmp_path).equals(CALIBRATIONS.frame())
    add_calibrations(tmp_path, rows.tail(3))
    path = add_calibrations(tmp_path, rows.reverse())
    assert read_calibrations(tmp_path).equals(rows)
    assert len(path.read_text(encoding="utf-8").splitlines()) == rows.height


def test_a_judge_calibrated_again_on_the_same_labels_changes_nothing_in_git(filled, tmp_path):
    rows = filled.read(CALIBRATIONS)
    before = add_calibrations(tmp_path, rows).read_bytes()
    later = rows.with_columns(pl.col("calibrated_at") + timedelta(days=1), evaluation_id=pl.lit("another night"))
    assert add_calibrations(tmp_path, later).read_bytes() == before
    others = later.with_columns(labels_sha256=pl.lit("more labels"))
    assert len(add_calibrations(tmp_path, others).read_bytes()) > len(before)


@pytest.mark.parametrize("damage", ["<<<<<<< HEAD", "[1]", '{"judge_key": ', "\udcff"])
def test_a_damaged_line_is_named(tmp_path, damage):
    good = json.dumps({"judge_key": "k"})
    (tmp_path / "judges.jsonl").write_bytes(f"{good}\n{damage}\n".encode(errors="surrogateescape"))
    with pytest.raises(FileUnreadable, match=r"judges\.jsonl"):
        judge_decisions(tmp_path)


def test_a_baseline_of_wrong_types_is_named(tmp_path):
    path = write_baseline(tmp_path, "b", SCORES.frame())
    path.write_text(json.dumps({"evaluation_id": "e", "value": {"a": 1}}))
    with pytest.raises(FileUnreadable):
        read_baseline(tmp_path, "b")
    assert isinstance(read_baseline(tmp_path, "none"), pl.DataFrame | None)
