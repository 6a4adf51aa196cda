"""Where responses come from: one protocol, one branch per source, and the fetch that journals them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from eval_pipeline.config import ReleaseConfig, SystemConfig
from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.stages.versioning import nfc
from eval_pipeline.systems.journal import Journal
from eval_pipeline.tables import RESPONSES


@dataclass(frozen=True, slots=True)
class Response:
    """What a system answered for one item. With `error` set there is no response.

    Attributes:
        retrieved_contexts: passages in rank order; null when the system gives none.
        latency_seconds, input_tokens, output_tokens: null when unknown.
        fetched_at: ISO time in UTC.
    """

    response: str | None = None
    retrieved_contexts: list[str] | None = None
    error: str | None = None
    latency_seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    fetched_at: str | None = None


class ResponseSource(Protocol):
    """Answers one item. Whatever goes wrong with one item is a `Response` with `error`, never an exception.

    Attributes:
        is_live: asking costs time or money, so answers are journalled.
    """

    is_live: bool

    async def respond(self, item: Mapping[str, Any]) -> Response: ...

    async def aclose(self) -> None: ...


def expand(text: str, environment: Mapping[str, str], system: str) -> str:
    """Replaces `${NAME}` by its environment variable.

    Raises:
        SystemMisconfigured: a named variable is not set.
    """

    def value(found: re.Match[str]) -> str:
        if found.group(1) not in environment:
            raise SystemMisconfigured(system=system, reason=f"environment variable {found.group(1)} is not set")
        return environment[found.group(1)]

    return re.sub(r"\$\{(\w+)\}", value, text)


def build_source(name: str, config: SystemConfig, root: Path, environment: Mapping[str, str]) -> ResponseSource:
    """The source of one system.

    Raises:
        SystemMisconfigured: it cannot be asked, and why.
    """
    match config.source:
        case "recorded":
            from eval_pipeline.systems.recorded import Recorded

            return Recorded(name, root / str(config.path))
        case "http":
            from eval_pipeline.systems.http import Http

            return Http(name, config, environment)
        case "python":
            from eval_pipeline.systems.python_callable import PythonCallable

            return PythonCallable(name, config, root)
        case "command":
            from eval_pipeline.systems.command import Command

            return Command(name, config, root, environment)
        case "openai":
            raise SystemMisconfigured(system=name, reason="source `openai` needs a chat model from the caller")


def release(config: SystemConfig, environment: Mapping[str, str]) -> str:
    """The system's release: a string, or read from its URL.

    Raises:
        SystemMisconfigured: the URL did not give one.
    """
    if isinstance(config.release, str):
        return expand(config.release, environment, "release")
    from eval_pipeline.systems.http import read_release

    assert isinstance(config.release, ReleaseConfig)
    return read_release(config.release, environment)


async def fetch(
    items: pl.DataFrame,
    source: ResponseSource,
    journal: Journal,
    evaluation_id: str,
    *,
    reused: Mapping[str, Mapping[str, Any]] | None = None,
    max_in_flight: int = 8,
    on_response: Callable[[Response], None] = lambda _: None,
) -> pl.DataFrame:
    """One `responses` row per item: reused, journalled by an earlier try of this evaluation, or asked now."""
    done = journal.done()
    places = asyncio.Semaphore(max_in_flight)

    async def one(item: Mapping[str, Any]) -> dict[str, Any]:
        item_id = item["item_id"]
        if reused and item_id in reused:
            on_response(Response())
            kept = {name: reused[item_id][name] for name in RESPONSES.schema}
            return {**kept, "evaluation_id": evaluation_id, "is_reused": True}
        if item_id not in done:
            async with places:
                answered = await source.respond(item)
            row = {"item_id": item_id, **{name: nfc(value) for name, value in asdict(answered).items()}}
            row["fetched_at"] = row["fetched_at"] or datetime.now(UTC).isoformat()
            if source.is_live:
                journal.add(row)
            done[item_id] = row
        on_response(Response())
        fetched = {**done[item_id], "fetched_at": datetime.fromisoformat(done[item_id]["fetched_at"])}
        return {**fetched, "evaluation_id": evaluation_id, "is_reused": False}

    try:
        rows = await asyncio.gather(*(one(item) for item in items.iter_rows(named=True)))
    finally:
        await source.aclose()
    return RESPONSES.frame(rows)


def checked(response: Any, contexts: Any) -> Response:
    """A response of the right types, or one whose error says which type was wrong."""
    if not isinstance(response, str):
        return Response(error=f"the response is {type(response).__name__}, not text")
    if contexts is not None and not (isinstance(contexts, list) and all(isinstance(one, str) for one in contexts)):
        return Response(error="retrieved_contexts is not a list of texts")
    return Response(response, contexts)
