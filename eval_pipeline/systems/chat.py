"""A system that is a bare language model, asked through whatever `ChatModel` the caller gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval_pipeline.chat import ChatModel, ChatRequest
from eval_pipeline.config import SystemConfig
from eval_pipeline.systems.expansion import Expansion
from eval_pipeline.systems.placeholders import fill
from eval_pipeline.systems.response import Response, from_fields, given

PLAIN = ({"role": "user", "content": "{{ user_input }}"},)


class Chat:
    """Sends `messages` with `{{ user_input }}` filled in; the question alone when there are none.

    Raises:
        SystemMisconfigured: a variable of the messages is not set.
    """

    is_live = True

    def __init__(self, config: SystemConfig, model: ChatModel, expansion: Expansion) -> None:
        self._messages = expansion.fill(config.messages or PLAIN)
        expansion.refuse_missing()
        self._model, self._expansion = model, expansion
        self._is_open = False

    async def respond(self, item: Mapping[str, Any]) -> Response:
        """The model's reply; a refusal or failure is the response's error, in the provider's words."""
        if not self._is_open and hasattr(self._model, "__aenter__"):
            self._is_open = True
            await self._model.__aenter__()  # pyright: ignore[reportAttributeAccessIssue]
        reply = await self._model.reply(ChatRequest("system", fill(self._messages, given(item))))
        if reply.failure is not None:
            detail = self._expansion.safe(reply.detail or "")
            error = f"{reply.failure.value}: {detail}" if detail else reply.failure.value
            return Response(error=error, latency_seconds=reply.latency_seconds, raw=reply.detail or "")
        tokens = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
        return from_fields({"response": reply.text, **tokens}, latency_seconds=reply.latency_seconds, raw=reply.text)

    async def aclose(self) -> None:
        """Closes the model when this opened it."""
        if self._is_open:
            self._is_open = False
            await self._model.__aexit__(None, None, None)  # pyright: ignore[reportAttributeAccessIssue]
