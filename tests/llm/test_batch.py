"""Batches: on record before they exist, found again after a kill, collected once, each line on its own."""

import asyncio
import subprocess
import sys
import textwrap

import pytest

from eval_pipeline.chat import ChatRequest
from eval_pipeline.errors import BudgetReached, JudgeIdentityMismatch, ProviderStopped
from eval_pipeline.llm.batch import Batches
from eval_pipeline.llm.batched_chat import BatchedChat
from eval_pipeline.llm.ledger import Ledger
from eval_pipeline.llm.ledgered_chat import LedgeredChat
from eval_pipeline.llm.limits import Budget
from eval_pipeline.llm.openai_chat import OpenAIChat
from eval_pipeline.vocabulary import Outcome

MODEL = "judge-2024-07-18"


def questions(count):
    return [
        ChatRequest(
            "answer_accuracy.1",
            [{"role": "system", "content": "Grade."}, {"role": "user", "content": f"질문 {n} is 0, 2 or 4."}],
            grades=(0, 2, 4),
        )
        for n in range(count)
    ]


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


def batched(loopback, url, work, **options):
    """What `work(batches, ledger)` gives, with the judge and the ledger open only as long as it runs."""

    async def run():
        async with (
            Ledger(url) as ledger,
            OpenAIChat(MODEL, base_url=loopback.base_url, api_key="sk-secret", **options) as chat,
        ):
            return await work(Batches(chat, ledger), ledger)

    return asyncio.run(run())


def live(loopback, url, requests):
    async def run():
        async with Ledger(url) as ledger, OpenAIChat(MODEL, base_url=loopback.base_url) as chat:
            model = LedgeredChat(chat, ledger)
            return await asyncio.gather(*map(model.reply, requests))

    return asyncio.run(run())


def submit(loopback, url, requests, **options):
    return batched(loopback, url, lambda batches, _: batches.submit(requests), **options)


def poll(loopback, url):
    return batched(loopback, url, lambda batches, _: batches.poll())


def collect(loopback, url, **options):
    return batched(loopback, url, lambda batches, _: batches.collect(), **options)


def test_a_batch_gives_what_live_questions_give(loopback, url, tmp_path):
    asked = questions(50)
    submit(loopback, url, asked)
    found = collect(loopback, url)
    assert (found.reply_count, found.failed, found.unanswered) == (50, {}, [])
    from_batch = live(loopback, url, asked)
    assert all(reply.is_cached for reply in from_batch)
    directly = live(loopback, f"sqlite:///{tmp_path / 'other.sqlite'}", asked)
    assert [reply.text for reply in from_batch] == [reply.text for reply in directly]


def test_a_batch_is_polled_until_it_ends(loopback, url):
    loopback.control(batch={"polls": 2})
    (batch_id,) = submit(loopback, url, questions(3))
    assert poll(loopback, url) == {batch_id: "in_progress"}
    assert collect(loopback, url).reply_count == 0
    assert poll(loopback, url) == {batch_id: "completed"}
    assert collect(loopback, url).reply_count == 3
    assert poll(loopback, url) == {}


def test_failed_lines_are_failures_of_their_questions_and_are_asked_again(loopback, url):
    loopback.control(batch={"failed_lines": 7})
    submit(loopback, url, questions(500))
    found = collect(loopback, url)
    assert found.reply_count == 493
    assert len(found.failed) == 7
    assert set(found.failed.values()) == {"HTTP 500 server_error"}
    loopback.control()
    replies = live(loopback, url, questions(500))
    assert loopback.counters()["requests"] == 7
    assert all(reply.failure is None for reply in replies)


def test_an_expired_batch_keeps_what_it_answered_and_frees_the_rest(loopback, url):
    loopback.control(batch={"status": "expired", "missing_lines": 20})
    submit(loopback, url, questions(50))
    found = collect(loopback, url)
    assert (found.reply_count, len(found.unanswered)) == (30, 20)
    submit(loopback, url, questions(50))
    assert loopback.counters()["batches"] == 2
    assert len(collect(loopback, url).unanswered) == 20, "the second batch held those 20 alone"


def test_a_batch_that_failed_whole_says_why(loopback, url):
    loopback.control(batch={"status": "failed"})
    submit(loopback, url, questions(2))
    assert set(collect(loopback, url).failed.values()) == {"batch failed: invalid_json_line"}


