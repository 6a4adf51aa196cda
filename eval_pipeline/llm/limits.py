"""What a run may spend, and how fast: the budget, and the pool that every request of an endpoint passes through."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary, WeakValueDictionary

from eval_pipeline.errors import BudgetReached


@dataclass(slots=True)
class Budget:
    """Stops cleanly at a number of calls or a cost. Calls in flight count; their cost is known only afterwards."""

    max_calls: int | None = None
    max_cost_usd: float | None = None
    call_count: int = field(default=0, init=False)
    cost_usd: float = field(default=0.0, init=False)

    def take(self) -> None:
        """Takes one call from the budget.

        Raises:
            BudgetReached: none is left.
        """
        if self.max_calls is not None and self.call_count >= self.max_calls:
            raise BudgetReached(limit=f"max_calls {self.max_calls}", spent=f"{self.call_count} calls")
        if self.max_cost_usd is not None and self.cost_usd >= self.max_cost_usd:
            raise BudgetReached(limit=f"max_cost_usd {self.max_cost_usd:g}", spent=f"${self.cost_usd:.4f}")
        self.call_count += 1

    def spend(self, cost_usd: float | None) -> None:
        """Adds the cost of an answered call; an unknown price adds nothing, so only `max_calls` can stop it."""
        self.cost_usd += cost_usd or 0.0


class Pool:
    """Bounds what is in flight to one endpoint: adaptively below `max_in_flight`, and by requests and tokens a minute.

    A 429 takes a quarter off what may be in flight; every full round of answers lets one more in, up to the bound again.
    """

    def __init__(
        self, max_in_flight: int, requests_per_minute: int | None = None, tokens_per_minute: int | None = None
    ) -> None:
        self.max_in_flight = max_in_flight
        self.allowed = float(max_in_flight)
        self.in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._requests = _Rate(requests_per_minute)
        self._tokens = _Rate(tokens_per_minute)
        self._quiet_until = 0.0
        self._shrunk_at = 0.0

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[None]:
        """Waits for a place, and for the rates, then holds the place."""
        await self.enter(tokens)
        try:
            yield
        finally:
            self.leave()

    async def enter(self, tokens: int = 0) -> None:
        """Waits for a place; pair with `leave`."""
        while self.in_flight >= max(1, int(self.allowed)):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()
                raise
        self.in_flight += 1
        try:
            pause = max(self._requests.delay(1), self._tokens.delay(tokens), self._quiet_until - time.monotonic())
            if pause > 0:
                await asyncio.sleep(pause)
        except asyncio.CancelledError:
            self.leave()
            raise

    def leave(self) -> None:
        """Gives the place back."""
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = max(1, int(self.allowed)) - self.in_flight
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1

    def answered(self) -> None:
        """An answer came: a full round of them allows one more in flight."""
        if self.allowed < self.max_in_flight:
            self.allowed = min(self.max_in_flight, self.allowed + 1 / max(1.0, self.allowed))

    def refused(self) -> None:
        """The endpoint said 429: a quarter less in flight, once a second at most. Only the refused request waits."""
        now = time.monotonic()
        if now - self._shrunk_at >= 1.0:
            self._shrunk_at = now
            self.allowed = max(1.0, self.allowed * 0.75)

    def pause(self, seconds: float | None) -> None:
        """`x-ratelimit-*` headers say that nothing is left: be quiet until the reset, a minute at most."""
        self._quiet_until = max(self._quiet_until, time.monotonic() + min(seconds or 0.0, 60.0))

    def tighten(self, max_in_flight: int, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        """Lowers each bound to a further user's, where that is lower."""
        self.max_in_flight = min(self.max_in_flight, max_in_flight)
        self.allowed = min(self.allowed, self.max_in_flight)
        self._requests.tighten(requests_per_minute)
        self._tokens.tighten(tokens_per_minute)


_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, Pool]] = WeakKeyDictionary()


def shared_pool(
    endpoint: str, max_in_flight: int, requests_per_minute: int | None = None, tokens_per_minute: int | None = None
) -> Pool:
    """The running loop's pool of an endpoint. Models that share an endpoint share it, under the tightest of their limits."""
    pools = _POOLS.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    pool = pools.get(endpoint)
    if pool is None:
        pool = pools[endpoint] = Pool(max_in_flight, requests_per_minute, tokens_per_minute)
    else:
        pool.tighten(max_in_flight, requests_per_minute, tokens_per_minute)
    return pool


class _Rate:
    """Spreads units over time: the next one may go when the earlier ones are paid for."""

    def __init__(self, per_minute: int | None) -> None:
        self._seconds_each = 60.0 / per_minute if per_minute else 0.0
        self._free_at = 0.0

    def tighten(self, per_minute: int | None) -> None:
        """Slows down to a lower rate."""
        self._seconds_each = max(self._seconds_each, 60.0 / per_minute if per_minute else 0.0)

    def delay(self, units: int) -> float:
        """Seconds to wait before these units may go; reserves them."""
        if not self._seconds_each:
            return 0.0
        now = time.monotonic()
        start = max(now, self._free_at)
        self._free_at = start + units * self._seconds_each
        return start - now
