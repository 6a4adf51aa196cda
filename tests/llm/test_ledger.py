"""Nothing paid for is lost or paid twice."""

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import pytest

from eval_pipeline.chat import ChatReply, ChatRequest, ModelIdentity, TokenAlternatives
from eval_pipeline.errors import NotWritable, ProviderStopped
from eval_pipeline.llm.ledger import Ledger, Paid
from eval_pipeline.llm.ledgered_chat import LedgeredChat, ledger_key
from eval_pipeline.llm.scripted_chat import ScriptedChat
from eval_pipeline.vocabulary import Outcome

REQUEST = ChatRequest("t.1", [{"role": "user", "content": "질문"}], grades=(0, 1), schema={"type": "object"})
IDENTITY = ModelIdentity("endpoint", "model", "r1", {"temperature": 0})


def asked(url, answer, *requests):
    """Replies through a ledger at `url`, and how often the model itself was asked."""
    model = ScriptedChat(answer)

    async def run():
        async with Ledger(url) as ledger:
            chat = LedgeredChat(model, ledger)
            return await asyncio.gather(*(chat.reply(request) for request in requests))

    return asyncio.run(run()), len(model.requests)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


def test_a_question_is_paid_for_once(url):
    first, calls = asked(url, lambda _: '{"grade": 1}', REQUEST)
    again, more = asked(url, lambda _: '{"grade": 0}', REQUEST)
    assert (calls, more) == (1, 0)
    assert (first[0].text, first[0].is_cached) == ('{"grade": 1}', False)
    assert (again[0].text, again[0].is_cached) == ('{"grade": 1}', True)


def test_the_same_question_twice_at_once_is_sent_once(url):
    async def slow(_):
        await asyncio.sleep(0.05)
        return "1"

    replies, calls = asked(url, slow, REQUEST, REQUEST, REQUEST)
    assert calls == 1
    assert {reply.text for reply in replies} == {"1"}


@pytest.mark.parametrize("outcome", [Outcome.PROVIDER_ERROR, Outcome.TIMEOUT])
def test_a_failure_of_the_moment_is_not_replayed(url, outcome):
    asked(url, lambda _: ChatReply("", outcome), REQUEST)
    replies, calls = asked(url, lambda _: "1", REQUEST)
    assert calls == 1
    assert replies[0].text == "1"


def test_an_unusable_reply_does_not_block_the_next_attempt(url):
    asked(url, lambda _: "no idea", REQUEST)
    replies, calls = asked(url, lambda _: "1", REQUEST, replace(REQUEST, attempt=1))
    assert calls == 1
    assert [reply.text for reply in replies] == ["no idea", "1"]


@pytest.mark.parametrize(
    ("identity", "request_"),
    [
        (replace(IDENTITY, model="other"), REQUEST),
        (replace(IDENTITY, revision="r2"), REQUEST),
        (replace(IDENTITY, endpoint="elsewhere"), REQUEST),
        (replace(IDENTITY, parameters={"temperature": 1}), REQUEST),
        (IDENTITY, replace(REQUEST, messages=[{"role": "user", "content": "질문?"}])),
        (IDENTITY, replace(REQUEST, schema={"type": "string"})),
        (IDENTITY, replace(REQUEST, attempt=1)),
        (IDENTITY, replace(REQUEST, sample=1)),
        (IDENTITY, replace(REQUEST, occasion="canary")),
    ],
)
def test_whatever_can_move_a_reply_makes_another_key(identity, request_):
    assert ledger_key(identity, request_) != ledger_key(IDENTITY, REQUEST)


def test_a_reply_comes_back_whole(url):
    reply = ChatReply("답", None, None, "m", "fp", 10, 2, 3, 0.5, 1.0, 1)
    (first,), _ = asked(url, lambda _: reply, REQUEST)
    (again,), _ = asked(url, lambda _: "x", REQUEST)
    assert again == replace(first, is_cached=True, latency_seconds=None, transport_retry_count=0)


