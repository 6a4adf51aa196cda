"""A system that is a program: one JSON item a line on stdin, one JSON answer a line on stdout."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.config import SystemConfig
from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.expansion import Expansion
from eval_pipeline.systems.program import Ended, Program, find_program
from eval_pipeline.systems.response import Response, from_fields, given


class Command:
    """Runs the program without a shell, in the project's folder, and asks each copy one item at a time.

    One copy, or as many as `max_in_flight` says when it is set. An answer carries the `item_id` of its item; lines that
    carry none, such as a program's own remarks, are passed over. A copy that dies or is too slow costs the item it was
    asked, and the next item gets a new one. The time limit of a copy's first item includes its start.

    Raises:
        SystemMisconfigured: there is no such program, or a variable is not set.
    """

    is_live = True

    def __init__(
        self, name: str, config: SystemConfig, root: Path, environment: Mapping[str, str], expansion: Expansion
    ) -> None:
        command = expansion.fill(config.command or ())
        expansion.refuse_missing()
        if problem := find_program(command, root, environment.get("PATH")):
            raise SystemMisconfigured(system=name, reason=problem)
        self._name, self._timeout, self._expansion = name, config.timeout_seconds, expansion
        copies = config.max_in_flight if "max_in_flight" in config.model_fields_set else 1
        self._copies = [Program(command, root, environment) for _ in range(copies)]
        self._idle: asyncio.LifoQueue[Program] | None = None

    async def respond(self, item: Mapping[str, Any]) -> Response:
        """Asks an idle copy; whatever goes wrong is the response's error."""
        if self._idle is None:
            self._idle = asyncio.LifoQueue()
            for copy in self._copies:
                self._idle.put_nowait(copy)
        program = await self._idle.get()
        try:
            return await self._ask(program, given(item))
        finally:
            self._idle.put_nowait(program)

    async def _ask(self, program: Program, asked: dict[str, str]) -> Response:
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout):
                row, line = await self._answer(program, asked)
        except TimeoutError:
            await program.stop()
            return self._failed(f"no answer within {self._timeout:g} s", program, started)
        except (FileNotFoundError, PermissionError) as error:
            reason = f"cannot start the program: {error.strerror}"
            raise SystemMisconfigured(system=self._name, reason=reason) from error
        except (Ended, OSError, ValueError) as error:
            await program.stop()
            return self._failed(str(error), program, started)
        except asyncio.CancelledError:
            await program.stop()
            raise
        found = from_fields(row, latency_seconds=time.monotonic() - started, raw=line)
        return found if found.error is None else self._failed(found.error, program, started, line, is_told=True)

    async def _answer(self, program: Program, asked: dict[str, str]) -> tuple[dict[str, Any], str]:
        """The answer's object and line. A copy that had ended quietly after its last answer is started once more."""
        line = json.dumps(asked).encode() + b"\n"
        was_used = program.is_running
        try:
            return await program.ask(line, asked["item_id"])
        except Ended:
            if not was_used:
                raise
            await program.stop()
            return await program.ask(line, asked["item_id"])

    def _failed(
        self, error: str, program: Program, started: float, raw: str = "", *, is_told: bool = False
    ) -> Response:
        tail = "" if is_told else program.last_words
        shown = self._expansion.safe(f"{error}: {tail}" if tail else error)
        return Response(error=shown, latency_seconds=time.monotonic() - started, raw=raw)

    async def aclose(self) -> None:
        """Ends the copies: end of input first, then by force."""
        await asyncio.gather(*(copy.stop(patience_seconds=2) for copy in self._copies))
        self._idle = None
