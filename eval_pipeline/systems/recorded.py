"""Responses recorded in a JSONL file: item_id, response, retrieved_contexts, latency_seconds, error, token counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.response import Response, clean, from_fields, problem_of, short

SHOWN_PROBLEMS = 5


class Recorded:
    """Answers from a file, read once. An item that is not in it failed: `no recorded response`.

    Args:
        name: the system.
        path: as in `evaluation.yaml`; a relative one may not leave `root`, not through a link either.
        root: folder of the project.

    Raises:
        SystemMisconfigured: the path leaves the project, the file cannot be read, or lines are wrong (the first named).
    """

    is_live = False

    def __init__(self, name: str, path: str, root: Path) -> None:
        whole = (root / path).resolve()
        if not Path(path).is_absolute() and not whole.is_relative_to(root.resolve()):
            reason = f"path {path!r} leaves the project; move the file, or give its absolute path"
            raise SystemMisconfigured(system=name, reason=reason)
        self._rows: dict[str, Response] = {}
        try:
            with whole.open("rb") as lines:
                problems = [f"line {number}: {problem}" for number, problem in self._problems(lines)]
        except OSError as error:
            raise SystemMisconfigured(system=name, reason=f"cannot read {path!r}: {error.strerror}") from error
        if problems:
            more = f"; and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
            raise SystemMisconfigured(system=name, reason=f"{path!r}: {'; '.join(problems[:SHOWN_PROBLEMS])}{more}")

    def _problems(self, lines: Iterator[bytes]) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(lines, 1):
            text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
            if text and (problem := self._add(text)):
                yield number, problem

    def _add(self, line: bytes) -> str | None:
        try:
            row = json.loads(line.decode())
        except (ValueError, RecursionError):
            return "not JSON in UTF-8"
        if not isinstance(row, dict):
            return f"a {type(row).__name__}, not a JSON object"
        if not isinstance(row.get("item_id"), str):
            return "item_id is missing" if row.get("item_id") is None else "item_id is not text"
        item_id = clean(row["item_id"])
        problem = f"item_id {short(item_id, 80)!r} occurs twice" if item_id in self._rows else problem_of(row)
        if row.get("error") and row.get("response"):
            problem = "has both a response and an error"
        if problem is None:
            self._rows[item_id] = from_fields(row)
        return problem

    async def respond(self, item: Mapping[str, Any]) -> Response:
        """The recorded response."""
        return self._rows.get(clean(item["item_id"]), Response(error="no recorded response"))

    async def aclose(self) -> None:
        """Nothing to close."""
