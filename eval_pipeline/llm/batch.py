"""Questions at the provider's batch discount, over `/files` and `/batches`: submitted, polled and collected into the ledger.

Live and batch answers share one ledger, so a collected batch is a cached rerun. Whoever killed whatever when: a batch is
on record before it exists, is found again by that record, and is collected once however often it is tried.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from eval_pipeline.chat import ChatReply, ChatRequest
from eval_pipeline.errors import BudgetReached, ProviderStopped
from eval_pipeline.llm.endpoint import Failure, Served, error_of, meaning
from eval_pipeline.llm.ledger import Entry, Ledger
from eval_pipeline.llm.ledgered_chat import PASSING, ledger_key
from eval_pipeline.llm.openai_chat import OpenAIChat
from eval_pipeline.llm.prices import BATCH_SHARE

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

QUESTIONS_PER_BATCH = 50_000
BYTES_PER_BATCH = 190_000_000
"""The provider's limits: 50,000 lines, 200 MB."""
SUBMITTING, COLLECTED, LOST = "submitting", "collected", "lost"
ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
CLOSED = frozenset({COLLECTED, LOST})
LOST_AFTER_SECONDS = 600.0
"""A batch that was on its way for so long and that the provider does not list was never made."""
_MARK = "eval_pipeline_batch"


@dataclass(slots=True)
class Collected:
    """What came out of ended batches.

    Attributes:
        reply_count: replies now in the ledger, unusable ones included.
        failed: why a line has no reply, by ledger key; asked again next time.
        unanswered: ledger keys that an expired or cancelled batch never reached; asked again next time.
        cost_usd: of the replies; null as soon as one price is unknown.
    """

    reply_count: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    unanswered: list[str] = field(default_factory=list)
    cost_usd: float | None = 0.0


