"""The same ledger on a real PostgreSQL, for runs spread over machines."""

import asyncio
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from eval_pipeline.chat import ChatReply, ChatRequest
from eval_pipeline.errors import NotWritable
from eval_pipeline.llm.ledger import Entry, Ledger
from eval_pipeline.llm.ledgered_chat import LedgeredChat
from eval_pipeline.llm.scripted_chat import ScriptedChat

pytestmark = pytest.mark.postgres
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
REQUEST = ChatRequest("t.1", [{"role": "user", "content": "질문"}])


def as_owner(command):
    """PostgreSQL refuses to run as root."""
    if os.getuid() == 0:
        return [shutil.which("runuser"), "-u", "postgres", "--", *map(str, command)]
    return list(map(str, command))


@pytest.fixture(scope="module")
def cluster():
    if not PROGRAMS:
        pytest.skip("no PostgreSQL under /usr/lib/postgresql")
    if importlib.util.find_spec("psycopg2") is None:
        pytest.skip("psycopg2 is not installed (extra `postgres`)")
    if os.getuid() == 0 and (
        shutil.which("runuser") is None or "postgres" not in {one.pw_name for one in pwd.getpwall()}
    ):
        pytest.skip("running as root, and there is no user postgres to run the server")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, options = folder / "data", f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off"
    subprocess.run(as_owner([PROGRAMS[-1] / "initdb", "-D", data, "-U", "ledger", "-A", "trust", "-E", "UTF8", "--no-sync"]),
                   check=True, capture_output=True, cwd=folder)  # fmt: skip
    control = [PROGRAMS[-1] / "pg_ctl", "-D", data, "-w", "-l", folder / "log"]
    subprocess.run(as_owner([*control, "-o", options, "start"]), check=True, stdout=subprocess.DEVNULL, cwd=folder)
    yield f"postgresql+psycopg2://ledger:s3cret@127.0.0.1:{port}/postgres"
    subprocess.run(as_owner([*control, "-m", "immediate", "stop"]), check=True, stdout=subprocess.DEVNULL, cwd=folder)
    shutil.rmtree(folder)


@pytest.fixture
def url(cluster):
    yield cluster
    engine = sa.create_engine(cluster)
    with engine.begin() as connection:
        connection.execute(sa.text("drop table if exists replies, batches"))
    engine.dispose()


def asked(url, answer, *requests):
    model = ScriptedChat(answer)

    async def run():
        async with Ledger(url) as ledger:
            chat = LedgeredChat(model, ledger)
            return await asyncio.gather(*(chat.reply(request) for request in requests))

    return asyncio.run(run()), len(model.requests)


def test_a_question_is_paid_for_once(url):
    many = [replace(REQUEST, sample=n) for n in range(1200)]
    _, calls = asked(url, lambda request: f"답 {request.sample}", *many)
    again, more = asked(url, lambda _: "x", *many)
    assert (calls, more) == (1200, 0)
    assert [reply.text for reply in again] == [f"답 {n}" for n in range(1200)]


def test_what_was_kept_can_be_counted_exported_and_pruned(url):
    asked(url, lambda _: "답", REQUEST)
    ledger = Ledger(url)
    (row,) = ledger.stats()
    assert (row["model"], row["reply_count"]) == ("scripted", 1)
    assert [row["reply"]["text"] for row in ledger.export()] == ["답"]
    assert ledger.prune(timedelta(days=1)) == 0
    assert ledger.prune(timedelta(0)) == 1
    ledger.close()


def test_a_batch_is_kept_under_the_id_it_gets(url):
    ledger = Ledger(url)
    ledger.save_batch("local-1", "j", "submitting", {"k": "t.1"})
    ledger.rename_batch("local-1", "batch-1", "validating")
    ledger.save_batch("batch-1", "j", "completed", {})
    (row,) = ledger.batches("j")
    assert (row["batch_id"], row["state"], row["keys"]) == ("batch-1", "completed", {"k": "t.1"})
    assert ledger.batches("other") == []
    ledger.close()


WRITER = """
    import asyncio, sys
    from eval_pipeline.chat import ChatReply
    from eval_pipeline.llm.ledger import Entry, Ledger

    async def main():
        async with Ledger(sys.argv[1]) as ledger:
            await asyncio.gather(*(ledger.put(Entry(str(n), "m", "t", ChatReply(sys.argv[2]))) for n in range(3000)))
    asyncio.run(main())
"""


def test_two_processes_at_once_neither_collide_nor_lose_a_reply(url):
    both = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITER), url, name]) for name in "ab"]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    ledger = Ledger(url)
    assert ledger.stats()[0]["reply_count"] == 3000
    ledger.close()


def test_a_reply_with_a_null_character_survives(url):
    (first,), _ = asked(url, lambda _: ChatReply("a\x00b"), REQUEST)
    (again,), _ = asked(url, lambda _: "x", REQUEST)
    assert first.text == again.text == "a\x00b"


def test_a_server_that_is_not_there_is_said_without_its_password(url):
    elsewhere = sa.make_url(url).set(port=1)
    with pytest.raises(NotWritable, match=r"127\.0\.0\.1") as refused:
        Ledger(elsewhere.render_as_string(hide_password=False))
    assert "s3cret" not in str(refused.value)


def test_a_put_of_the_same_key_keeps_the_first_reply(url):
    async def run():
        async with Ledger(url) as ledger:
            for text in ("first", "second"):
                await ledger.put(Entry("k", "m", "t", ChatReply(text)))
            return await ledger.find("k")

    assert asyncio.run(run()).text == "first"
