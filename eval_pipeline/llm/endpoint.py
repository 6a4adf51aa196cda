"""One model API: its address, its limits, its retries, and what its refusals mean. What is asked is not known here."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit
from weakref import WeakKeyDictionary

from eval_pipeline.errors import ProviderStopped
from eval_pipeline.llm.limits import Budget, Pool, shared_pool
from eval_pipeline.llm.transport import ApiKey, ConnectionBrokenError, HttpReply, Transport
from eval_pipeline.vocabulary import Outcome

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI = "https://api.openai.com/v1"
RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
LONGEST_WAIT = 60.0
OPTIONAL = (
    "response_format",
    "logprobs",
    "top_logprobs",
    "seed",
    "temperature",
    "top_p",
    "max_completion_tokens",
    "max_tokens",
    "text",
)
"""Parameters that an endpoint may not know; dropped once it says so."""
_CONTEXT_LENGTH = re.compile(
    r"context.?length|maximum context|too many tokens|prompt is too long|context window", re.IGNORECASE
)
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one request has no answer."""

    outcome: Outcome
    detail: str
    transport_retry_count: int = 0


@dataclass(frozen=True, slots=True)
class Served:
    """A reply with status 200, and what it took."""

    body: Any
    latency_seconds: float | None = None
    transport_retry_count: int = 0


