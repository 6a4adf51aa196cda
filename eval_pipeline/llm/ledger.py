"""Every paid reply, content-addressed and durable before it is used. SQLite in WAL mode, or PostgreSQL by URL.

What a key covers is decided in `ledgered_chat`; nothing here knows models.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import event

from eval_pipeline.chat import ChatReply, TokenAlternatives
from eval_pipeline.errors import NotWritable
from eval_pipeline.vocabulary import Outcome

NEWS_SECONDS = 1.0
CLOCK_SKEW_SECONDS = 30.0
_METADATA = sa.MetaData()
REPLIES = sa.Table(
    "replies",
    _METADATA,
    sa.Column("ledger_key", sa.String(64), primary_key=True, comment="sha256 of everything that can move the reply"),
    sa.Column("model", sa.Text, nullable=False, index=True),
    sa.Column("template_id", sa.Text, nullable=False),
    sa.Column("reply", sa.LargeBinary, nullable=False, comment="the reply as JSON"),
    sa.Column("created_at", sa.Float, nullable=False, index=True, comment="seconds since 1970, UTC"),
)
BATCHES = sa.Table(
    "batches",
    _METADATA,
    sa.Column("batch_id", sa.Text, primary_key=True),
    sa.Column("judge", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("keys", sa.Text, nullable=False, comment="ledger keys of its questions, as JSON"),
    sa.Column("created_at", sa.Float, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One reply on its way into the ledger."""

    ledger_key: str
    model: str
    template_id: str
    reply: ChatReply


