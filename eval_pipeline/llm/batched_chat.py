"""A judge that is asked by batch instead of one question at a time. How batches work is `batch`."""

from __future__ import annotations

from types import TracebackType

from eval_pipeline.chat import ChatReply, ChatRequest, ModelIdentity
from eval_pipeline.llm.batch import Batches
from eval_pipeline.llm.ledger import Ledger
from eval_pipeline.llm.openai_chat import OpenAIChat
from eval_pipeline.vocabulary import Outcome


class BatchedChat:
    """A judge that is asked by batch: it answers nothing now, gathers what it is asked, and submits that at the end.

    Stands behind a `LedgeredChat`, which answers what earlier batches brought. Use as an async context manager.

    Attributes:
        submitted: ids of the batches submitted at the end.
        waiting_count: questions that had no reply yet.
    """

    def __init__(self, chat: OpenAIChat, ledger: Ledger) -> None:
        self._chat, self._batches = chat, Batches(chat, ledger)
        self._gathered: list[ChatRequest] = []
        self.submitted: list[str] = []

    @property
    def identity(self) -> ModelIdentity:
        return self._chat.identity

    @property
    def waiting_count(self) -> int:
        return len(self._gathered)

    async def reply(self, request: ChatRequest) -> ChatReply:
        """`not_asked`, until a batch has brought the reply."""
        self._gathered.append(request)
        return ChatReply("", Outcome.NOT_ASKED, "waits for a batch")

    async def __aenter__(self) -> BatchedChat:
        await self._chat.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._gathered:
                self.submitted = await self._batches.submit(self._gathered)
        finally:
            await self._chat.aclose()
