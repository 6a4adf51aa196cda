"""Every paid reply, content-addressed and durable before it is used. SQLite in WAL mode, or PostgreSQL by URL.

What a key covers is decided in `ledgered_chat`; nothing here knows models.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateIndex, CreateTable

from eval_pipeline.chat import ChatReply, TokenAlternatives
from eval_pipeline.errors import NotWritable
from eval_pipeline.verdict_rows import total
from eval_pipeline.vocabulary import Outcome

KEYS_AT_ONCE = 500
SWITCHES = 200
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
    sa.Column("judge", sa.Text, nullable=False, comment="endpoint and model, as JSON"),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("keys", sa.Text, nullable=False, comment="template of each question by ledger key, as JSON"),
    sa.Column("created_at", sa.Float, nullable=False),
)


PAYMENTS = sa.Table(
    "payments",
    _METADATA,
    sa.Column(
        "payer", sa.Text, nullable=False, index=True, comment="the evaluation on whose account the calls were made"
    ),
    sa.Column("call_count", sa.Integer, nullable=False, comment="requests sent, repeated ones included"),
    sa.Column("cost_usd", sa.Float, comment="null when a price is unknown"),
    sa.Column("created_at", sa.Float, nullable=False, index=True, comment="seconds since 1970, UTC"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One reply on its way into the ledger.

    Attributes:
        payer: the evaluation on whose account the call was made; null for nobody's.
        is_kept: false for a failure of the moment, which was paid for and is not replayed.
    """

    ledger_key: str
    model: str
    template_id: str
    reply: ChatReply
    payer: str | None = None
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class Paid:
    """What somebody's calls came to. `cost_usd` is null when any price is unknown, never 0 for unknown."""

    call_count: int
    cost_usd: float | None