class Batches:
    """The batches of one judge.

    Args:
        chat: the judge; its endpoint, key and budget are used.
        ledger: where replies and the state of batches are kept.
        questions_per_batch: most questions in one batch.

    Attributes:
        judge: what the ledger keeps this judge's batches under.
    """

    def __init__(
        self,
        chat: OpenAIChat,
        ledger: Ledger,
        payer: str | None = None,
        *,
        questions_per_batch: int = QUESTIONS_PER_BATCH,
    ) -> None:
        self._chat, self._ledger, self._payer, self._most = chat, ledger, payer, questions_per_batch
        self.judge = json.dumps([chat.identity.endpoint, chat.identity.model])

    async def submit(self, requests: Sequence[ChatRequest]) -> list[str]:
        """Submits what has neither a reply nor a place in an open batch; returns the ids of the new batches.

        Raises:
            ProviderStopped: the endpoint refuses or cannot be reached.
            BudgetReached: the calls left are fewer; that many were submitted.
        """
        async with self._client() as client:
            await self._recover(client)
            wanted, stopped = self._affordable(await self._missing(requests))
            ids = [await self._submit(client, lines) for lines in _parts(self._lines(wanted), self._most)]
        if stopped is not None:
            raise stopped
        return ids

    async def poll(self) -> dict[str, str]:
        """The provider's state of each batch that is not collected yet, by id.

        Raises:
            ProviderStopped: the endpoint refuses or cannot be reached.
        """
        async with self._client() as client:
            await self._recover(client)
            for row in await self._open():
                if row["state"] != SUBMITTING:
                    await self._save(row, (await client.batches.retrieve(row["batch_id"])).status)
        return {row["batch_id"]: row["state"] for row in await self._open()}

    async def collect(self) -> Collected:
        """Puts the replies of every ended batch into the ledger. Questions without one are free to be asked again.

        Raises:
            ProviderStopped: the endpoint refuses or cannot be reached.
            JudgeIdentityMismatch: another model answered than declared.
        """
        found = Collected()
        async with self._client() as client:
            await self._recover(client)
            for row in await self._open():
                if row["state"] == SUBMITTING:
                    continue
                batch = await client.batches.retrieve(row["batch_id"])
                if batch.status in ENDED:
                    await self._collect(client, batch, row["keys"], found)
                await self._save(row, COLLECTED if batch.status in ENDED else batch.status)
        return found

    # Submitting --------------------------------------------------------------------------------------------------

    async def _missing(self, requests: Sequence[ChatRequest]) -> dict[str, ChatRequest]:
        by_key = {ledger_key(self._chat.identity, request): request for request in requests}
        waiting = {key for row in await self._open() for key in row["keys"]}
        asked = [key for key in by_key if key not in waiting]
        replies = await asyncio.gather(*map(self._ledger.find, asked))
        return {key: by_key[key] for key, reply in zip(asked, replies, strict=True) if reply is None}

    def _affordable(self, wanted: dict[str, ChatRequest]) -> tuple[dict[str, ChatRequest], BudgetReached | None]:
        taken: dict[str, ChatRequest] = {}
        for key, request in wanted.items():
            try:
                self._chat.endpoint.budget.take()
            except BudgetReached as reached:
                return taken, reached
            taken[key] = request
        return taken, None

    def _lines(self, wanted: Mapping[str, ChatRequest]) -> Iterator[tuple[str, str, bytes]]:
        for key, request in wanted.items():
            line = {
                "custom_id": key,
                "method": "POST",
                "url": f"/v1{self._chat.path}",
                "body": self._chat.body(request),
            }
            yield key, request.template_id, orjson.dumps(line) + b"\n"

    async def _submit(self, client: AsyncOpenAI, lines: Sequence[tuple[str, str, bytes]]) -> str:
        import openai

        mark = f"local-{uuid.uuid4().hex}"
        keys = {key: template_id for key, template_id, _ in lines}
        await asyncio.to_thread(self._ledger.save_batch, mark, self.judge, SUBMITTING, keys)
        try:
            content = b"".join(line for _, _, line in lines)
            file = await client.files.create(file=("questions.jsonl", content), purpose="batch")
            # Not retried: a reply that got lost may have made the batch. It would be found by its mark.
            batch = await client.with_options(max_retries=0).batches.create(
                input_file_id=file.id,
                endpoint=f"/v1{self._chat.path}",  # pyright: ignore[reportArgumentType]
                completion_window="24h",
                metadata={_MARK: mark},
            )
        except openai.APIStatusError:
            await asyncio.to_thread(self._ledger.save_batch, mark, self.judge, LOST, {})
            raise
        await asyncio.to_thread(self._ledger.rename_batch, mark, batch.id, batch.status)
        return batch.id

    async def _recover(self, client: AsyncOpenAI) -> None:
        """Finds the batches whose submitter was killed before it learnt their ids."""
        lost = {row["batch_id"]: row for row in await self._open() if row["state"] == SUBMITTING}
        if not lost:
            return
        async for batch in client.batches.list(limit=100):
            row = lost.pop((batch.metadata or {}).get(_MARK, ""), None)
            if row is not None:
                await asyncio.to_thread(self._ledger.rename_batch, row["batch_id"], batch.id, batch.status)
            if not lost or batch.created_at < min(one["created_at"] for one in lost.values()) - LOST_AFTER_SECONDS:
                break
        for row in lost.values():
            if time.time() - row["created_at"] > LOST_AFTER_SECONDS:
                await self._save(row, LOST)

    # Collecting --------------------------------------------------------------------------------------------------

    async def _collect(self, client: AsyncOpenAI, batch: Batch, keys: Mapping[str, str], found: Collected) -> None:
        open_ = dict(keys)
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id is None:
                continue
            content = (await client.files.content(file_id)).content
            entries = [
                Entry(key, self._chat.identity.model, open_.pop(key), reply, self._payer)
                for key, reply in self._replies(content, open_, found)
            ]
            await asyncio.gather(*map(self._ledger.put, entries))
            for entry in entries:
                found.reply_count += 1
                cost = entry.reply.cost_usd
                found.cost_usd = None if cost is None or found.cost_usd is None else found.cost_usd + cost
                self._chat.endpoint.budget.spend(cost)
        left = [key for key in open_ if key not in found.failed]
        if batch.status == "failed":
            reasons = (batch.errors and batch.errors.data) or []
            found.failed |= dict.fromkeys(left, f"batch failed: {reasons[0].code if reasons else 'no reason given'}")
        else:
            found.unanswered += left

    def _replies(self, content: bytes, open_: Mapping[str, str], found: Collected) -> Iterator[tuple[str, ChatReply]]:
        for line in content.split(b"\n"):
            key, reply = self._reply(line)
            if key not in open_:
                continue
            if reply.failure in PASSING:
                found.failed[key] = reply.detail or ""
            else:
                yield key, reply

    def _reply(self, line: bytes) -> tuple[str, ChatReply]:
        """The key and the reply of one line of an output or error file; an empty key when the line is none."""
        try:
            row = orjson.loads(line)
            key, response, error = str(row["custom_id"]), row.get("response") or {}, row.get("error")
            status, body = int(response.get("status_code") or 0), response.get("body")
        except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError, ValueError):
            return "", ChatReply("")
        reply = self._chat.read(Served(body), wants_logprobs=True, price_share=BATCH_SHARE) if status == 200 else None
        if reply is None:
            failure = _failure(status, body, error)
            reply = ChatReply("", failure.outcome, failure.detail)
        return key, replace(reply, ledger_key=key)

    # State -------------------------------------------------------------------------------------------------------

    async def _open(self) -> list[dict[str, Any]]:
        rows = await asyncio.to_thread(self._ledger.batches, self.judge)
        return [row for row in rows if row["state"] not in CLOSED]

    async def _save(self, row: Mapping[str, Any], state: str) -> None:
        await asyncio.to_thread(self._ledger.save_batch, row["batch_id"], self.judge, state, row["keys"])

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[AsyncOpenAI]:
        import openai

        try:
            async with self._chat.endpoint.sdk() as client:
                yield client
        except openai.APIStatusError as error:
            code, _, _ = error_of(error.body)
            reason = f"batch: HTTP {error.status_code} {code}".strip()
            raise ProviderStopped(endpoint=self._chat.identity.endpoint, reason=reason) from error
        except openai.OpenAIError as error:
            reason = f"batch: {type(error).__name__}"
            raise ProviderStopped(endpoint=self._chat.identity.endpoint, reason=reason) from error


def _failure(status: int, body: object, error: object) -> Failure:
    code, message, _ = error_of(body or error)
    return meaning(status, code, message)


def _parts(lines: Iterator[tuple[str, str, bytes]], most: int) -> Iterator[list[tuple[str, str, bytes]]]:
    part: list[tuple[str, str, bytes]] = []
    size = 0
    for line in lines:
        if part and (len(part) >= most or size + len(line[2]) > BYTES_PER_BATCH):
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line[2])
    if part:
        yield part
