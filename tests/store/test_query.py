"""Read-only SQL: what it refuses, what it returns, and one clear sentence for everything that is wrong."""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest

from eval_pipeline.errors import NothingPublished, QueryFailed
from eval_pipeline.store.query import query, write_result


@pytest.fixture
def database(published):
    return published


@pytest.mark.parametrize("hostile", [
    "select * from read_csv('/etc/passwd')", "select * from '/etc/passwd'", "select * from read_text('/etc/passwd')",
    "select * from glob('/etc/*')", "attach '/etc/x.db'", "attach ':memory:' as m", "copy scores to 'out.csv'",
    "copy scores from '/etc/passwd'", "export database 'out'", "install httpfs", "load httpfs", "pragma threads=1",
    "pragma enable_external_access=true", "set enable_external_access=true", "set lock_configuration=false", "reset TimeZone",
    "create table x as select 1", "drop table scores", "delete from scores", "update scores set value = 1",
    "insert into publication values (now())", "select * from database", "select * from _LOCKED",
    "select 1; copy scores to 'out.csv'",
])  # fmt: skip
def test_files_settings_and_writes_are_refused(database, hostile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = database.read_bytes()
    with pytest.raises(QueryFailed):
        query(database, hostile)
    assert database.read_bytes() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", ["selct 1", "select nonsense from scores", "select ?", "select error('x')", "select date '99999-01-01'",
                                   "select timestamp 'infinity'"])  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(database, wrong):
    with pytest.raises(QueryFailed) as failure:
        query(database, wrong)
    assert len(str(failure.value).splitlines()) == 1


def test_a_mistyped_table_is_answered_with_the_nearest(database):
    with pytest.raises(QueryFailed, match='Did you mean "scores"'):
        query(database, "select * from score")


def test_without_a_database_it_says_what_to_run(tmp_path):
    with pytest.raises(NothingPublished, match="eval-pipeline run"):
        query(tmp_path / "results.duckdb", "select 1")


def test_a_file_that_is_no_database_is_said_so(tmp_path):
    path = tmp_path / "results.duckdb"
    path.write_text("no database" * 1000)
    with pytest.raises(QueryFailed):
        query(path, "select 1")


def test_parameters_are_values_not_sql(database):
    assert query(database, "select count(*) from scores where item_id = ?", ["a' or 1=1 --"])[0, 0] == 0


def test_numbers_come_as_numbers_and_times_in_utc(database):
    shown = query(database, "select sum(item_count) as n, 0.5 as half, 170141183460469231731687303715884105727 as big, "
                            "null::double as none, min(started_at) as at from metric_trend, (select 1)")  # fmt: skip
    assert shown.row(0) == (9, 0.5, 2.0**127, None, datetime(2026, 1, 1, 2, tzinfo=UTC))
    assert not any(isinstance(value, Decimal) for value in shown.row(0))


@pytest.mark.parametrize("odd", ["interval 1 day", "{'a': interval 1 day}", "map{'a': 1}", "union_value(a := 1)", "'x'::blob", "uuid()",
                                 "'101'::bit", "time '12:00'", "array[1, 2]", "[[1], null]", "'a'::enum('a')"])  # fmt: skip
@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_any_type_of_duckdb_can_be_written_in_any_format(database, odd, format_):
    assert write_result(query(database, f"select {odd} as odd, 1 as n"), format_)


def test_formats_keep_hangul_and_null(database):
    frame = query(database, "select reply, grade from verdicts where evaluation_id = 'e1' and outcome = 'refused'")
    assert json.loads(write_result(frame, "json")) == [{"reply": "아니요", "grade": None}]
    assert write_result(frame, "csv").decode() == "reply,grade\n아니요,\n"
    assert pl.read_parquet(io.BytesIO(write_result(frame, "parquet"))).equals(frame)


def test_no_text_or_heading_of_a_csv_is_a_formula():
    frame = pl.DataFrame({"=h()": ["=1+1", "-x", "@a", "+1", "＝1", "plain", None], "n": [-1, 2, 3, 4, 5, 6, 7]})
    assert write_result(frame, "csv").decode().splitlines() == [
        "'=h(),n",
        "'=1+1,-1",
        "'-x,2",
        "'@a,3",
        "'+1,4",
        "'＝1,5",
        "plain,6",
        ",7",
    ]


def test_a_list_in_a_csv_is_no_formula_either():
    frame = pl.DataFrame({"t": [["=1", "b"], [], None]})
    assert write_result(frame, "csv").decode().splitlines()[1] == '"\'=1, b"'
