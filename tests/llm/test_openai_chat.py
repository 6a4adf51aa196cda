"""The client against a real HTTP server with faults: every outcome typed, budgets kept, keys nowhere."""

import asyncio
import time

import pytest

from eval_pipeline import OpenAIChat
from eval_pipeline.chat import ChatRequest
from eval_pipeline.errors import BudgetReached, JudgeIdentityMismatch, ProviderStopped
from eval_pipeline.llm.limits import Budget
from eval_pipeline.vocabulary import Outcome

MODEL = "judge-2024-07-18"
REQUEST = ChatRequest("answer_accuracy.1", [{"role": "system", "content": "Grade."}, {"role": "user", "content": "N is 0, 2 or 4."}], grades=(0, 2, 4),
                      schema={"type": "object"})  # fmt: skip


def ask(loopback, request=REQUEST, count=1, **options):
    async def run():
        async with OpenAIChat(
            MODEL, base_url=loopback.base_url, **{"api_key": "sk-secret", "timeout_seconds": 5, **options}
        ) as chat:
            return await asyncio.gather(*(chat.reply(request) for _ in range(count)))

    return asyncio.run(run())


def test_an_answer_carries_usage_model_and_fingerprint(loopback):
    (reply,) = ask(loopback)
    assert reply.failure is None
    assert reply.text in {'{"grade": 0}', '{"grade": 2}', '{"grade": 4}'}
    assert (reply.model, reply.system_fingerprint, reply.output_tokens) == (MODEL, "fp_loopback", 6)
    assert reply.cost_usd is None, "the price of this model is unknown"


@pytest.mark.parametrize(("kind", "outcome"), [("refusal", Outcome.REFUSED), ("length", Outcome.TRUNCATED)])
def test_what_the_model_says_of_itself_is_typed(loopback, kind, outcome):
    loopback.control(faults={kind: 1.0})
    (reply,) = ask(loopback)
    assert (reply.failure, reply.text) == (outcome, "")
    assert loopback.counters()["requests"] == 1


@pytest.mark.parametrize("kind", ["500", "reset", "malformed", "html", "wrong_shape", "truncated"])
def test_transport_faults_are_retried_within_their_budget_then_typed(loopback, kind):
    loopback.control(faults={kind: 1.0})
    (reply,) = ask(loopback, transport_retries=2)
    assert reply.failure == Outcome.PROVIDER_ERROR
    assert loopback.counters()["requests"] == 3


def test_a_hang_costs_its_timeout_not_the_run(loopback):
    loopback.control(faults={"hang": 1.0})
    started = time.monotonic()
    replies = ask(loopback, count=20, timeout_seconds=0.3, transport_retries=0)
    assert {reply.failure for reply in replies} == {Outcome.TIMEOUT}
    assert time.monotonic() - started < 3, "20 hangs wait side by side"


def test_retry_after_is_honoured(loopback):
    loopback.control(faults={"429": 1.0}, retry_after=0.4)
    started = time.monotonic()
    (reply,) = ask(loopback, transport_retries=1)
    assert reply.failure == Outcome.PROVIDER_ERROR
    assert time.monotonic() - started >= 0.4


def test_429s_pass(loopback):
    loopback.control(faults={"429": 0.3}, retry_after=0.05)
    replies = ask(loopback, count=60, transport_retries=8)
    assert all(reply.failure is None for reply in replies)


def test_a_parameter_the_endpoint_does_not_know_is_dropped_once(loopback):
    loopback.control(unsupported=["response_format", "temperature"])
    replies = ask(loopback, count=1)
    assert replies[0].failure is None
    assert loopback.counters()["requests"] == 3


@pytest.mark.parametrize(("knobs", "words"), [({"faults": {"401": 1.0}}, "API key"), ({"quota_after": 0}, "quota")])
def test_a_bad_key_and_a_used_up_quota_stop_the_run_and_say_what_to_do(loopback, knobs, words):
    loopback.control(**knobs)
    with pytest.raises(ProviderStopped, match=words) as stopped:
        ask(loopback)
    assert "sk-secret" not in str(stopped.value)
    assert loopback.counters()["requests"] == 1


def test_another_model_than_declared_fails_the_run(loopback):
    loopback.control(model="something-else")
    with pytest.raises(JudgeIdentityMismatch, match="something-else"):
        ask(loopback)


def test_a_declared_rewriting_is_accepted(loopback):
    loopback.control(model="served/other-7b")
    assert ask(loopback, returns=r"served/.*")[0].failure is None


def test_no_more_is_in_flight_than_allowed(loopback):
    loopback.control(latency=0.05)
    ask(loopback, count=40, max_in_flight=4)
    assert loopback.counters()["peak_open"] <= 4


def test_the_budget_of_calls_is_exact(loopback):
    with pytest.raises(BudgetReached, match="max_calls 7"):
        ask(loopback, count=20, budget=Budget(max_calls=7))
    assert loopback.counters()["requests"] <= 7


def test_one_client_serves_several_event_loops(loopback):
    chat = OpenAIChat(MODEL, base_url=loopback.base_url)

    async def once():
        reply = await chat.reply(REQUEST)
        await chat.aclose()
        return reply.failure

    assert [asyncio.run(once()), asyncio.run(once())] == [None, None]


def test_no_key_is_sent_where_none_is_needed(loopback):
    ask(loopback, api_key=None)
    assert loopback.counters()["authorizations"] == [""]