class Ledger:
    """The ledger at one SQLAlchemy URL. Use as an async context manager; safe for several processes at once.

    Writes are grouped: while one commit runs, the next group gathers, so durability costs one fsync per group.
    """

    def __init__(self, url: str) -> None:
        self._url = sa.make_url(url)
        if self._url.get_backend_name() == "sqlite" and self._url.database:
            path = Path(self._url.database)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise NotWritable(path=path.parent, reason=error.strerror or str(error)) from error
        self._engine = sa.create_engine(self._url, **_engine_options(self._url))
        self._create()
        self._pending: list[tuple[Entry, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._known: dict[str, bytes] = {}
        self._models: set[str] = set()
        self._read_at = 0.0

    def _create(self) -> None:
        with self._engine.begin() as connection:
            if self._url.get_backend_name() == "postgresql":
                # create_all looks first and creates then; two processes at once would collide.
                connection.execute(sa.text("select pg_advisory_xact_lock(727001)"))
            _METADATA.create_all(connection)

    async def __aenter__(self) -> Ledger:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            await asyncio.shield(self._writer)
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._engine.dispose()

    # Reading -----------------------------------------------------------------------------------------------------

    def preload(self, model: str) -> None:
        """Reads all replies of one model at once: a cached rerun is then a matter of dictionary look-ups."""
        self._models.add(model)
        self._read(REPLIES.c.model == model)

    def get(self, ledger_key: str) -> ChatReply | None:
        """The stored reply of a preloaded model, flagged cached; null when there is none.

        What other processes write is seen within a second: a miss looks for news at most that often.
        """
        stored = self._known.get(ledger_key)
        if stored is None and time.monotonic() - self._read_at > NEWS_SECONDS:
            since = datetime.now(UTC).timestamp() - (time.monotonic() - self._read_at) - CLOCK_SKEW_SECONDS
            self._read(REPLIES.c.model.in_(self._models) & (REPLIES.c.created_at >= since))
            stored = self._known.get(ledger_key)
        return None if stored is None else _reply(stored, ledger_key)

    def _read(self, which: sa.ColumnElement[bool]) -> None:
        self._read_at = time.monotonic()
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(REPLIES.c.ledger_key, REPLIES.c.reply).where(which))
            self._known.update({key: bytes(reply) for key, reply in rows})

    # Writing -----------------------------------------------------------------------------------------------------

    async def put(self, entry: Entry) -> None:
        """Returns once the reply is durable. A key that is already there keeps its first reply."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._pending.append((entry, done))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._drain())
        await done

    async def _drain(self) -> None:
        while self._pending:
            group, self._pending = self._pending, []
            try:
                await asyncio.to_thread(self._write, [entry for entry, _ in group])
            except Exception as error:  # noqa: BLE001 - handed to every waiter
                for _, done in group:
                    if not done.done():
                        done.set_exception(error)
            else:
                for _, done in group:
                    if not done.done():
                        done.set_result(None)

    def _write(self, entries: Sequence[Entry]) -> None:
        now = datetime.now(UTC).timestamp()
        rows = [
            {"ledger_key": one.ledger_key, "model": one.model, "template_id": one.template_id,
             "reply": _stored(one.reply), "created_at": now}
            for one in {entry.ledger_key: entry for entry in entries}.values()
        ]  # fmt: skip
        with self._engine.begin() as connection:
            connection.execute(_insert_or_keep(self._engine.dialect.name, REPLIES), rows)

    # Keeping -----------------------------------------------------------------------------------------------------

    def stats(self) -> list[dict[str, Any]]:
        """Replies, bytes, oldest and newest by model."""
        columns = (
            REPLIES.c.model, sa.func.count().label("reply_count"), sa.func.sum(sa.func.length(REPLIES.c.reply)).label("byte_count"),
            sa.func.min(REPLIES.c.created_at).label("oldest"), sa.func.max(REPLIES.c.created_at).label("newest"),
        )  # fmt: skip
        with self._engine.connect() as connection:
            rows = connection.execute(
                sa.select(*columns).group_by(REPLIES.c.model).order_by(REPLIES.c.model)
            ).mappings()
            return [
                dict(row) | {name: datetime.fromtimestamp(row[name], UTC).isoformat() for name in ("oldest", "newest")}
                for row in rows
            ]

    def prune(self, older_than: timedelta) -> int:
        """Deletes replies older than this; returns how many."""
        before = (datetime.now(UTC) - older_than).timestamp()
        with self._engine.begin() as connection:
            return connection.execute(sa.delete(REPLIES).where(REPLIES.c.created_at < before)).rowcount

    def export(self) -> Iterator[Mapping[str, Any]]:
        """Every reply as a JSON-ready mapping, oldest first."""
        with self._engine.connect() as connection:
            for row in connection.execute(sa.select(REPLIES).order_by(REPLIES.c.created_at)).mappings():
                yield {**row, "reply": json.loads(bytes(row["reply"]))}

    # Batches -----------------------------------------------------------------------------------------------------

    def save_batch(self, batch_id: str, judge: str, state: str, keys: Mapping[str, str]) -> None:
        """Remembers a batch, or its new state."""
        row = {"batch_id": batch_id, "judge": judge, "state": state, "keys": json.dumps(dict(keys)),
               "created_at": datetime.now(UTC).timestamp()}  # fmt: skip
        with self._engine.begin() as connection:
            connection.execute(_insert_or_keep(self._engine.dialect.name, BATCHES), [row])
            connection.execute(sa.update(BATCHES).where(BATCHES.c.batch_id == batch_id).values(state=state))

    def batches(self) -> list[dict[str, Any]]:
        """Known batches, oldest first."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(BATCHES).order_by(BATCHES.c.created_at)).mappings()
            return [dict(row) | {"keys": json.loads(row["keys"])} for row in rows]


def _engine_options(url: sa.URL) -> dict[str, Any]:
    if url.get_backend_name() != "sqlite":
        return {"pool_pre_ping": True}
    return {"connect_args": {"timeout": 60, "check_same_thread": False}}


@event.listens_for(sa.Engine, "connect")
def _tune_sqlite(connection: Any, _: Any) -> None:
    if type(connection).__module__.startswith("sqlite3"):
        cursor = connection.cursor()
        cursor.execute("pragma journal_mode=wal")
        # A commit must survive `kill -9` and power loss: the reply was paid for.
        cursor.execute("pragma synchronous=full")
        cursor.close()


def _insert_or_keep(dialect: str, table: sa.Table) -> Any:
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert
    return insert(table).on_conflict_do_nothing()


def _stored(reply: ChatReply) -> bytes:
    kept = {
        name: value
        for name, value in asdict(reply).items()
        if value is not None and name not in {"is_cached", "ledger_key"}
    }
    return orjson.dumps(kept)


def _reply(stored: bytes, ledger_key: str) -> ChatReply:
    fields = orjson.loads(stored)
    if fields.get("logprobs"):
        fields["logprobs"] = tuple(
            TokenAlternatives(one["token"], tuple((token, value) for token, value in one["alternatives"]))
            for one in fields["logprobs"]
        )
    if fields.get("failure"):
        fields["failure"] = Outcome(fields["failure"])
    return ChatReply(
        **fields | {"is_cached": True, "ledger_key": ledger_key, "latency_seconds": None, "transport_retry_count": 0}
    )