class Ledger:
    """The ledger at one SQLAlchemy URL. Use as an async context manager, in one event loop; safe for several processes.

    Look-ups and writes are grouped: while one round trip runs, the next group gathers. Durability then costs one fsync
    per group, and a rerun of thousands of questions a handful of queries. Memory does not grow with the ledger.

    Raises:
        NotWritable: the database cannot be opened or written.
    """

    def __init__(self, url: str) -> None:
        self._url = sa.make_url(url)
        self._is_sqlite = self._url.get_backend_name() == "sqlite"
        if self._is_sqlite and self._url.database:
            path = Path(self._url.database)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise NotWritable(path=path.parent, reason=error.strerror or str(error)) from error
        self._engine = sa.create_engine(self._url, **_engine_options(self._is_sqlite))
        self._create()
        self._wanted: list[tuple[str, asyncio.Future[bytes | None]]] = []
        self._pending: list[tuple[Entry, asyncio.Future[None]]] = []
        self._reader: asyncio.Task[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._known: dict[str, bytes] = {}

    def _create(self) -> None:
        with self._connected() as connection:
            if not self._is_sqlite:
                # `if not exists` looks first and creates then; two processes at once would collide.
                connection.execute(sa.text("select pg_advisory_xact_lock(727001)"))
            known = set(sa.inspect(connection).get_table_names())
            # Only what is missing: to create an index that exists locks its table all the same, against who writes.
            for table in (one for one in _METADATA.sorted_tables if one.name not in known):
                connection.execute(CreateTable(table, if_not_exists=True))
                for index in table.indexes:
                    connection.execute(CreateIndex(index, if_not_exists=True))

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        """A transaction; what the database refuses is said without its password."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            reason = str(error.orig).strip().split("\n", maxsplit=1)[0]
            raise NotWritable(path=self._url.render_as_string(hide_password=True), reason=reason) from error

    async def __aenter__(self) -> Ledger:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in (self._writer, self._reader):
            if task is not None:
                await asyncio.shield(task)
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._engine.dispose()

    # Reading -----------------------------------------------------------------------------------------------------

    async def find(self, ledger_key: str) -> ChatReply | None:
        """The stored reply, flagged cached, whichever process wrote it; null when there is none."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[bytes | None] = loop.create_future()
        self._wanted.append((ledger_key, found))
        if self._reader is None or self._reader.done():
            self._reader = loop.create_task(self._look_up())
        stored = await found
        return None if stored is None else _reply(stored, ledger_key)

    async def _look_up(self) -> None:
        while self._wanted:
            # One turn of the loop lets the questions that start together join one query.
            await asyncio.sleep(0)
            group, self._wanted = self._wanted, []
            try:
                stored = await asyncio.to_thread(self._read, [key for key, _ in group])
            except Exception as error:  # noqa: BLE001 - handed to every waiter
                _fail([future for _, future in group], error)
            else:
                for key, future in group:
                    if not future.done():
                        future.set_result(stored.get(key))

    def _read(self, keys: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        with self._connected() as connection:
            for start in range(0, len(keys), KEYS_AT_ONCE):
                rows = connection.execute(_BY_KEY, {"keys": keys[start : start + KEYS_AT_ONCE]})
                found.update({key: bytes(reply) for key, reply in rows})
        return found

    def preload(self, model: str) -> None:
        """Reads all replies of one model at once, for `get`."""
        with self._connected() as connection:
            rows = connection.execute(sa.select(REPLIES.c.ledger_key, REPLIES.c.reply).where(REPLIES.c.model == model))
            self._known.update({key: bytes(reply) for key, reply in rows})

    def get(self, ledger_key: str) -> ChatReply | None:
        """The stored reply of a preloaded model without waiting, as it was at preloading; null when there is none."""
        stored = self._known.get(ledger_key)
        return None if stored is None else _reply(stored, ledger_key)

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
                _fail([done for _, done in group], error)
            else:
                for _, done in group:
                    if not done.done():
                        done.set_result(None)

    def _write(self, entries: Sequence[Entry]) -> None:
        now = datetime.now(UTC).timestamp()
        first: dict[str, Entry] = {}
        for entry in entries:
            if entry.is_kept:
                first.setdefault(entry.ledger_key, entry)
        rows = [
            {"ledger_key": one.ledger_key, "model": one.model, "template_id": one.template_id,
             "reply": _stored(one.reply), "created_at": now}
            # One order for every process: two groups that share keys cannot wait for each other in a circle.
            for one in sorted(first.values(), key=lambda entry: entry.ledger_key)
        ]  # fmt: skip
        payments = _payments(entries, now)
        with self._connected() as connection:
            if rows:
                connection.execute(_insert_or_keep(self._engine.dialect.name, REPLIES), rows)
            if payments:
                connection.execute(sa.insert(PAYMENTS), payments)

    def paid(self, payers: Sequence[str]) -> Paid:
        """What these payers' calls came to, over every process that ever asked on their account or one below (`payer/...`)."""
        columns = (
            sa.func.coalesce(sa.func.sum(PAYMENTS.c.call_count), 0),
            sa.func.coalesce(sa.func.sum(PAYMENTS.c.cost_usd), 0.0),
            sa.func.count() - sa.func.count(PAYMENTS.c.cost_usd),
        )
        below = (PAYMENTS.c.payer.startswith(f"{payer}/", autoescape=True) for payer in payers)
        theirs = sa.or_(PAYMENTS.c.payer.in_(payers), *below)
        with self._connected() as connection:
            calls, cost, unknown = connection.execute(sa.select(*columns).where(theirs)).one()
        return Paid(int(calls), None if unknown else float(cost))

    # Keeping -----------------------------------------------------------------------------------------------------

    def stats(self) -> list[dict[str, Any]]:
        """Replies, bytes, oldest and newest by model."""
        columns = (
            REPLIES.c.model, sa.func.count().label("reply_count"), sa.func.sum(sa.func.length(REPLIES.c.reply)).label("byte_count"),
            sa.func.min(REPLIES.c.created_at).label("oldest"), sa.func.max(REPLIES.c.created_at).label("newest"),
        )  # fmt: skip
        with self._connected() as connection:
            rows = connection.execute(
                sa.select(*columns).group_by(REPLIES.c.model).order_by(REPLIES.c.model)
            ).mappings()
            return [
                dict(row) | {name: datetime.fromtimestamp(row[name], UTC).isoformat() for name in ("oldest", "newest")}
                for row in rows
            ]

    def prune(self, older_than: timedelta) -> int:
        """Deletes replies older than this, and what was paid then; returns how many replies."""
        before = (datetime.now(UTC) - older_than).timestamp()
        with self._connected() as connection:
            connection.execute(sa.delete(PAYMENTS).where(PAYMENTS.c.created_at < before))
            return connection.execute(sa.delete(REPLIES).where(REPLIES.c.created_at < before)).rowcount

    def export(self) -> Iterator[Mapping[str, Any]]:
        """Every reply as a JSON-ready mapping, oldest first."""
        with self._connected() as connection:
            query = sa.select(REPLIES).order_by(REPLIES.c.created_at).execution_options(yield_per=KEYS_AT_ONCE)
            for row in connection.execute(query).mappings():
                yield {**row, "reply": json.loads(bytes(row["reply"]))}

    # Batches -----------------------------------------------------------------------------------------------------

    def save_batch(self, batch_id: str, judge: str, state: str, keys: Mapping[str, str]) -> None:
        """Remembers a batch, or the new state of one already known."""
        row = {"batch_id": batch_id, "judge": judge, "state": state, "keys": json.dumps(dict(keys)),
               "created_at": datetime.now(UTC).timestamp()}  # fmt: skip
        with self._connected() as connection:
            connection.execute(_insert_or_keep(self._engine.dialect.name, BATCHES), [row])
            connection.execute(sa.update(BATCHES).where(BATCHES.c.batch_id == batch_id).values(state=state))

    def rename_batch(self, batch_id: str, new_id: str, state: str) -> None:
        """Gives a batch the id that the provider gave it."""
        with self._connected() as connection:
            change = sa.update(BATCHES).where(BATCHES.c.batch_id == batch_id)
            connection.execute(change.values(batch_id=new_id, state=state))

    def batches(self, judge: str | None = None) -> list[dict[str, Any]]:
        """Known batches, of one judge or of all, oldest first."""
        query = sa.select(BATCHES).order_by(BATCHES.c.created_at)
        if judge is not None:
            query = query.where(BATCHES.c.judge == judge)
        with self._connected() as connection:
            return [dict(row) | {"keys": json.loads(row["keys"])} for row in connection.execute(query).mappings()]


_BY_KEY = sa.select(REPLIES.c.ledger_key, REPLIES.c.reply).where(
    REPLIES.c.ledger_key.in_(sa.bindparam("keys", expanding=True))
)


def _payments(entries: Sequence[Entry], now: float) -> list[dict[str, object]]:
    """One row a payer: what a group of calls came to."""
    by_payer: dict[str, list[ChatReply]] = defaultdict(list)
    for entry in entries:
        if entry.payer is not None:
            by_payer[entry.payer].append(entry.reply)
    return [
        {
            "payer": payer,
            "call_count": sum(1 + reply.transport_retry_count for reply in replies),
            "cost_usd": total(reply.cost_usd for reply in replies),
            "created_at": now,
        }
        for payer, replies in by_payer.items()
    ]


def _fail(futures: Sequence[asyncio.Future[Any]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
            future.exception()  # marks it as seen should its waiter be cancelled before it reads this


def _engine_options(is_sqlite: bool) -> dict[str, Any]:
    if not is_sqlite:
        return {"pool_pre_ping": True}
    return {"connect_args": {"timeout": 60, "check_same_thread": False}}


@event.listens_for(sa.Engine, "connect")
def _tune_sqlite(connection: Any, _: Any) -> None:
    if type(connection).__module__.startswith("sqlite3"):
        cursor = connection.cursor()
        _switch_to_wal(cursor)
        # A commit must survive `kill -9` and power loss: the reply was paid for.
        cursor.execute("pragma synchronous=full")
        cursor.close()


def _switch_to_wal(cursor: sqlite3.Cursor) -> None:
    """The switch does not wait for a lock even with a busy timeout, so processes that open a new file must."""
    for left in range(SWITCHES, -1, -1):
        try:
            cursor.execute("pragma journal_mode=wal")
        except sqlite3.OperationalError as error:
            if not left or "locked" not in str(error):
                raise
            time.sleep(random.uniform(0.0, 0.1))  # noqa: S311 - not a secret
        else:
            return


def _insert_or_keep(dialect: str, table: sa.Table) -> Any:
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert
    return insert(table).on_conflict_do_nothing()


_STORED = tuple(field.name for field in fields(ChatReply) if field.name not in {"is_cached", "ledger_key"})


def _stored(reply: ChatReply) -> bytes:
    return orjson.dumps({name: value for name in _STORED if (value := getattr(reply, name)) is not None})


def _reply(stored: bytes, ledger_key: str) -> ChatReply:
    return restored(orjson.loads(stored), ledger_key)


def restored(kept: Mapping[str, Any], ledger_key: str) -> ChatReply:
    """The reply behind one kept or exported, flagged cached.

    Raises:
        TypeError, ValueError, KeyError: it is none.
    """
    found = {**kept, "is_cached": True, "ledger_key": ledger_key, "latency_seconds": None, "transport_retry_count": 0}
    if found.get("logprobs"):
        found["logprobs"] = tuple(
            TokenAlternatives(one["token"], tuple((token, value) for token, value in one["alternatives"]))
            for one in found["logprobs"]
        )
    if found.get("failure"):
        found["failure"] = Outcome(found["failure"])
    return ChatReply(**found)
