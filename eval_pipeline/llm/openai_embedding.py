"""Embeddings of an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from eval_pipeline.chat import ModelIdentity
from eval_pipeline.errors import ProviderStopped
from eval_pipeline.llm.endpoint import Endpoint, Failure, Served
from eval_pipeline.llm.limits import Budget
from eval_pipeline.llm.transport import ApiKey

TEXTS_AT_ONCE = 256


class OpenAIEmbedding:
    """Asks `/embeddings`; texts asked before are not asked again. Use as an async context manager."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: ApiKey | None = None,
        endpoint: str | None = None,
        max_in_flight: int = 16,
        timeout_seconds: float = 60.0,
        transport_retries: int = 4,
        budget: Budget | None = None,
    ) -> None:
        self._endpoint = Endpoint(
            base_url, api_key, name=endpoint, max_in_flight=max_in_flight, timeout_seconds=timeout_seconds,
            transport_retries=transport_retries, budget=budget,
        )  # fmt: skip
        self.identity = ModelIdentity(self._endpoint.name, model)
        self._known: dict[str, list[float]] = {}

    async def __aenter__(self) -> OpenAIEmbedding:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._endpoint.aclose()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text. A blank text is the zero vector and is not sent: endpoints refuse it.

        Raises:
            ProviderStopped: the endpoint refuses, or gives no vectors after the retries.
        """
        new = [text for text in dict.fromkeys(texts) if text.strip() and text not in self._known]
        parts = [new[start : start + TEXTS_AT_ONCE] for start in range(0, len(new), TEXTS_AT_ONCE)]
        await asyncio.gather(*map(self._ask, parts))
        width = len(next(iter(self._known.values()), []))
        return [self._known.get(text) or [0.0] * width for text in texts]

    async def _ask(self, texts: list[str]) -> None:
        def read(served: Served) -> list[list[float]] | None:
            return _vectors(served.body, len(texts))

        found = await self._endpoint.ask("/embeddings", {"model": self.identity.model, "input": texts}, read)
        if isinstance(found, Failure):
            reason = f"no embeddings: {found.outcome}, {found.detail}"
            raise ProviderStopped(endpoint=self._endpoint.name, reason=reason)
        self._known |= zip(texts, found, strict=True)


def _vectors(body: Any, count: int) -> list[list[float]] | None:
    """Vectors in the order of the texts, or null when the body does not hold `count` of them."""
    try:
        rows = sorted(body["data"], key=lambda row: row["index"])
        vectors = [[float(value) for value in row["embedding"]] for row in rows]
    except (TypeError, KeyError, AttributeError, ValueError):
        return None
    return vectors if [row["index"] for row in rows] == list(range(count)) and all(vectors) else None
