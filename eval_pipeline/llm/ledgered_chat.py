"""A chat model behind the ledger: asks only what was never answered, and once only when asked twice at once."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import nullcontext
from dataclasses import replace

import orjson

from eval_pipeline.chat import ChatModel, ChatReply, ChatRequest, ModelIdentity
from eval_pipeline.llm.ledger import Entry, Ledger
from eval_pipeline.vocabulary import Outcome

PASSING = frozenset({Outcome.PROVIDER_ERROR, Outcome.TIMEOUT, Outcome.NOT_ASKED})
"""Failures of the moment: not replies, so never replayed."""


def ledger_key(identity: ModelIdentity, request: ChatRequest) -> str:
    """Content address of one attempt at one question: everything that can move the reply, nothing that cannot."""
    parts = [
        identity.endpoint, identity.model, identity.revision, dict(identity.parameters), request.messages, request.schema,
        request.sample, request.attempt, request.occasion, request.wants_logprobs,
    ]  # fmt: skip
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=dict)).hexdigest()


class LedgeredChat:
    """Wraps a model. A hit costs no call and is flagged `is_cached`; a miss is durable before it is returned.

    A place of the model's `max_in_flight` is held until its reply is durable, so a kill loses no more replies than that.
    A model without the attribute costs nothing to ask again and is not bounded.

    Args:
        payer: the evaluation on whose account calls are made, for `Ledger.paid`.
    """

    def __init__(self, model: ChatModel, ledger: Ledger, payer: str | None = None) -> None:
        self._model = model
        self._ledger = ledger
        self._payer = payer
        self._in_flight: dict[str, asyncio.Future[ChatReply]] = {}
        bound: int | None = getattr(model, "max_in_flight", None)
        self._places = nullcontext() if bound is None else asyncio.Semaphore(bound)

    @property
    def identity(self) -> ModelIdentity:
        return self._model.identity

    async def reply(self, request: ChatRequest) -> ChatReply:
        """The stored reply, or the model's."""
        key = ledger_key(self._model.identity, request)
        while (asked := self._in_flight.get(key)) is not None:
            try:
                return replace(await asyncio.shield(asked), is_cached=True)
            except asyncio.CancelledError:
                if not asked.cancelled():
                    raise
                # Only whoever asked first was cancelled; the question is still open.
        future: asyncio.Future[ChatReply] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = future
        try:
            reply = await self._ledger.find(key) or await self._ask(key, request)
            future.set_result(reply)
            return reply
        except asyncio.CancelledError:
            future.cancel()
            raise
        except Exception as error:
            future.set_exception(error)
            future.exception()  # marks it as seen when nobody else waits
            raise
        finally:
            del self._in_flight[key]

    async def _ask(self, key: str, request: ChatRequest) -> ChatReply:
        async with self._places:
            reply = replace(await self._model.reply(request), ledger_key=key)
            is_kept = reply.failure not in PASSING
            if is_kept or (self._payer is not None and reply.failure != Outcome.NOT_ASKED):
                entry = Entry(key, self._model.identity.model, request.template_id, reply, self._payer, is_kept)
                await self._ledger.put(entry)
        return reply
