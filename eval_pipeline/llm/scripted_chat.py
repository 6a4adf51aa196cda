"""The shipped fake: a chat model that answers as a function says. For tests and examples."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from eval_pipeline.chat import ChatReply, ChatRequest, ModelIdentity

Answer = Callable[[ChatRequest], str | ChatReply | Awaitable[str | ChatReply]]


class ScriptedChat:
    """Answers each request with `answer(request)`, plain or async.

    Attributes:
        requests: every request so far, in order.
    """

    def __init__(self, answer: Answer, *, model: str = "scripted", endpoint: str = "scripted") -> None:
        self._answer = answer
        self.identity = ModelIdentity(endpoint, model)
        self.requests: list[ChatRequest] = []

    async def reply(self, request: ChatRequest) -> ChatReply:
        """The scripted reply; text becomes a reply of this model at no cost."""
        self.requests.append(request)
        answered = self._answer(request)
        if inspect.isawaitable(answered):
            answered = await answered
        if isinstance(answered, str):
            return ChatReply(answered, model=self.identity.model, cost_usd=0.0)
        return answered