WRITER = """
    import asyncio, sys
    from eval_pipeline.chat import ChatReply, ModelIdentity
    from eval_pipeline.llm.ledger import Entry, Ledger

    async def main():
        async with Ledger(sys.argv[1]) as ledger:
            async def one(n):
                await ledger.put(Entry(f"{sys.argv[2]}-{n}", "m", "t", ChatReply(str(n))))
                print(n, flush=True)
            for start in range(0, 100000, 50):
                await asyncio.gather(*(one(n) for n in range(start, start + 50)))
    asyncio.run(main())
"""


def start(url, name):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), url, name], stdout=subprocess.PIPE, text=True
    )


def kill(process):
    process.send_signal(signal.SIGKILL)
    said = process.stdout.read().split("\n")
    process.wait()
    process.stdout.close()
    return [int(line) for line in said[:-1]]


def stored(url, name):
    path = url.removeprefix("sqlite:///")
    with sqlite3.connect(path) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        return {
            int(key.split("-")[1])
            for (key,) in connection.execute("select ledger_key from replies where ledger_key like ?", [f"{name}-%"])
        }


@pytest.mark.parametrize("round_", range(3))
def test_killed_at_any_moment_every_reply_it_had_acknowledged_is_there(url, round_):
    process = start(url, "w")
    process.stdout.readline()
    time.sleep(random.Random(round_).uniform(0.05, 0.5))
    acknowledged = kill(process)
    assert acknowledged
    assert set(acknowledged) <= stored(url, "w")


def test_two_processes_write_to_one_ledger_and_lose_nothing(url):
    both = [start(url, name) for name in ("a", "b")]
    for process in both:
        process.stdout.readline()
    time.sleep(1.0)
    for name, process in zip(("a", "b"), both, strict=True):
        assert set(kill(process)) <= stored(url, name)


def test_another_process_s_reply_is_seen_within_seconds(url):
    model = ScriptedChat(lambda _: "mine")

    async def run():
        async with Ledger(url) as ledger:
            chat = LedgeredChat(model, ledger)
            await asyncio.to_thread(asked, url, lambda _: "theirs", REQUEST)
            await asyncio.sleep(1.1)
            return await chat.reply(REQUEST)

    reply = asyncio.run(run())
    assert (reply.text, len(model.requests)) == ("theirs", 0)


def test_what_another_process_wrote_meanwhile_is_not_asked_again(url):
    async def run():
        async with Ledger(url) as ours, Ledger(url) as theirs:
            first, second = ScriptedChat(lambda _: "1"), ScriptedChat(lambda _: "0")
            await LedgeredChat(first, ours).reply(REQUEST)
            reply = await LedgeredChat(second, theirs).reply(REQUEST)
            return reply.text, len(second.requests)

    assert asyncio.run(run()) == ("1", 0)


def test_one_process_that_asks_twice_in_a_row_pays_once(url):
    async def run():
        model = ScriptedChat(lambda _: "1")
        async with Ledger(url) as ledger:
            chat = LedgeredChat(model, ledger)
            await chat.reply(REQUEST)
            again = await chat.reply(REQUEST)
        return again.is_cached, len(model.requests)

    assert asyncio.run(run()) == (True, 1)


def test_whoever_waits_for_a_question_outlives_the_one_that_asked_it(url):
    async def slow(_):
        await asyncio.sleep(0.2)
        return "1"

    async def run():
        async with Ledger(url) as ledger:
            chat = LedgeredChat(ScriptedChat(slow), ledger)
            first = asyncio.ensure_future(chat.reply(REQUEST))
            second = asyncio.ensure_future(chat.reply(REQUEST))
            await asyncio.sleep(0.05)
            first.cancel()
            return await second

    assert asyncio.run(run()).text == "1"


