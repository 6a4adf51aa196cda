"""A system that is a Python function, `module:function`, plain or async."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.config import SystemConfig
from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.source import Response, checked


class PythonCallable:
    """Calls `function(item)`; it returns text, or a mapping with `response` and `retrieved_contexts`.

    Raises:
        SystemMisconfigured: there is no such function.
    """

    is_live = True

    def __init__(self, name: str, config: SystemConfig, root: Path) -> None:
        module, _, function = str(config.function).partition(":")
        if str(root) not in sys.path:
            sys.path.insert(0, str(root))
        try:
            self._function = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            raise SystemMisconfigured(system=name, reason=f"cannot load {config.function!r}: {error}") from error
        self._timeout = config.timeout_seconds

    async def respond(self, item: Mapping[str, Any]) -> Response:
        """Calls the function; an exception is the response's error."""
        started = time.monotonic()
        given = {name: item[name] for name in ("item_id", "user_input", "language", "stratum")}
        try:
            async with asyncio.timeout(self._timeout):
                answered = await (
                    self._function(given) if inspect.iscoroutinefunction(self._function) else asyncio.to_thread(self._function, given)
                )
        except TimeoutError:
            return Response(error=f"no answer within {self._timeout:g} s", latency_seconds=time.monotonic() - started)
        except Exception as error:  # noqa: BLE001 - a system may raise anything; it is its response's error
            return Response(error=f"{type(error).__name__}: {error}"[:300], latency_seconds=time.monotonic() - started)
        whole = {"response": answered} if isinstance(answered, str) else answered
        if not isinstance(whole, Mapping):
            return Response(error=f"the function returned {type(answered).__name__}")
        found = checked(whole.get("response"), whole.get("retrieved_contexts"))
        return Response(found.response, found.retrieved_contexts, found.error, time.monotonic() - started)

    async def aclose(self) -> None:
        """Nothing to close."""
