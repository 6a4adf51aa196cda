"""A system that is a Python function, `module:function`, plain or async."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import threading
import time
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

from eval_pipeline.config import SystemConfig
from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.expansion import Expansion
from eval_pipeline.systems.response import Response, from_fields, given


class PythonCallable:
    """Calls `function(item)`; it returns text, or a mapping with `response` and, if it likes, the other fields.

    The item is a mapping of texts: item_id, user_input, language, stratum. A plain function runs in a thread of its
    own, so one that never returns costs its item and not the run.

    Raises:
        SystemMisconfigured: there is no such function, or its module fails on import.
    """

    is_live = True

    def __init__(self, name: str, config: SystemConfig, root: Path, expansion: Expansion) -> None:
        self._function = _load(name, str(config.function), root, expansion)
        self._timeout, self._expansion = config.timeout_seconds, expansion

    async def respond(self, item: Mapping[str, Any]) -> Response:
        """Calls the function; an exception is the response's error."""
        started = time.monotonic()
        timer = asyncio.timeout(self._timeout)
        try:
            async with timer:
                answered = await self._answer(given(item))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a system may raise anything; it is its response's error
            own = self._expansion.safe(f"{type(error).__name__}: {error}")
            return Response(
                error=f"no answer within {self._timeout:g} s" if timer.expired() else own,
                latency_seconds=time.monotonic() - started,
            )
        latency = time.monotonic() - started
        fields = {"response": answered} if isinstance(answered, str) else answered
        if not isinstance(fields, Mapping):
            error = f"the function returned {type(answered).__name__}, not text or a mapping"
            return Response(error=error, latency_seconds=latency, raw=repr(answered))
        return from_fields(fields, latency_seconds=latency, raw=repr(answered))

    async def _answer(self, item: dict[str, str]) -> Any:
        is_async = inspect.iscoroutinefunction(self._function)
        answered = self._function(item) if is_async else await _in_thread(self._function, item)
        return await answered if inspect.isawaitable(answered) else answered

    async def aclose(self) -> None:
        """Nothing to close."""


def _load(name: str, function: str, root: Path, expansion: Expansion) -> Callable[[dict[str, str]], Any]:
    """The function. The project's folder goes first while its module loads, then last: it may not shadow others."""
    module, _, attribute = function.partition(":")
    if not module or not attribute:
        raise SystemMisconfigured(system=name, reason=f"function {function!r} is not of the form module:function")
    folder = str(root)
    sys.path.insert(0, folder)
    try:
        found = attrgetter(attribute)(importlib.import_module(module))
    except (Exception, SystemExit) as error:
        reason = f"cannot load {function!r}: {expansion.safe(f'{type(error).__name__}: {error}')}"
        raise SystemMisconfigured(system=name, reason=reason) from error
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)
    if not callable(found):
        raise SystemMisconfigured(system=name, reason=f"{function!r} is {type(found).__name__}, not a function")
    return found


async def _in_thread(function: Callable[[dict[str, str]], Any], item: dict[str, str]) -> Any:
    """Calls in a daemon thread. A pool's threads are waited for at exit, and one stuck call would hang the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(answered: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(answered)
        else:
            future.set_exception(error)

    def call() -> None:
        answered: Any = None
        failed: BaseException | None = None
        try:
            answered = function(item)
        except StopIteration:
            failed = RuntimeError("the function raised StopIteration")
        except BaseException as error:  # noqa: BLE001 - carried to the event loop
            failed = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, answered, failed)

    threading.Thread(target=call, name="system-under-evaluation", daemon=True).start()
    return await future
