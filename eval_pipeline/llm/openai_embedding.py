"""Embeddings of an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from eval_pipeline.chat import ModelIdentity
from eval_pipeline.errors import ProviderStopped


class OpenAIEmbedding:
    """Asks `/embeddings`; texts asked before are not asked again. Use as an async context manager."""

    def __init__(self, model: str, *, base_url: str | None = None, api_key: str | None = None, endpoint: str | None = None,
                 timeout_seconds: float = 60.0) -> None:  # fmt: skip
        from openai import AsyncOpenAI

        self._client = AsyncOpenAI(base_url=base_url, api_key=api_key or "none", timeout=timeout_seconds)
        self.identity = ModelIdentity(endpoint or str(self._client.base_url), model)
        self._known: dict[str, list[float]] = {}

    async def __aenter__(self) -> OpenAIEmbedding:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.close()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text.

        Raises:
            ProviderStopped: the endpoint refuses or cannot be reached after the SDK's retries.
        """
        import openai

        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            try:
                found = await self._client.embeddings.create(model=self.identity.model, input=new)
            except openai.OpenAIError as error:
                raise ProviderStopped(
                    endpoint=self.identity.endpoint, reason=f"embeddings: {type(error).__name__}"
                ) from error
            self._known |= {text: list(one.embedding) for text, one in zip(new, found.data, strict=True)}
        return [self._known[text] for text in texts]
