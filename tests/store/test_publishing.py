"""Readers and the publisher never meet: whole files, kept snapshots, and a careless writer who harms nobody."""

import signal
import subprocess
import sys
import textwrap
import time

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.store.publish import publish
from eval_pipeline.store.query import query, safe_csv
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import CLAIMS, SCORES


def claims(evaluation_id, count):
    return CLAIMS.frame(
        {"evaluation_id": evaluation_id, "item_id": f"i{n}", "source": "response", "claim_index": 0, "claim": "가나다"}
        for n in range(count)
    )


def count(path):
    return query(path, "select count(*) as n from claims")["n"][0]


@pytest.fixture
def warehouse(tmp_path):
    made = Warehouse(str(tmp_path / "warehouse"))
    made.write(CLAIMS, "e1", claims("e1", 3))
    return made


def test_an_open_reader_keeps_its_snapshot_while_a_new_file_is_published(warehouse):
    path = publish(warehouse)
    with duckdb.connect(str(path), read_only=True) as reader:
        assert reader.execute("select count(*) from claims").fetchone() == (3,)
        warehouse.write(CLAIMS, "e2", claims("e2", 4))
        publish(warehouse)
        assert reader.execute("select count(*) from claims").fetchone() == (3,)
    assert count(path) == 7


def test_a_reader_who_wrote_and_died_leaves_the_next_publish_and_later_readers_unharmed(warehouse):
    path = publish(warehouse)
    # The published file is read-only, so the careless one first makes it writable, as root or with chmod.
    careless = textwrap.dedent(f"""
        import duckdb, os, time
        os.chmod({str(path)!r}, 0o644)
        c = duckdb.connect({str(path)!r})
        c.execute("insert into publication values (now())")
        c.execute("create table mess as select * from range(1000)")
        print("wrote", flush=True)
        time.sleep(60)
    """)
    process = subprocess.Popen([sys.executable, "-c", careless], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "wrote"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert path.with_name("results.duckdb.wal").exists(), "the careless reader left its log"
    warehouse.write(CLAIMS, "e2", claims("e2", 1))
    publish(warehouse)
    assert count(path) == 4
    assert not path.with_name("results.duckdb.wal").exists()


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.15, 0.2, 0.3])
def test_a_publisher_killed_at_any_moment_leaves_the_old_file_whole(warehouse, delay):
    path = publish(warehouse)
    code = textwrap.dedent(f"""
        from eval_pipeline.store.publish import publish
        from eval_pipeline.store.warehouse import Warehouse
        print("ready", flush=True)
        while True:
            publish(Warehouse({warehouse.root!r}))
    """)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "ready"
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert count(path) == 3
    publish(warehouse)
    assert list(path.parent.glob(".results-*")) == []


def test_the_file_is_written_for_older_clients_too(warehouse):
    # Bytes 12 to 19 of the header hold the storage version; 64 to 68 are those that DuckDB 1.0 to 1.5 read.
    assert 64 <= int.from_bytes(publish(warehouse).read_bytes()[12:20], "little") <= 68


@given(st.text(min_size=1, max_size=60).filter(lambda s: "\x00" not in s and len(s.encode("utf-8", "replace")) < 60))
def test_no_value_leaves_its_folder(tmp_path_factory, value):
    value = value.encode("utf-8", "replace").decode()
    root = tmp_path_factory.mktemp("w")
    made = Warehouse(str(root))
    made.write(CLAIMS, value, claims(value, 1))
    assert made.values(CLAIMS) == [value]
    assert made.read(CLAIMS, value).height == 1
    inside = {path.relative_to(root).parts[:2] for path in root.rglob("*.parquet")}
    assert inside == {("tables", "claims")}


def test_nan_is_refused_and_null_survives(warehouse):
    row = {"evaluation_id": "e", "metric": "m", "item_id": "i", "stratum": "s", "status": "invalid", "components": "{}", "outcomes": [],
           "content_sha256": "c", "item_sha256": "i"}  # fmt: skip
    with pytest.raises(ValueError, match="NaN"):
        warehouse.write(SCORES, "e", SCORES.frame([row | {"value": float("nan")}]))
    warehouse.write(SCORES, "e", SCORES.frame([row]))
    assert query(publish(warehouse), "select value from scores")["value"].to_list() == [None]


def test_a_frame_of_another_table_is_refused(warehouse):
    with pytest.raises(ValueError, match="columns differ"):
        warehouse.write(CLAIMS, "e", pl.DataFrame({"x": [1]}))


def test_csv_texts_are_no_formulas():
    shown = safe_csv(pl.DataFrame({"text": ["=1+1", "-x", "@a", "+1", "plain", None], "n": [-1, 2, 3, 4, 5, 6]}))
    assert shown.splitlines()[1:5] == ["'=1+1,-1", "'-x,2", "'@a,3", "'+1,4"]
