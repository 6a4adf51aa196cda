"""The same ledger on a real PostgreSQL, for runs spread over machines."""

import asyncio
import subprocess
import sys
import textwrap
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from eval_pipeline.chat import ChatReply, ChatRequest
from eval_pipeline.errors import NotWritable
from eval_pipeline.llm.ledger import Entry, Ledger
from eval_pipeline.llm.ledgered_chat import LedgeredChat
from eval_pipeline.llm.scripted_chat import ScriptedChat

pytestmark = pytest.mark.postgres
REQUEST = ChatRequest("t.1", [{"role": "user", "content": "질문"}])


@pytest.fixture
def url(postgres_url):
    return postgres_url


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
