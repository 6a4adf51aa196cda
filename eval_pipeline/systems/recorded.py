"""Responses recorded in a JSONL file: item_id, response, retrieved_contexts, latency_seconds, error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.source import Response, checked


class Recorded:
    """Answers from a file, read once. An item that is not in it failed: `no recorded response`.

    Raises:
        SystemMisconfigured: the file cannot be read, or a line is wrong; the first such line is named.
    """

    is_live = False

    def __init__(self, name: str, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise SystemMisconfigured(system=name, reason=f"cannot read {path.name}: {getattr(error, 'strerror', None) or error}") from error
        self._rows: dict[str, Response] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                self._add(name, path, number, line)

    def _add(self, name: str, path: Path, number: int, line: str) -> None:
        where = f"{path.name}:{number}"
        try:
            row = json.loads(line)
            item_id = row["item_id"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise SystemMisconfigured(system=name, reason=f"{where} is not a JSON object with item_id") from error
        if item_id in self._rows:
            raise SystemMisconfigured(system=name, reason=f"{where}: item_id {item_id!r} occurs twice")
        if row.get("error"):
            self._rows[item_id] = Response(error=str(row["error"]), latency_seconds=row.get("latency_seconds"))
            return
        answered = checked(row.get("response"), row.get("retrieved_contexts"))
        if answered.error:
            raise SystemMisconfigured(system=name, reason=f"{where}: {answered.error}")
        self._rows[item_id] = Response(answered.response, answered.retrieved_contexts, None, row.get("latency_seconds"))

    async def respond(self, item: Mapping[str, Any]) -> Response:
        """The recorded response."""
        return self._rows.get(item["item_id"], Response(error="no recorded response"))

    async def aclose(self) -> None:
        """Nothing to close."""
