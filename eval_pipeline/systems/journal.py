"""Responses as they arrive, durably: a run that dies goes on from the last line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any


class Journal:
    """An append-only JSONL file of one evaluation. A line torn by a crash is ignored and overwritten by the next run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        whole = self._whole()
        self._file = self._path.open("ab")
        self._file.truncate(whole)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def _whole(self) -> int:
        """Length of the file up to its last complete line."""
        if not self._path.exists():
            return 0
        return self._path.read_bytes().rfind(b"\n") + 1

    def done(self) -> dict[str, dict[str, Any]]:
        """What is recorded, by item; the last line of an item counts."""
        if not self._path.exists():
            return {}
        lines = self._path.read_bytes()[: self._whole()].split(b"\n")
        rows = [json.loads(line) for line in lines if line.strip()]
        return {row["item_id"]: row for row in rows}

    def add(self, row: dict[str, Any]) -> None:
        """Appends one response; it is durable on return."""
        if self._file is None:
            raise RuntimeError("the journal is not open")
        self._file.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        self._file.flush()
        os.fdatasync(self._file.fileno())
