"""Responses as they arrive, durably: a run that dies goes on from the last line. It knows no system and no table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from filelock import FileLock, Timeout

from eval_pipeline.errors import NotWritable
from eval_pipeline.systems.response import Response

STORED = tuple(one.name for one in fields(Response) if one.name != "raw")


class Journal:
    """An append-only JSONL file of one evaluation, open in one process at a time.

    A line torn by a crash is ignored, and cut off when the next run opens the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FileLock(f"{path}.lock")
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            self._file = self._path.open("ab")
            self._file.truncate(self._whole())
            _sync_folder(self._path.parent)
        except Timeout as error:
            raise NotWritable(path=self._path.name, reason="another run of this evaluation is at work") from error
        except OSError as error:
            self._close()
            raise NotWritable(path=self._path.name, reason=error.strerror or type(error).__name__) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.release()

    def done(self) -> dict[str, Response]:
        """What is recorded, by item; the last line of an item counts. Lines that are not a response are passed over."""
        return dict(self._read())

    def add(self, item_id: str, response: Response) -> None:
        """Appends one response; it is on the disk on return.

        Raises:
            NotWritable: the disk is full or gone.
        """
        if self._file is None:
            raise RuntimeError("the journal is not open")
        row = {"item_id": item_id, **{name: value for name, value in asdict(response).items() if name != "raw"}}
        try:
            self._file.write(json.dumps(row).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise NotWritable(path=self._path.name, reason=error.strerror or type(error).__name__) from error

    def _whole(self) -> int:
        """Length of the file up to its last complete line."""
        return self._path.read_bytes().rfind(b"\n") + 1 if self._path.exists() else 0

    def _read(self) -> Iterator[tuple[str, Response]]:
        if not self._path.exists():
            return
        with self._path.open("rb") as lines:
            for line in lines:
                row = _row(line) if line.endswith(b"\n") else None
                if row is not None:
                    stored: dict[str, Any] = {name: row.get(name) for name in STORED}
                    yield row["item_id"], Response(**stored)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("item_id"), str) else None


def _sync_folder(folder: Path) -> None:
    """Makes a new file's name durable; not every system can open a folder."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