def test_what_stops_the_run_reaches_everyone_who_waits(url):
    def quota(_):
        raise ProviderStopped(endpoint="e", reason="the quota is used up")

    async def run():
        async with Ledger(url) as ledger:
            chat = LedgeredChat(ScriptedChat(quota), ledger)
            return await asyncio.gather(*(chat.reply(REQUEST) for _ in range(3)), return_exceptions=True)

    assert {type(found) for found in asyncio.run(run())} == {ProviderStopped}


def test_log_probabilities_come_back_as_they_were(url):
    alternatives = (TokenAlternatives("4", (("4", -0.1), ("2", -2.5))), TokenAlternatives("}", (("}", 0.0),)))
    asked(url, lambda _: ChatReply("4", logprobs=alternatives), REQUEST)
    (again,), _ = asked(url, lambda _: "x", REQUEST)
    assert again.logprobs == alternatives


def test_six_thousand_cached_questions_take_under_a_second(url):
    many = [replace(REQUEST, sample=n) for n in range(6000)]
    asked(url, lambda _: '{"grade": 1}', *many)
    started = time.perf_counter()
    _, calls = asked(url, lambda _: "x", *many)
    assert calls == 0
    assert time.perf_counter() - started < 1.0


def test_a_file_that_is_no_ledger_and_a_folder_that_cannot_be_made_are_said(tmp_path):
    (tmp_path / "text").write_text("not a database, and long enough for SQLite to look at it" * 50)
    with pytest.raises(NotWritable, match="not a database"):
        Ledger(f"sqlite:///{tmp_path / 'text'}")
    with pytest.raises(NotWritable):
        Ledger(f"sqlite:///{tmp_path / 'text' / 'ledger.sqlite'}")


OPENER = """
    import sys, time
    from eval_pipeline.llm.ledger import Ledger
    time.sleep(max(0, float(sys.argv[2]) - time.time()))
    Ledger(sys.argv[1]).close()
"""


def test_processes_that_open_a_new_ledger_at_the_same_moment_do_not_collide(url):
    moment = str(time.time() + 2.0)
    all_ = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(OPENER), url, moment]) for _ in range(5)]
    assert [process.wait(timeout=60) for process in all_] == [0] * 5


def paid(url, answer, payer, *requests):
    """What the payer's account holds after asking."""

    async def run():
        async with Ledger(url) as ledger:
            chat = LedgeredChat(ScriptedChat(answer), ledger, payer)
            await asyncio.gather(*(chat.reply(request) for request in requests))
            return ledger.paid([payer])

    return asyncio.run(run())


def test_an_account_holds_every_request_sent_on_it_over_all_tries_and_nothing_of_others(url):
    reply = ChatReply("1", cost_usd=0.25, transport_retry_count=1)
    assert paid(url, lambda _: reply, "e1", REQUEST) == Paid(2, 0.25)
    # A second try finds the first reply and pays for the new question only: 2 + 2 requests.
    assert paid(url, lambda _: reply, "e1", REQUEST, replace(REQUEST, sample=1)) == Paid(4, 0.5)
    assert paid(url, lambda _: reply, "e2", REQUEST) == Paid(0, 0.0)


def test_a_failure_of_the_moment_was_sent_and_an_unknown_price_is_not_zero(url):
    timed_out = ChatReply("", Outcome.TIMEOUT, transport_retry_count=2)
    assert paid(url, lambda _: timed_out, "e", REQUEST) == Paid(3, None)


def test_an_account_holds_those_below_it_and_not_its_neighbour(url):
    reply = ChatReply("1", cost_usd=0.25)
    paid(url, lambda _: reply, "e/0", REQUEST)
    paid(url, lambda _: reply, "e/1", replace(REQUEST, sample=1))
    paid(url, lambda _: reply, "e2", replace(REQUEST, sample=2))
    assert paid(url, lambda _: reply, "e") == Paid(2, 0.5)
    assert paid(url, lambda _: reply, "e_") == Paid(0, 0.0)
