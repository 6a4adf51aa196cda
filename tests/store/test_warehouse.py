"""The Parquet tables: names that stay inside, parts that stay as they are, rows that are of their table."""

import os
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eval_pipeline.errors import ExtraMissing, FileUnreadable, NotWritable, SettingInvalid
from eval_pipeline.store.publish import publish
from eval_pipeline.store.query import query
from eval_pipeline.store.warehouse import Warehouse, conform, folder_name
from eval_pipeline.tables import CLAIMS, EVALUATIONS, SCORES

VALUES = st.text(st.characters(codec="utf-8"), max_size=400)


def claims(evaluation_id, *texts):
    return CLAIMS.frame(
        {"evaluation_id": evaluation_id, "item_id": "i", "source": "response", "claim_index": n, "claim": text}
        for n, text in enumerate(texts)
    )


@given(VALUES)
@example("../../etc")
@example("..")
@example("")
@example("a/b\\c\x00*?[x]{y}~%2E")
@example("고객" * 100)
def test_no_value_leaves_its_folder_and_each_is_read_back(tmp_path_factory, value):
    root = tmp_path_factory.mktemp("w")
    made = Warehouse(str(root))
    made.write(CLAIMS, value, claims(value, "가"), part=value)
    assert made.values(CLAIMS) == [value]
    assert made.has_part(CLAIMS, value, value)
    assert made.read(CLAIMS, value).height == made.read(CLAIMS).height == 1
    assert [path.relative_to(root).parts[:2] for path in root.rglob("*.parquet")] == [("tables", "claims")]


@given(VALUES, VALUES)
def test_two_values_never_share_a_folder(one, other):
    assert (folder_name(one) == folder_name(other)) == (one == other)
    assert len(folder_name(one).encode()) <= 220


def test_values_with_a_long_common_beginning_stay_apart(tmp_path):
    made = Warehouse(str(tmp_path))
    long = ["긴" * 200 + end for end in "가나"]
    for value in long:
        made.write(CLAIMS, value, claims(value, value))
    assert made.values(CLAIMS) == sorted(long)
    assert made.read(CLAIMS, long)["claim"].to_list() == long


def test_a_part_stays_as_it_is_unless_replaced_or_dropped(tmp_path):
    made = Warehouse(str(tmp_path))
    made.write(CLAIMS, "e", claims("e", "first"))
    made.write(CLAIMS, "e", claims("e", "second"))
    assert made.read(CLAIMS, "e")["claim"].to_list() == ["first"]
    made.write(CLAIMS, "e", claims("e", "second"), replace=True)
    made.write(CLAIMS, "e", claims("e", "third"), part=1)
    made.write(CLAIMS, "f", claims("f", "other"))
    assert made.scan(CLAIMS, "e").collect()["claim"].to_list() == ["second", "third"]
    made.drop(CLAIMS, "e")
    made.drop(CLAIMS, "never there")
    assert made.values(CLAIMS) == ["f"]
    assert not made.has_part(CLAIMS, "e")


@pytest.mark.parametrize("root", ["[a] *?", "memory://bucket"])
def test_any_folder_name_and_a_bucket_do(root, tmp_path):
    made = Warehouse(root if "://" in root else str(tmp_path / root))
    made.write(CLAIMS, "e", claims("e", "가", "나"))
    assert made.read(CLAIMS)["claim"].to_list() == ["가", "나"]
    assert query(publish(made, tmp_path / "local"), "select count(*) from claims")[0, 0] == 2


def test_rows_that_are_not_of_the_table_and_value_are_refused(tmp_path):
    made, good = Warehouse(str(tmp_path)), claims("e", "x")
    for bad, why in (
        (pl.DataFrame({"x": [1]}), "columns differ"),
        (good.with_columns(claim_index=pl.lit("0")), "claim_index is String"),
        (good.with_columns(claim=pl.lit(None)), "claim has 1 null"),
        (good.with_columns(evaluation_id=pl.lit("f")), "must be 'e'"),
    ):
        with pytest.raises(ValueError, match=why):
            made.write(CLAIMS, "e", bad)
    assert list(tmp_path.rglob("*.parquet")) == []
    assert conform(CLAIMS, good.with_columns(pl.col("claim_index").cast(pl.Int8))).schema == CLAIMS.schema


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=20))
def test_null_stays_null_and_numbers_stay_exact_from_frame_to_sql(tmp_path_factory, values):
    made = Warehouse(str(tmp_path_factory.mktemp("w")))
    row = {"evaluation_id": "e", "metric": "m", "stratum": "s", "status": "scored", "components": "{}", "outcomes": [],
           "content_sha256": "c", "item_sha256": "i"}  # fmt: skip
    made.write(
        SCORES, "e", SCORES.frame(row | {"item_id": f"{n:03}", "value": value} for n, value in enumerate(values))
    )
    assert made.read(SCORES)["value"].to_list() == values


@pytest.mark.parametrize("unknown", [float("nan"), float("inf")])
def test_nan_is_no_value(filled, unknown):
    with pytest.raises(ValueError, match="NaN"):
        filled.write(SCORES, "e1", filled.read(SCORES, "e1").with_columns(value=pl.lit(unknown)), replace=True)


def test_null_is_null_in_sql_too(filled):
    sql = "select count(*) filter (value is null), count(*) filter (isnan(value)) from scores where status = 'invalid'"
    assert query(publish(filled), sql).row(0) == (4, 0)


def test_parts_from_before_a_column_existed_are_read_and_published(filled):
    path = Path(filled.parts(SCORES, "e1")[0])
    pl.read_parquet(path).drop("item_sha256").with_columns(gone=pl.lit(1)).write_parquet(path)
    assert filled.read(SCORES, "e1")["item_sha256"].null_count() == 3
    assert query(publish(filled), "select count(*) from scores where item_sha256 is null")[0, 0] == 3


def test_a_damaged_part_is_named(filled):
    path = Path(filled.parts(SCORES, "e2")[0])
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileUnreadable, match="evaluation_id=e2"):
        publish(filled)


def test_evaluations_are_the_finished_ones_oldest_first(filled):
    assert filled.evaluations()["evaluation_id"].to_list() == ["e1", "e2", "e3"]
    assert filled.evaluations().schema == EVALUATIONS.schema


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(NotWritable):
        Warehouse(str(tmp_path)).write(CLAIMS, "e", claims("e", "x"))


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "tables").write_text("")
    with pytest.raises(NotWritable):
        Warehouse(str(tmp_path)).write(CLAIMS, "e", claims("e", "x"))


def test_a_url_that_nothing_can_open_is_said_with_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ExtraMissing, match=r"s3://bucket/warehouse.*eval-pipeline\[s3\]"):
        Warehouse("s3://bucket/warehouse")
    with pytest.raises(SettingInvalid, match="EVAL_WAREHOUSE=carrier-pigeon://loft"):
        Warehouse("carrier-pigeon://loft")
