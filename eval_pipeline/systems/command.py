"""A system that is a program: reads one JSON item a line, writes one JSON answer a line. Keeps its dependencies apart."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.config import SystemConfig
from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.source import Response, checked, expand

LINE_LIMIT = 16 * 1024 * 1024


class Command:
    """Starts the program once and asks it one item at a time; a program that died is started again for the next item."""

    is_live = True

    def __init__(self, name: str, config: SystemConfig, root: Path, environment: Mapping[str, str]) -> None:
        self._name, self._config, self._root = name, config, root
        self._command = [expand(part, environment, name) for part in config.command or ()]
        self._environment = dict(environment)
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def respond(self, item: Mapping[str, Any]) -> Response:
        """Asks the program; whatever goes wrong is the response's error."""
        given = {name: item[name] for name in ("item_id", "user_input", "language", "stratum")}
        async with self._turn:
            started = time.monotonic()
            try:
                async with asyncio.timeout(self._config.timeout_seconds):
                    line = await self._exchange(json.dumps(given, ensure_ascii=False).encode() + b"\n")
            except TimeoutError:
                await self.aclose()
                return Response(error=f"no answer within {self._config.timeout_seconds:g} s")
            except (OSError, ValueError) as error:
                await self.aclose()
                return Response(error=f"the program failed: {error}"[:300])
            return self._read(line, given["item_id"], time.monotonic() - started)

    def _read(self, line: bytes, item_id: str, latency: float) -> Response:
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, UnicodeDecodeError):
            return Response(error="the program's line is not JSON" if line else "the program ended", latency_seconds=latency)
        if not isinstance(row, dict) or row.get("item_id", item_id) != item_id:
            return Response(error="the program answered another item", latency_seconds=latency)
        if row.get("error"):
            return Response(error=str(row["error"])[:300], latency_seconds=latency)
        found = checked(row.get("response"), row.get("retrieved_contexts"))
        return Response(found.response, found.retrieved_contexts, found.error, latency)

    async def _exchange(self, line: bytes) -> bytes:
        if self._process is None or self._process.returncode is not None:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=self._root,
                    env=self._environment, limit=LINE_LIMIT,
                )  # fmt: skip
            except FileNotFoundError as error:
                raise SystemMisconfigured(system=self._name, reason=f"there is no program {self._command[0]!r}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line)
        await self._process.stdin.drain()
        return await self._process.stdout.readline()

    async def aclose(self) -> None:
        """Ends the program."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        self._process = None