class Endpoint:
    """Posts to one API within its limits. See `OpenAIChat` for the arguments."""

    def __init__(
        self,
        base_url: str | None,
        api_key: ApiKey | None,
        *,
        name: str | None = None,
        max_in_flight: int = 32,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        timeout_seconds: float = 60.0,
        transport_retries: int = 4,
        budget: Budget | None = None,
    ) -> None:
        url = base_url or OPENAI
        self.base_url = url.rstrip("/")
        self.name = name or without_secrets(url)
        self.budget = budget or Budget()
        self.counts_tokens = tokens_per_minute is not None
        self._limits = (max_in_flight, requests_per_minute, tokens_per_minute)
        self._timeout, self._retries = timeout_seconds, transport_retries
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()
        self._transport = Transport(url, api_key, max_in_flight)
        self._unsupported: set[str] = set()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.aclose()

    def sdk(self) -> AsyncOpenAI:
        """The provider's own client at this address, for files and batches. Close it."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(
            base_url=self.base_url.partition("?")[0],
            default_query=dict(parse_qsl(urlsplit(self.base_url).query)),
            api_key=self._transport.token,
            timeout=self._timeout,
            max_retries=self._retries,
        )

    async def ask(
        self, path: str, body: Mapping[str, Any], read: Callable[[Served], _Found | None], tokens: int = 0
    ) -> _Found | Failure:
        """What `read` makes of the answer; null from it means that the answer has the wrong shape, which may pass.

        Raises:
            ProviderStopped: the refusal concerns the whole run.
            BudgetReached: no call is left.
        """
        pool = self._pool()
        await pool.enter(tokens)
        try:
            return await self._ask(pool, path, body, read)
        finally:
            pool.leave()

    def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = shared_pool(self.name, *self._limits)
        return pool

    async def _ask(
        self, pool: Pool, path: str, body: Mapping[str, Any], read: Callable[[Served], _Found | None]
    ) -> _Found | Failure:
        retries = 0
        while True:
            self.budget.take()
            started, wait = time.monotonic(), None
            reply = await self._send(path, self._known(body), retries)
            if isinstance(reply, Failure):
                failure = reply
            elif reply.status == 200:
                _read_limits(reply.headers, pool)
                found = read(Served(reply.json(), time.monotonic() - started, retries))
                if found is not None:
                    pool.answered()
                    return found
                failure = Failure(Outcome.PROVIDER_ERROR, "the reply has not the shape of an answer", retries)
            elif reply.status in RETRIED and not _quota(reply):
                failure, wait = (
                    Failure(Outcome.PROVIDER_ERROR, f"HTTP {reply.status}", retries),
                    asked_wait(reply.headers),
                )
                if reply.status == 429:
                    _read_limits(reply.headers, pool)
                    pool.refused()
            else:
                refused = self._refusal(reply, body, retries)
                if refused is None:  # a parameter was dropped; the same question again, at no retry
                    continue
                return refused
            if retries >= self._retries:
                return failure
            await asyncio.sleep(backoff(retries, wait))
            retries += 1

    async def _send(self, path: str, body: Mapping[str, Any], retries: int) -> HttpReply | Failure:
        try:
            return await self._transport.post(path, body, self._timeout)
        except TimeoutError:
            return Failure(Outcome.TIMEOUT, f"no whole reply within {self._timeout:g} s", retries)
        except ConnectionBrokenError as broken:
            return Failure(Outcome.PROVIDER_ERROR, broken.kind, retries)

    def _known(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._unsupported:
            return body
        return {name: value for name, value in body.items() if name not in self._unsupported}

    def _refusal(self, reply: HttpReply, body: Mapping[str, Any], retries: int) -> Failure | None:
        """What an HTTP refusal means for one request; null when it can be sent again without a parameter."""
        code, message, parameter = error_of(reply.json())
        if reply.status in {401, 402, 403, 404} or _quota(reply):
            reason = f"HTTP {reply.status} {code or 'refused'}; {_advice(reply.status)}"
            raise ProviderStopped(endpoint=self.name, reason=reason)
        failure = meaning(reply.status, code, message, retries)
        if failure.outcome == Outcome.PROVIDER_ERROR and reply.status in {400, 422}:
            dropped = self._droppable(body, message, parameter)
            if dropped is not None:
                self._unsupported.add(dropped)
                return None
        return failure

    def _droppable(self, body: Mapping[str, Any], message: str, parameter: str) -> str | None:
        """The parameter that an endpoint says it does not know: by its own field first, else by its words."""
        left = [name for name in OPTIONAL if name in body and name not in self._unsupported]
        named = parameter.split(".", maxsplit=1)[0]
        if named in left:
            return named
        mentioned = [
            name
            for name in left
            if re.search(rf"\b{name}\b", message) or (name in {"response_format", "text"} and "json_schema" in message)
        ]
        return mentioned[0] if mentioned else None


def without_secrets(url: str) -> str:
    """A URL without user, password and query: what may stand in tables."""
    parts = urlsplit(url)
    host = parts.netloc.rsplit("@", 1)[-1]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def error_of(body: Any) -> tuple[str, str, str]:
    """Code, message and parameter of an error body, each empty when absent."""
    error = body.get("error", body) if isinstance(body, dict) else {}
    error = error if isinstance(error, dict) else {"message": str(error)}
    return (str(error.get("code") or error.get("type") or ""), str(error.get("message") or ""),
            str(error.get("param") or ""))  # fmt: skip


def meaning(status: int, code: str, message: str, retries: int = 0) -> Failure:
    """What an error of one question means for it."""
    if code in {"content_filter", "content_policy_violation"} or "content management policy" in message:
        return Failure(Outcome.REFUSED, code or "content_filter", retries)
    if status == 413 or code == "context_length_exceeded" or _CONTEXT_LENGTH.search(message):
        return Failure(Outcome.TOO_LONG, code or f"HTTP {status}", retries)
    return Failure(Outcome.PROVIDER_ERROR, f"HTTP {status} {code}".strip(), retries)


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds the endpoint asks to wait, or null when it does not say."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return min(seconds, LONGEST_WAIT)
    return None


def backoff(retries: int, wait: float | None) -> float:
    """Full jitter over an exponential window (Brooker 2015), never earlier than the endpoint asked."""
    return (wait or 0.0) + random.uniform(0, min(8.0, 0.5 * 2**retries) if wait is None else 0.1)  # noqa: S311 - not a secret


def duration(text: str | None) -> float | None:
    """Seconds of `6m0s`, `1.5s`, `20ms` or a plain number; null for anything else."""
    parts = re.findall(r"([\d.]+)(ms|[hms]?)", text or "")
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0, "ms": 0.001}
    try:
        return sum(float(number) * units[unit] for number, unit in parts) or None
    except ValueError:
        return None


def _read_limits(headers: Mapping[str, str], pool: Pool) -> None:
    for what in ("requests", "tokens"):
        if headers.get(f"x-ratelimit-remaining-{what}") == "0":
            pool.pause(duration(headers.get(f"x-ratelimit-reset-{what}")))


def _quota(reply: HttpReply) -> bool:
    return reply.status == 429 and b"insufficient_quota" in reply.body


def _advice(status: int) -> str:
    return {
        401: "check the API key",
        403: "the key may not use this model or endpoint",
        404: "check `base_url` and the model name",
    }.get(status, "the quota is used up; raise it or wait")
