"""A system behind HTTP: a request template, and JSONPaths from its reply to our fields."""

from __future__ import annotations

import asyncio
import json
import random
import time
import urllib.request
from collections.abc import Mapping
from typing import Any

import jsonpath

from eval_pipeline.config import ReleaseConfig, SystemConfig
from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.source import Response, checked, expand

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})


class Http:
    """Asks one endpoint. Retries what may pass (429, 5xx, connections), with back-off and `Retry-After`."""

    is_live = True

    def __init__(self, name: str, config: SystemConfig, environment: Mapping[str, str]) -> None:
        assert config.request is not None
        self._name, self._config, self._request = name, config, config.request
        self._url = expand(self._request.url, environment, name)
        self._headers = {key: expand(value, environment, name) for key, value in self._request.headers.items()}
        self._session: Any = None

    async def respond(self, item: Mapping[str, Any]) -> Response:
        """Asks for one item; whatever goes wrong is the response's error."""
        started = time.monotonic()
        error = "not asked"
        for attempt in range(self._config.retries + 1):
            try:
                async with asyncio.timeout(self._config.timeout_seconds):
                    status, body, wait = await self._send(item)
            except TimeoutError:
                error, wait = f"no answer within {self._config.timeout_seconds:g} s", None
            except OSError as broken:
                error, wait = f"connection failed: {type(broken).__name__}", None
            else:
                if status < 400:
                    return self._mapped(body, time.monotonic() - started)
                error = f"HTTP {status}"
                if status not in RETRIED:
                    break
            if attempt < self._config.retries:
                await asyncio.sleep(wait if wait is not None else random.uniform(0, min(8.0, 0.25 * 2**attempt)))  # noqa: S311
        return Response(error=error, latency_seconds=time.monotonic() - started)

    async def _send(self, item: Mapping[str, Any]) -> tuple[int, bytes, float | None]:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        body = fill(self._request.json_, item)
        params = {key: str(fill(value, item)) for key, value in self._request.params.items()}
        async with self._session.request(
            self._request.method, self._url, headers=self._headers, params=params or None, json=body
        ) as reply:
            wait = reply.headers.get("Retry-After")
            return reply.status, await reply.read(), min(float(wait), 60.0) if wait and wait.replace(".", "", 1).isdigit() else None

    def _mapped(self, body: bytes, latency: float) -> Response:
        paths = self._config.response
        try:
            whole = json.loads(body)
        except (json.JSONDecodeError, UnicodeDecodeError):
            return Response(error="the reply is not JSON", latency_seconds=latency)
        texts = jsonpath.findall(paths.response, whole)
        contexts = None if paths.retrieved_contexts is None else jsonpath.findall(paths.retrieved_contexts, whole)
        if contexts and len(contexts) == 1 and isinstance(contexts[0], list):
            contexts = contexts[0]
        if not texts:
            return Response(error=f"the reply has nothing at {paths.response}", latency_seconds=latency)
        found = checked(texts[0], contexts)
        counts = [_count(path, whole) for path in (paths.input_tokens, paths.output_tokens)]
        return Response(found.response, found.retrieved_contexts, found.error, latency, *counts)

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()


def _count(path: str | None, whole: Any) -> int | None:
    found = jsonpath.findall(path, whole) if path else []
    return found[0] if found and isinstance(found[0], int) else None


def fill(template: Any, item: Mapping[str, Any]) -> Any:
    """The template with `{{ field }}` replaced inside its strings; as data, so no text can break out of the JSON."""
    if isinstance(template, dict):
        return {key: fill(value, item) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(value, item) for value in template]
    if not isinstance(template, str):
        return template
    filled = template
    for name in ("user_input", "item_id", "language", "stratum"):
        if template.strip() == f"{{{{ {name} }}}}":
            return item[name]
    pieces = filled.split("{{")
    return pieces[0] + "".join(_piece(piece, item) for piece in pieces[1:])


def _piece(piece: str, item: Mapping[str, Any]) -> str:
    name, closing, rest = piece.partition("}}")
    known = name.strip() in {"user_input", "item_id", "language", "stratum"}
    return f"{item[name.strip()]}{rest}" if closing and known else "{{" + piece


def read_release(config: ReleaseConfig, environment: Mapping[str, str]) -> str:
    """The release that a system's own URL tells.

    Raises:
        SystemMisconfigured: no answer, or nothing at the path.
    """
    url = expand(config.url, environment, "release")
    if not url.startswith(("http://", "https://")):
        raise SystemMisconfigured(system="release", reason="the release URL must be http or https")
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:  # noqa: S310 - the scheme is checked above
            whole = json.loads(reply.read())
    except (OSError, ValueError) as error:
        raise SystemMisconfigured(system="release", reason=f"the release URL gave no JSON ({type(error).__name__})") from error
    found = jsonpath.findall(config.path, whole)
    if not found or not isinstance(found[0], str | int | float):
        raise SystemMisconfigured(system="release", reason=f"the release URL's reply has nothing at {config.path}")
    return str(found[0])
