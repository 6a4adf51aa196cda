"""Counts the calls of a model that has no endpoint of its own, so that a run's budget holds for every judge."""

from __future__ import annotations

from eval_pipeline.chat import ChatModel, ChatReply, ChatRequest, ModelIdentity
from eval_pipeline.llm.limits import Budget


class MeteredChat:
    """Takes each call from the budget before it is made."""

    def __init__(self, model: ChatModel, budget: Budget) -> None:
        self._model = model
        self._budget = budget

    @property
    def identity(self) -> ModelIdentity:
        return self._model.identity

    async def reply(self, request: ChatRequest) -> ChatReply:
        """The model's reply.

        Raises:
            BudgetReached: no call is left.
        """
        self._budget.take()
        return await self._model.reply(request)
