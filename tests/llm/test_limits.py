"""The pool of an endpoint: it shrinks on 429, recovers, and never leaks a place."""

import asyncio

import pytest

from eval_pipeline.errors import BudgetReached
from eval_pipeline.llm.endpoint import asked_wait, backoff, duration, without_secrets
from eval_pipeline.llm.limits import Budget, Pool, shared_pool


def test_a_429_takes_a_quarter_off_and_rounds_of_answers_bring_it_back():
    pool = Pool(8)
    pool.refused()
    assert pool.allowed == 6.0
    pool.refused()
    assert pool.allowed == 6.0, "the other refusals of the same moment do not count again"
    for _ in range(6):
        pool.answered()
    assert 6.9 < pool.allowed < 7.0, "six answers at six in flight are about one more: 6 + 1/6 + 1/6.17 + ..."
    for _ in range(100):
        pool.answered()
    assert pool.allowed == 8


def test_it_never_shrinks_to_nothing():
    pool = Pool(1)
    pool.refused()
    assert pool.allowed == 1.0


def test_a_waiter_that_gives_up_leaves_its_turn_to_the_next():
    async def run():
        pool = Pool(1)
        await pool.enter()
        first, second = asyncio.ensure_future(pool.enter()), asyncio.ensure_future(pool.enter())
        await asyncio.sleep(0)
        pool.leave()
        first.cancel()
        await asyncio.wait_for(second, 1)
        return pool.in_flight

    assert asyncio.run(run()) == 1


def test_one_that_gives_up_while_it_waits_for_its_rate_gives_its_place_back():
    async def run():
        pool = Pool(1, requests_per_minute=1)
        await pool.enter()
        pool.leave()
        late = asyncio.ensure_future(pool.enter())
        await asyncio.sleep(0.01)
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        return pool.in_flight

    assert asyncio.run(run()) == 0


def test_a_pool_is_shared_by_endpoint_and_goes_with_its_last_user():
    async def run():
        one = shared_pool("e", 8)
        assert shared_pool("e", 4) is one
        assert one.max_in_flight == 4
        assert shared_pool("other", 8) is not one
        del one
        assert shared_pool("e", 8).max_in_flight == 8

    asyncio.run(run())


def test_a_budget_counts_calls_and_known_costs():
    budget = Budget(max_calls=2, max_cost_usd=1.0)
    budget.take()
    budget.spend(None)
    budget.spend(1.0)
    with pytest.raises(BudgetReached, match=r"max_cost_usd 1 was reached \(\$1.0000\)"):
        budget.take()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "86400"}, 60.0),
        ({}, None),
    ],
)
def test_the_wait_an_endpoint_asks_for_is_read_and_bounded(headers, seconds):
    assert asked_wait(headers) == seconds


def test_backoff_is_jittered_bounded_and_never_before_the_asked_wait():
    assert all(0 <= backoff(n, None) <= 8 for n in range(20))
    assert all(2.0 <= backoff(n, 2.0) <= 2.1 for n in range(20))


@pytest.mark.parametrize(
    ("text", "seconds"), [("6m0s", 360), ("1.5s", 1.5), ("20ms", 0.02), ("7", 7), ("1h2m", 3720), ("soon", None), (None, None), ("1.2.3s", None)]
)  # fmt: skip
def test_reset_times_are_read(text, seconds):
    assert duration(text) == seconds


def test_a_url_in_a_table_has_no_credentials():
    assert without_secrets("https://me:pass@host:8080/v1/?key=x#y") == "https://host:8080/v1"