def test_what_is_answered_or_waiting_is_not_submitted_again(loopback, url):
    live(loopback, url, questions(10))
    assert len(submit(loopback, url, questions(20))) == 1
    assert submit(loopback, url, questions(20)) == []
    assert collect(loopback, url).reply_count == 10
    assert submit(loopback, url, questions(20)) == []


def test_a_large_set_becomes_several_batches(loopback, url):
    async def work(batches, _):
        batches._most = 4
        return await batches.submit(questions(10))

    assert len(batched(loopback, url, work)) == 3
    assert collect(loopback, url).reply_count == 10


def test_a_batch_whose_id_never_arrived_is_found_by_its_mark(loopback, url):
    loopback.control(batch={"lose_create": True})
    with pytest.raises(ProviderStopped, match="batch"):
        submit(loopback, url, questions(5), transport_retries=0)
    assert submit(loopback, url, questions(5)) == [], "it is waiting, not lost"
    assert collect(loopback, url).reply_count == 5
    assert loopback.counters()["batches"] == 1


SUBMITTER = """
    import asyncio, importlib.util, os, signal, sys
    spec = importlib.util.spec_from_file_location("batches", sys.argv[3])
    batches = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(batches)
    class Server:
        base_url = sys.argv[1]
    batches.submit(Server, sys.argv[2], batches.questions(500))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_before_polling_a_new_process_collects(loopback, url):
    loopback.control(batch={"polls": 1, "failed_lines": 7})
    command = [sys.executable, "-c", textwrap.dedent(SUBMITTER), loopback.base_url, url, __file__]
    assert subprocess.run(command, check=False).returncode == -9
    assert list(poll(loopback, url).values()) == ["in_progress"]
    found = collect(loopback, url)
    assert (found.reply_count, len(found.failed)) == (493, 7)


def test_collecting_twice_counts_once(loopback, url):
    submit(loopback, url, questions(5))
    assert [collect(loopback, url).reply_count, collect(loopback, url).reply_count] == [5, 0]


def test_another_model_in_a_batch_fails_the_run(loopback, url):
    loopback.control(model="something-else")
    submit(loopback, url, questions(2))
    with pytest.raises(JudgeIdentityMismatch, match="something-else"):
        collect(loopback, url)


def test_a_budget_bounds_what_is_submitted(loopback, url):
    with pytest.raises(BudgetReached, match="max_calls 8"):
        submit(loopback, url, questions(20), budget=Budget(max_calls=8))
    assert collect(loopback, url).reply_count == 8


def test_a_batch_costs_half(loopback, url):
    # 1 M tokens in and out at 2 and 4 USD; the server counts 6 tokens out.
    prices = {MODEL: {"input": 2_000_000, "output": 4_000_000}}
    submit(loopback, url, questions(1))
    found = collect(loopback, url, prices=prices)
    (reply,) = live(loopback, url, questions(1))
    assert found.cost_usd == pytest.approx((reply.input_tokens * 2 + 6 * 4) / 2)
    assert collect(loopback, url).cost_usd == 0.0


def test_a_batched_judge_answers_from_earlier_batches_and_submits_the_rest(loopback, url):
    async def ask(requests):
        async with (
            Ledger(url) as ledger,
            BatchedChat(OpenAIChat(MODEL, base_url=loopback.base_url), ledger) as chat,
        ):
            replies = await asyncio.gather(*map(LedgeredChat(chat, ledger).reply, requests))
            return replies, chat.waiting_count, await chat.submit()

    first, waiting, submitted = asyncio.run(ask(questions(6)))
    assert {reply.failure for reply in first} == {Outcome.NOT_ASKED}
    assert (waiting, len(submitted)) == (6, 1)
    _, waiting, submitted = asyncio.run(ask(questions(6)))
    assert (waiting, submitted) == (6, [])
    collect(loopback, url)
    again, waiting, _ = asyncio.run(ask(questions(6)))
    assert (waiting, {reply.failure for reply in again}) == (0, {None})


def test_no_key_is_on_record(loopback, url, tmp_path):
    submit(loopback, url, questions(2))
    collect(loopback, url)
    for path in tmp_path.iterdir():
        assert b"sk-secret" not in path.read_bytes()
