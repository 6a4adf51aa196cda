"""A fetching process ended by `kill -9`, then the same evaluation again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from eval_pipeline.systems.journal import Journal

SCRIPT = """
import asyncio, sys
from pathlib import Path
import polars as pl
from eval_pipeline.config import SystemConfig
from eval_pipeline.systems.journal import Journal
from eval_pipeline.systems.source import build_source, fetch

url, journal, out, count, flight = sys.argv[1:]
ids = [f"i{n:03}" for n in range(int(count))]
items = pl.DataFrame({"item_id": ids, "user_input": ids, "language": "en", "stratum": "faq"})
config = SystemConfig.model_validate({"source": "http", "request": {"url": url, "json": {"query": "{{ user_input }}"}}, "retries": 0})
with Journal(Path(journal)) as opened:
    source = build_source("rag", config, Path("."), {})
    frame = asyncio.run(fetch(items, source, opened, "e1", max_in_flight=int(flight)))
frame.select("item_id", "response", "error").write_ndjson(out)
"""
COUNT, FLIGHT = 120, 6


@pytest.mark.parametrize("asked_before_the_kill", [1, 25, 70])
def test_after_a_kill_nothing_is_asked_twice_beyond_what_was_in_flight(loopback, tmp_path, asked_before_the_kill):
    def answer(seen):
        time.sleep(0.01)
        query = seen["json"]["query"]
        return (500, {}, b"") if query == "i007" else loopback.json({"response": f"answer {query}"})

    loopback.answer = answer
    journal, out = tmp_path / "j" / "e1.jsonl", tmp_path / "out.jsonl"
    command = [sys.executable, "-c", SCRIPT, loopback.url, str(journal), str(out), str(COUNT), str(FLIGHT)]
    with subprocess.Popen(command) as running:
        deadline = time.monotonic() + 60
        while sum(loopback.counts().values()) < asked_before_the_kill and time.monotonic() < deadline:
            time.sleep(0.002)
        os.kill(running.pid, signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL
    time.sleep(0.1)
    before, kept = loopback.counts(), Journal(journal).done()
    assert asked_before_the_kill <= sum(before.values()) < COUNT
    assert set(kept) <= set(before)
    with journal.open("ab") as file:
        file.write(b'{"item_id": "i119", "response": "to')  # as if the kill had come inside a write

    subprocess.run(command, check=True, timeout=60)
    after = loopback.counts()
    assert set(after) == {f"i{n:03}" for n in range(COUNT)}
    twice = {query for query, times in after.items() if times > 1}
    assert twice == set(before) - set(kept)
    assert len(twice) <= FLIGHT
    assert max(after.values()) <= 2
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["item_id"] for row in rows] == [f"i{n:03}" for n in range(COUNT)]
    assert [row["item_id"] for row in rows if row["error"]] == ["i007"]
    assert all(row["response"] == f"answer {row['item_id']}" for row in rows if not row["error"])

    subprocess.run(command, check=True, timeout=60)
    assert loopback.counts() == after
