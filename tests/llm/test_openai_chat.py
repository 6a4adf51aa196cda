"""The client against a real HTTP server with faults: every outcome typed, budgets kept, keys nowhere."""

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

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


def test_the_responses_api_gives_the_same_grade(loopback):
    (chat,) = ask(loopback)
    (reply,) = ask(loopback, api="responses")
    assert (reply.text, reply.cached_input_tokens, reply.output_tokens) == (chat.text, 1, 6)
    sent = json.loads(loopback.counters()["last_body"])
    assert sent["text"]["format"]["strict"] is True
    assert sent["store"] is False


def test_what_is_sent_is_strict_structured_output_with_logprobs_where_wanted(loopback):
    ask(loopback, replace(REQUEST, wants_logprobs=True), parameters={"seed": 7})
    sent = json.loads(loopback.counters()["last_body"])
    assert sent["response_format"]["json_schema"]["strict"] is True
    assert (sent["logprobs"], sent["top_logprobs"], sent["seed"]) == (True, 20, 7)
    assert "temperature" not in sent


def test_logprobs_come_as_alternatives_by_token(loopback):
    one = {"token": "4", "logprob": -0.1, "top_logprobs": [{"token": "4", "logprob": -0.1}, {"token": "2", "logprob": -2.4}]}  # fmt: skip
    loopback.control(logprobs=[one])
    (reply,) = ask(loopback, replace(REQUEST, wants_logprobs=True))
    assert reply.logprobs[0].alternatives == (("4", -0.1), ("2", -2.4))


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("content_filter", Outcome.REFUSED),
        ("content_filter_400", Outcome.REFUSED),
        ("context_length", Outcome.TOO_LONG),
    ],
)
def test_refusals_of_one_question_are_typed_and_not_retried(loopback, kind, outcome):
    loopback.control(faults={kind: 1.0})
    assert ask(loopback)[0].failure == outcome
    assert loopback.counters()["requests"] == 1


def test_a_body_that_drips_is_a_timeout(loopback):
    loopback.control(faults={"drip": 1.0})
    started = time.monotonic()
    (reply,) = ask(loopback, timeout_seconds=0.4, transport_retries=0)
    assert reply.failure == Outcome.TIMEOUT
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("returned", ["judge-2024-07-19", "judge", "judge-2024-07-18-mini"])
def test_a_pin_accepts_no_other_snapshot(loopback, returned):
    loopback.control(model=returned)
    with pytest.raises(JudgeIdentityMismatch):
        ask(loopback)


def test_a_prefix_of_the_provider_is_no_other_model(loopback):
    loopback.control(model=f"openai/{MODEL}")
    assert ask(loopback)[0].failure is None


def test_a_deployment_name_is_sent_and_may_come_back(loopback):
    assert ask(loopback, request_model="our-deployment")[0].model == "our-deployment"


def test_a_token_that_changes_is_fetched_for_each_request(loopback):
    tokens = iter(["t1", "t2"])

    async def token():
        return next(tokens)

    ask(loopback, count=2, api_key=token, max_in_flight=1)
    assert loopback.counters()["authorizations"] == ["Bearer t1", "Bearer t2"]


def test_an_address_with_version_and_credentials_keeps_them_out_of_the_ledger(loopback):
    url = f"{loopback.base_url}?api-version=2024-10-21&key=secret"
    chat = OpenAIChat(MODEL, base_url=url)

    async def once():
        async with chat:
            return await chat.reply(REQUEST)

    assert asyncio.run(once()).failure is None
    assert chat.identity.endpoint == loopback.base_url


def test_two_threads_share_one_client(loopback):
    chat = OpenAIChat(MODEL, base_url=loopback.base_url, max_in_flight=4)

    async def many():
        replies = await asyncio.gather(*(chat.reply(REQUEST) for _ in range(30)))
        await chat.aclose()
        return [reply.failure for reply in replies]

    loopback.control(latency=0.01)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: asyncio.run(many()), range(2)))
    assert found == [[None] * 30, [None] * 30]


def test_judges_at_one_endpoint_share_its_tightest_bound(loopback):
    async def run():
        async with (
            OpenAIChat(MODEL, base_url=loopback.base_url, max_in_flight=20) as one,
            OpenAIChat(MODEL, base_url=loopback.base_url, max_in_flight=3) as other,
        ):
            await asyncio.gather(*(chat.reply(REQUEST) for chat in (other, one) * 10))

    loopback.control(latency=0.03)
    asyncio.run(run())
    assert loopback.counters()["peak_open"] <= 3


def test_an_endpoint_that_says_nothing_is_left_gets_nothing_until_the_reset(loopback):
    loopback.control(rate_headers={"x-ratelimit-remaining-requests": 0, "x-ratelimit-reset-requests": "300ms"})
    started = time.monotonic()
    ask(loopback, count=2, max_in_flight=1)
    assert time.monotonic() - started >= 0.3


def test_requests_a_minute_are_spread(loopback):
    started = time.monotonic()
    ask(loopback, count=4, requests_per_minute=600)
    assert time.monotonic() - started >= 0.3  # 600 a minute: one each 0.1 s, the first at once


def test_cost_follows_given_prices(loopback):
    (reply,) = ask(loopback, prices={MODEL: {"input": 1_000_000, "output": 10_000_000}})
    assert reply.cost_usd == pytest.approx(reply.input_tokens + 6 * 10)


def test_a_cost_limit_stops_after_the_call_that_reached_it(loopback):
    with pytest.raises(BudgetReached, match="max_cost_usd"):
        ask(loopback, count=5, max_in_flight=1, budget=Budget(max_cost_usd=1), prices={MODEL: {"input": 1_000_000, "output": 0}})  # fmt: skip
    assert loopback.counters()["requests"] == 1
