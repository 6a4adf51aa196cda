"""A judge behind any OpenAI-compatible endpoint: Chat Completions or Responses, structured output, strict outcomes.

How the two APIs write questions and answers is `completions`; limits and retries are `endpoint`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal

from eval_pipeline.chat import ChatReply, ChatRequest, ModelIdentity
from eval_pipeline.errors import JudgeIdentityMismatch
from eval_pipeline.llm.completions import APIS, Answer
from eval_pipeline.llm.endpoint import Endpoint, Failure, Served
from eval_pipeline.llm.limits import Budget
from eval_pipeline.llm.prices import Price, cost
from eval_pipeline.llm.tokens import estimate
from eval_pipeline.llm.transport import ApiKey


class OpenAIChat:
    """One judge at one endpoint.

    Args:
        model: pinned identity, also what is sent unless `request_model` is given.
        base_url: null for OpenAI itself; may carry a query such as `?api-version=...`.
        api_key: null where the endpoint needs none; a function where the token changes (Entra ID). In no message, table or file.
        endpoint: name that stands for the base URL in the ledger; default the base URL without query and credentials.
        request_model: what is sent (an Azure deployment, a served name).
        revision: weights revision of a self-hosted model.
        parameters: request parameters; default temperature 0.
        max_in_flight: requests at once; judges at one endpoint share the tightest bound.
        requests_per_minute: null for no such limit.
        tokens_per_minute: ditto; input tokens by estimate.
        timeout_seconds: for each request, whole.
        transport_retries: further requests after 408/409/429/5xx and broken connections.
        returns: pattern of a model name that the endpoint is known to answer with.
        prices: USD per million tokens by model, over the shipped table.
        budget: what the run may spend.
        api: which of the provider's two APIs to ask.

    Use as an async context manager, or call `aclose`. Usable from several event loops and threads.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
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
        prices: Mapping[str, Price] | None = None,
        budget: Budget | None = None,
        api: Literal["chat_completions", "responses"] = "chat_completions",
    ) -> None:
        self.endpoint = Endpoint(
            base_url, api_key, name=endpoint, max_in_flight=max_in_flight, requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute, timeout_seconds=timeout_seconds, transport_retries=transport_retries,
            budget=budget,
        )  # fmt: skip
        given = dict(parameters) if parameters is not None else {"temperature": 0}
        self.identity = ModelIdentity(self.endpoint.name, model, revision, given)
        self.path, self._write, self._parse = APIS[api]
        self.max_in_flight = max_in_flight
        self._request_model = request_model or model
        self._returns = re.compile(returns) if returns else None
        self._prices = prices

    async def __aenter__(self) -> OpenAIChat:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes this event loop's connections."""
        await self.endpoint.aclose()

    async def reply(self, request: ChatRequest) -> ChatReply:
        """Asks once, retrying what may pass. See `ChatModel`.

        Raises:
            ProviderStopped: bad key, wrong address, used-up quota.
            JudgeIdentityMismatch: another model answered than declared.
            BudgetReached: no call is left.
        """
        tokens = sum(estimate(message["content"]) for message in request.messages) if self.endpoint.counts_tokens else 0
        found = await self.endpoint.ask(self.path, self.body(request), self._reader(request), tokens)
        if isinstance(found, Failure):
            return ChatReply("", found.outcome, found.detail, transport_retry_count=found.transport_retry_count)
        self.endpoint.budget.spend(found.cost_usd)
        return found

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a request."""
        return self._write(self._request_model, request, self.identity.parameters)

    def read(self, served: Served, *, wants_logprobs: bool = False, price_share: float = 1.0) -> ChatReply | None:
        """The reply in a response body, or null when there is none in it.

        Args:
            served: the body and what it took.
            wants_logprobs: keep token log-probabilities.
            price_share: share of the listed price that is charged.

        Raises:
            JudgeIdentityMismatch: another model answered than declared.
        """
        try:
            answer: Answer = self._parse(served.body)
        except (TypeError, KeyError, IndexError, AttributeError, ValueError):
            return None
        self._check_model(answer.model)
        price = cost(self.identity.model, answer.input_tokens, answer.cached_tokens, answer.output_tokens, self._prices)
        return ChatReply(
            text="" if answer.failure else answer.text, failure=answer.failure, detail=answer.detail, model=answer.model,
            system_fingerprint=answer.system_fingerprint, input_tokens=answer.input_tokens,
            cached_input_tokens=answer.cached_tokens, output_tokens=answer.output_tokens,
            cost_usd=None if price is None else price * price_share, latency_seconds=served.latency_seconds,
            transport_retry_count=served.transport_retry_count, logprobs=answer.logprobs if wants_logprobs else None,
        )  # fmt: skip

    def _reader(self, request: ChatRequest) -> Callable[[Served], ChatReply | None]:
        return lambda served: self.read(served, wants_logprobs=request.wants_logprobs)

    def _check_model(self, returned: str | None) -> None:
        if returned is None or returned in {self.identity.model, self._request_model}:
            return
        if self._returns is not None and self._returns.fullmatch(returned):
            return
        if returned.rsplit("/", 1)[-1] == self.identity.model.rsplit("/", 1)[-1]:
            return  # the same name with or without its provider's prefix
        raise JudgeIdentityMismatch(judge=self._request_model, declared=self.identity.model, returned=returned[:100])
