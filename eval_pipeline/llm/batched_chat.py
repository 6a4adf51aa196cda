"""A judge that is asked by batch instead of one question at a time. How batches work is `batch`."""

from __future__ import annotations

from types import TracebackType

from eval_pipeline.chat import ChatReply, ChatRequest, ModelIdentity
from eval_pipeline.llm.batch import Batches, Collected
from eval_pipeline.llm.ledger import Ledger
from eval_pipeline.llm.openai_chat import OpenAIChat
from eval_pipeline.vocabulary import Outcome

WAITS = "waits for a batch"
"""The detail of a question that was gathered."""


class BatchedChat:
    """A judge that is asked by batch: it answers nothing now, gathers what it is asked, and `submit` sends that off.

    Stands behind a `LedgeredChat`, which answers what earlier batches brought. Use as an async context manager.
    """

    def __init__(self, chat: OpenAIChat, ledger: Ledger, payer: str | None = None) -> None:
        self._chat, self._batches = chat, Batches(chat, ledger, payer)
        self._gathered: list[ChatRequest] = []

    @property
    def identity(self) -> ModelIdentity:
        return self._chat.identity

    @property
    def waiting_count(self) -> int:
        """Questions that had no reply yet."""
        return len(self._gathered)

    async def reply(self, request: ChatRequest) -> ChatReply:
        """`not_asked`, until a batch has brought the reply."""
        self._gathered.append(request)
        return ChatReply("", Outcome.NOT_ASKED, WAITS)

    async def submit(self) -> list[str]:
        """Submits what was gathered and waits in no open batch; returns the ids of the new batches.

        Raises:
            ProviderStopped: the endpoint refuses or cannot be reached.
            BudgetReached: the calls left are fewer; that many were submitted.
        """
        return await self._batches.submit(self._gathered) if self._gathered else []

    async def collect(self) -> Collected:
        """Puts what ended batches answered into the ledger. See `Batches.collect`."""
        return await self._batches.collect()

    async def __aenter__(self) -> BatchedChat:
        await self._chat.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._chat.aclose()
