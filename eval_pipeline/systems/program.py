"""One running copy of a program that answers line by line. It knows no system, only lines."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LINE_LIMIT = 16 * 1024 * 1024
TAIL_BYTES = 4000
SHOWN_TAIL = 300


class Ended(Exception):  # noqa: N818 - a fact, not a failure of ours
    """The program ended instead of answering."""


class Program:
    """Starts when it is first asked, in a session of its own so that its children end with it."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._command, self._folder = command, folder
        # A pipe makes Python keep lines back until a buffer is full, and an answer kept back is never read.
        self._environment = {**environment, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._tail = bytearray()

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def last_words(self) -> str:
        """The end of what the program wrote to stderr."""
        return self._tail.decode("utf-8", "replace").strip()[-SHOWN_TAIL:]

    async def ask(self, line: bytes, item_id: str) -> tuple[dict[str, Any], str]:
        """Sends one line and reads up to the answer that carries `item_id`.

        Raises:
            Ended: the program ended first.
            OSError: it cannot be started.
            ValueError: a line is longer than 16 MiB.
        """
        process = self._process or await self._start()
        if process.stdin is None or process.stdout is None:
            raise Ended("the program has no pipes")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its last words matter more, see below
            process.stdin.write(line)
            await process.stdin.drain()
        try:
            while read := await process.stdout.readline():
                answer = _object(read)
                if answer is not None and answer.get("item_id") == item_id:
                    return answer, read.decode("utf-8", "replace").strip()
        except ValueError as error:
            raise ValueError(f"the program wrote a line longer than {LINE_LIMIT} bytes") from error
        await self.stop(patience_seconds=1)
        raise Ended(f"the program ended with exit status {process.returncode} and no answer with this item_id")

    async def _start(self) -> asyncio.subprocess.Process:
        self._tail.clear()
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self._folder, env=self._environment,
            limit=LINE_LIMIT, start_new_session=True,
        )  # fmt: skip
        self._listener = asyncio.create_task(self._listen(self._process))
        return self._process

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        while process.stderr is not None and (read := await process.stderr.read(4096)):
            self._tail += read
            del self._tail[:-TAIL_BYTES]

    async def stop(self, patience_seconds: float = 0) -> None:
        """Ends the program and its children; first by end of input when there is patience for it."""
        process, listener = self._process, self._listener
        self._process = self._listener = None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if patience_seconds:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), patience_seconds)
        _kill(process)
        await process.wait()
        if listener is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(listener, 1)


def find_program(command: Sequence[str], folder: Path, path: str | None) -> str | None:
    """Why the program cannot be started from the folder; null when it can."""
    if not command:
        return "`command` is empty"
    program = command[0]
    place = str(folder / program) if "/" in program else program
    return None if shutil.which(place, path=path or os.defpath) else f"there is no program {program!r} that can be run"


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
