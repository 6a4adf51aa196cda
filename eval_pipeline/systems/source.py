"""Where responses come from: one protocol, one branch per source, and the fetch that journals them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from eval_pipeline.chat import ChatModel
from eval_pipeline.config import SystemConfig
from eval_pipeline.errors import EvalPipelineError, SystemMisconfigured
from eval_pipeline.systems.expansion import Expansion
from eval_pipeline.systems.journal import STORED, Journal
from eval_pipeline.systems.response import Response, clean, finished, short
from eval_pipeline.tables import RESPONSES


class ResponseSource(Protocol):
    """Answers one item. Whatever goes wrong with one item is a `Response` with `error`, never an exception.

    An error of our own family is for what concerns the whole run: a program that is not there, an exhausted quota.

    Attributes:
        is_live: asking costs time or money, so answers are journalled.
    """

    is_live: bool

    async def respond(self, item: Mapping[str, Any]) -> Response: ...

    async def aclose(self) -> None: ...


def build_source(
    name: str, config: SystemConfig, root: Path, environment: Mapping[str, str], *, chat_model: ChatModel | None = None
) -> ResponseSource:
    """The source of one system.

    Args:
        name: the system, for messages.
        config: its section of `evaluation.yaml`.
        root: folder of the project; paths, modules and programs are found from there.
        environment: variables that `${NAME}` may name; a program inherits all of them.
        chat_model: who answers for source `openai`.

    Raises:
        SystemMisconfigured: it cannot be asked, and why.
    """
    expansion = Expansion(name, environment)
    match config.source:
        case "recorded":
            from eval_pipeline.systems.recorded import Recorded

            path = expansion.fill(config.path)
            expansion.refuse_missing()
            return Recorded(name, path, root)
        case "http":
            from eval_pipeline.systems.http import Http

            return Http(name, config, expansion)
        case "python":
            from eval_pipeline.systems.python_callable import PythonCallable

            return PythonCallable(name, config, root, expansion)
        case "command":
            from eval_pipeline.systems.command import Command

            return Command(name, config, root, environment, expansion)
        case "openai":
            from eval_pipeline.systems.chat import Chat

            if chat_model is None:
                raise SystemMisconfigured(system=name, reason="source `openai` needs a chat model, and none was given")
            return Chat(config, chat_model, expansion)


def release(config: SystemConfig, environment: Mapping[str, str], system: str = "release") -> str:
    """The system's release: a string, or read from its URL now.

    Raises:
        SystemMisconfigured: a variable is not set, or the URL did not give a release.
    """
    expansion = Expansion(system, environment)
    if not isinstance(config.release, str):
        from eval_pipeline.systems.release import read_release

        return read_release(config, config.release, system, expansion)
    text = expansion.fill(config.release)
    expansion.refuse_missing()
    return text


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
    """One `responses` row per item: reused, journalled by an earlier try of this evaluation, or asked now.

    Args:
        items: rows of `golden_items`.
        source: whom to ask; closed at the end.
        journal: open, of this evaluation only. A failed response is recorded as well and is not asked again.
        evaluation_id: of the rows.
        reused: `responses` rows of an earlier evaluation, by item.
        max_in_flight: items asked at the same time.
        on_response: told of every item once, as its response is known.

    Returns:
        Rows in the order of the items.

    Raises:
        EvalPipelineError: what concerns the whole run; answers in flight are waited for and journalled first.
    """
    known = _known(items, reused or {}, journal.done() if source.is_live else {})
    for response, _ in known.values():
        on_response(response)
    todo = (item for item in items.iter_rows(named=True) if item["item_id"] not in known)

    def arrived(item_id: str, response: Response) -> None:
        if source.is_live:
            journal.add(item_id, response)
        known[item_id] = replace(response, raw=""), False
        on_response(response)

    try:
        await _ask_all(todo, source, max_in_flight, arrived)
    finally:
        await source.aclose()
    return RESPONSES.frame(_row(evaluation_id, item_id, *known[item_id]) for item_id in items["item_id"])


async def preview(source: ResponseSource, item: Mapping[str, Any]) -> Response:
    """One item asked outside any evaluation: mapped fields, and in `raw` what the system sent. Closes the source."""
    try:
        return await _ask(source, item)
    finally:
        await source.aclose()


def _known(
    items: pl.DataFrame, reused: Mapping[str, Mapping[str, Any]], done: Mapping[str, Response]
) -> dict[str, tuple[Response, bool]]:
    """Response and whether it is reused, of the items that need not be asked. The journal goes first: it was asked."""
    known: dict[str, tuple[Response, bool]] = {}
    for item_id in items["item_id"]:
        if item_id in done:
            known[item_id] = done[item_id], False
        elif item_id in reused:
            fields: dict[str, Any] = {name: reused[item_id].get(name) for name in STORED}
            when = fields["fetched_at"]
            known[item_id] = Response(**fields | {"fetched_at": when and when.isoformat()}), True
    return known


async def _ask_all(
    todo: Iterator[Mapping[str, Any]],
    source: ResponseSource,
    max_in_flight: int,
    arrived: Callable[[str, Response], None],
) -> None:
    """Asks for all, at most `max_in_flight` at once; after a failure of the whole run nothing new is asked."""
    failures: list[EvalPipelineError] = []

    async def worker() -> None:
        for item in todo:
            if failures:
                return
            try:
                arrived(item["item_id"], await _ask(source, item))
            except EvalPipelineError as error:
                failures.append(error)

    workers = [asyncio.create_task(worker()) for _ in range(max(1, max_in_flight))]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    if failures:
        raise failures[0]


async def _ask(source: ResponseSource, item: Mapping[str, Any]) -> Response:
    """Asks; a source that breaks its promise costs its item, not the run."""
    try:
        response = await source.respond(item)
    except EvalPipelineError:
        raise
    except Exception as error:  # noqa: BLE001 - a source may be anybody's; its failure is the item's error
        response = Response(error=short(f"{type(error).__name__}: {error}"))
    cleaned = {name: clean(getattr(response, name)) for name in ("response", "retrieved_contexts", "error")}
    return finished(replace(response, **cleaned), datetime.now(UTC).isoformat())


def _row(evaluation_id: str, item_id: str, response: Response, is_reused: bool) -> dict[str, Any]:
    row = {name: value for name, value in asdict(response).items() if name != "raw"}
    when = datetime.fromisoformat(response.fetched_at) if response.fetched_at else None
    return {**row, "evaluation_id": evaluation_id, "item_id": item_id, "fetched_at": when, "is_reused": is_reused}
