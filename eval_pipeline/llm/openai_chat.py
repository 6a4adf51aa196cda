"""A judge behind any OpenAI-compatible endpoint: Chat Completions, structured output, strict outcomes, own retries."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from eval_pipeline.chat import ChatReply, ChatRequest, ModelIdentity, TokenAlternatives
from eval_pipeline.errors import JudgeIdentityMismatch, ProviderStopped
from eval_pipeline.llm.limits import Budget, Pool
from eval_pipeline.llm.prices import cost
from eval_pipeline.llm.tokens import estimate
from eval_pipeline.llm.transport import ConnectionBrokenError, HttpReply, Transport
from eval_pipeline.vocabulary import Outcome

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
)
"""Parameters that an endpoint may not know; dropped once it says so."""
_CONTEXT_LENGTH = re.compile(
    r"context.?length|maximum context|too many tokens|prompt is too long|context window", re.IGNORECASE
)


class OpenAIChat:
    """Chat Completions at one endpoint.

    Args:
        model: pinned identity, also what is sent unless `request_model` is given.
        base_url: null for OpenAI itself.
        api_key: null where the endpoint needs none. Appears in no message, table or file.
        endpoint: name that stands for the base URL in the ledger; default the base URL.
        request_model: what is sent (an Azure deployment, a served name).
        parameters: request parameters; default temperature 0.
        returns: pattern of a model name that the endpoint is known to answer with.
        transport_retries: further requests after 408/409/429/5xx and broken connections.

    Use as an async context manager, or call `aclose`.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        endpoint: str | None = None,
        request_model: str | None = None,
        revision: str = "",
        parameters: Mapping[str, Any] | None = None,
        max_in_flight: int = 32,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        timeout_seconds: float = 60.0,
        transport_retries: int = 4,
        returns: str | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.base_url, headers = _connection(base_url, api_key)
        given = dict(parameters) if parameters is not None else {"temperature": 0}
        self.identity = ModelIdentity(endpoint or self.base_url, model, revision, given)
        self._request_model = request_model or model
        self._returns = re.compile(returns) if returns else None
        self._timeout, self._retries = timeout_seconds, transport_retries
        self._pool = Pool(max_in_flight, requests_per_minute, tokens_per_minute)
        self._counts_tokens = tokens_per_minute is not None
        self._budget = budget or Budget()
        self._transport = Transport(self.base_url, headers, max_in_flight)
        self._unsupported: set[str] = set()

    async def __aenter__(self) -> OpenAIChat:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.aclose()

    async def reply(self, request: ChatRequest) -> ChatReply:
        """Asks once, retrying what may pass. See `ChatModel`."""
        tokens = sum(estimate(message["content"]) for message in request.messages) if self._counts_tokens else 0
        await self._pool.enter(tokens)
        try:
            return await self._answer(request)
        finally:
            self._pool.leave()

    async def _answer(self, request: ChatRequest) -> ChatReply:  # noqa: C901 - one loop, one branch per kind of outcome
        failure, detail, retries = Outcome.PROVIDER_ERROR, "", 0
        while True:
            self._budget.take()
            started, wait = time.monotonic(), None
            try:
                reply = await self._transport.post("/chat/completions", self._body(request), self._timeout)
            except TimeoutError:
                failure, detail = Outcome.TIMEOUT, f"no whole reply within {self._timeout:g} s"
            except ConnectionBrokenError as broken:
                failure, detail = Outcome.PROVIDER_ERROR, broken.kind
            else:
                self._read_limits(reply)
                if reply.status == 200:
                    found = self._read(reply, request, time.monotonic() - started, retries)
                    if found is not None:
                        self._pool.answered()
                        self._budget.spend(found.cost_usd)
                        return found
                    failure, detail = Outcome.PROVIDER_ERROR, "the reply is not a chat completion"
                elif reply.status in RETRIED and not _quota(reply):
                    failure, detail, wait = Outcome.PROVIDER_ERROR, f"HTTP {reply.status}", _wait(reply)
                    if reply.status == 429:
                        self._pool.refused()
                else:
                    settled = self._refusal(reply)
                    if settled is None:  # a parameter was dropped; the same question again, at no retry
                        continue
                    return settled
            if retries >= self._retries:
                return ChatReply("", failure, detail, transport_retry_count=retries)
            await asyncio.sleep(_backoff(retries, wait))
            retries += 1

    # Asking ------------------------------------------------------------------------------------------------------

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._request_model, "messages": request.messages, **self.identity.parameters}
        if request.schema is not None:
            body["response_format"] = {
                "type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": request.schema},
            }  # fmt: skip
        if request.wants_logprobs:
            body |= {"logprobs": True, "top_logprobs": 20}
        for name in self._unsupported:
            body.pop(name, None)
        return body

    def _read_limits(self, reply: HttpReply) -> None:
        left = reply.headers.get("x-ratelimit-remaining-requests")
        if left == "0":
            self._pool.remaining(0, _duration(reply.headers.get("x-ratelimit-reset-requests")))

    # Reading -----------------------------------------------------------------------------------------------------

    def _read(self, reply: HttpReply, request: ChatRequest, latency: float, retries: int) -> ChatReply | None:
        """The completion as a reply, or null when the body is none."""
        body = reply.json()
        try:
            choice, message = body["choices"][0], body["choices"][0]["message"]
            text, reason = message.get("content") or "", choice.get("finish_reason")
            model, usage = body.get("model"), body.get("usage") or {}
        except (TypeError, KeyError, IndexError, AttributeError):
            return None
        if not isinstance(text, str) or not isinstance(usage, dict):
            return None
        self._check_model(model)
        failure, detail = _failure(message, reason)
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        sent, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
        return ChatReply(
            text="" if failure else text, failure=failure, detail=detail, model=model,
            system_fingerprint=body.get("system_fingerprint"), input_tokens=sent, cached_input_tokens=cached, output_tokens=made,
            cost_usd=cost(self.identity.model, sent, cached, made), latency_seconds=latency, transport_retry_count=retries,
            logprobs=_logprobs(choice) if request.wants_logprobs else None,
        )  # fmt: skip

    def _check_model(self, returned: object) -> None:
        """A returned model that contradicts the declaration fails the run: every verdict would be another judge's.

        Raises:
            JudgeIdentityMismatch: it does.
        """
        if not isinstance(returned, str) or returned in {self.identity.model, self._request_model}:
            return
        if self._returns is not None:
            if self._returns.fullmatch(returned):
                return
        elif _same_model(self.identity.model, returned):
            return
        raise JudgeIdentityMismatch(judge=self._request_model, declared=self.identity.model, returned=returned[:100])

    def _refusal(self, reply: HttpReply) -> ChatReply | None:
        """What an HTTP refusal means for one question; null when the question can be asked again without a parameter.

        Raises:
            ProviderStopped: it concerns the whole run.
        """
        error = reply.json()
        error = error.get("error", error) if isinstance(error, dict) else {}
        error = error if isinstance(error, dict) else {"message": str(error)}
        code, message = str(error.get("code") or error.get("type") or ""), str(error.get("message") or "")
        if reply.status in {401, 403, 404} or _quota(reply):
            raise ProviderStopped(
                endpoint=self.identity.endpoint, reason=f"HTTP {reply.status} {code or 'refused'}; {_advice(reply)}"
            )
        if code in {"content_filter", "content_policy_violation"} or "content management policy" in message:
            return ChatReply("", Outcome.REFUSED, code or "content_filter")
        if reply.status == 413 or code == "context_length_exceeded" or _CONTEXT_LENGTH.search(message):
            return ChatReply("", Outcome.TOO_LONG, code or f"HTTP {reply.status}")
        if reply.status in {400, 422}:
            named = str(error.get("param") or "")
            for name in OPTIONAL:
                if name not in self._unsupported and (
                    named.split(".", maxsplit=1)[0] == name
                    or name in message
                    or (name == "response_format" and "json_schema" in message)
                ):
                    self._unsupported.add(name)
                    return None
        return ChatReply("", Outcome.PROVIDER_ERROR, f"HTTP {reply.status} {code}".strip())


