"""Readers and the publisher never meet: whole files, kept snapshots, and a careless writer who harms nobody."""

import signal
import subprocess
import sys
import textwrap
import time

import duckdb
import pytest

from eval_pipeline.store.publish import publish
from eval_pipeline.store.query import query
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import CLAIMS


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


@pytest.mark.parametrize("delay", [0.05, 0.2])
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


@pytest.mark.parametrize(
    ("event", "nth", "rows"), [("os.chmod", 1, 3), ("os.remove", 1, 3), ("os.rename", 1, 3), ("os.remove", 2, 7)]
)
def test_a_publisher_killed_at_each_step_leaves_the_old_file_or_the_new_one(warehouse, event, nth, rows):
    path = publish(warehouse)
    warehouse.write(CLAIMS, "e2", claims("e2", 4))
    # Before the chmod, before the old log goes, before the swap, and after it.
    code = textwrap.dedent(f"""
        import os, signal, sys
        from eval_pipeline.store.publish import publish
        from eval_pipeline.store.warehouse import Warehouse
        seen = 0
        def kill(event, arguments):
            global seen
            if event == {event!r} and "results" in str(arguments[0]):
                seen += 1
                if seen == {nth}:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(kill)
        publish(Warehouse({warehouse.root!r}))
    """)
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert count(path) == rows
    publish(warehouse)
    assert count(path) == 7
    assert list(path.parent.glob(".results-*")) == []


def test_one_who_opened_before_the_swap_wrote_after_it_and_died_does_not_stop_query(warehouse):
    path = publish(warehouse)
    careless = textwrap.dedent(f"""
        import duckdb, os, sys, time
        os.chmod({str(path)!r}, 0o644)
        c = duckdb.connect({str(path)!r})
        print("open", flush=True)
        sys.stdin.readline()
        c.execute("create table mess as select 1")
        print("wrote", flush=True)
        time.sleep(60)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", careless], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline().strip() == "open"
        warehouse.write(CLAIMS, "e2", claims("e2", 4))
        publish(warehouse)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline().strip() == "wrote"
        process.kill()
    assert path.with_name("results.duckdb.wal").exists(), "the careless reader left its log beside a file it never saw"
    assert count(path) == 7
    assert list(path.parent.glob(".reader-*")) == []
    publish(warehouse)
    assert not path.with_name("results.duckdb.wal").exists()
    with duckdb.connect(str(path), read_only=True) as plain:
        assert plain.execute("select count(*) from claims").fetchone() == (7,)


def test_the_file_is_read_only_and_says_when_it_was_published(warehouse):
    path = publish(warehouse)
    assert path.stat().st_mode & 0o777 == 0o444
    assert query(path, "select count(*) from publication where published_at > now() - interval 1 hour")[0, 0] == 1