def _connection(base_url: str | None, api_key: str | None) -> tuple[str, dict[str, str]]:
    """Base URL and headers. The SDK is asked for its own URL only where none is given: importing it takes a second."""
    if base_url is None:
        from openai import AsyncOpenAI

        base_url = str(AsyncOpenAI(api_key="unused").base_url)
    headers = {"Accept": "application/json", "User-Agent": "eval-pipeline"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
        if ".azure.com" in base_url:
            headers["api-key"] = api_key
    return base_url.rstrip("/"), headers


def _failure(message: Mapping[str, Any], reason: object) -> tuple[Outcome | None, str | None]:
    if message.get("refusal"):
        return Outcome.REFUSED, str(message["refusal"])[:500]
    if reason == "content_filter":
        return Outcome.REFUSED, "content_filter"
    if reason in {"length", "max_tokens", "max_output_tokens"}:
        return Outcome.TRUNCATED, str(reason)
    return None, None


def _logprobs(choice: Mapping[str, Any]) -> tuple[TokenAlternatives, ...] | None:
    content = (choice.get("logprobs") or {}).get("content")
    if not content:
        return None
    return tuple(
        TokenAlternatives(
            one["token"], tuple((other["token"], other["logprob"]) for other in one.get("top_logprobs") or [one])
        )
        for one in content
    )


def _same_model(declared: str, returned: str) -> bool:
    """Whether a returned name is the declared one with its provider's prefix or date: `gpt-x` may return `gpt-x-2024-07-18`."""
    bare = returned.rsplit("/", 1)[-1]
    mine = declared.rsplit("/", 1)[-1]
    return bare == mine or bool(re.fullmatch(re.escape(mine) + r"-(?:20\d{2}-\d{2}-\d{2}|\d{4,8})", bare))


def _quota(reply: HttpReply) -> bool:
    return (reply.status in {402, 429} and b"insufficient_quota" in reply.body) or reply.status == 402


def _advice(reply: HttpReply) -> str:
    if reply.status == 401:
        return "check the API key"
    if reply.status == 403:
        return "the key may not use this model or endpoint"
    if reply.status == 404:
        return "check `base_url` and the model name"
    return "the quota is used up; raise it or wait"


def _wait(reply: HttpReply) -> float | None:
    """Seconds the endpoint asks to wait, or null when it does not say."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = reply.headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return min(seconds, LONGEST_WAIT)
    return None


def _backoff(retries: int, wait: float | None) -> float:
    """Full jitter over an exponential window (Brooker 2015), never earlier than the endpoint asked."""
    return (wait or 0.0) + random.uniform(0, min(8.0, 0.5 * 2**retries) if wait is None else 0.1)  # noqa: S311 - not a secret


def _duration(text: str | None) -> float | None:
    """Seconds of `6m0s`, `1.5s`, `20ms` or a plain number; null for anything else."""
    if not text:
        return None
    parts = re.findall(r"([\d.]+)(ms|[hms]?)", text)
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0, "ms": 0.001}
    try:
        return sum(float(number) * units[unit] for number, unit in parts) or None
    except ValueError:
        return None
