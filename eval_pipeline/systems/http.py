"""A system behind HTTP: a request template, and JSONPaths from its reply to our fields."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import jsonpath

from eval_pipeline.config import SystemConfig
from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.expansion import Expansion
from eval_pipeline.systems.placeholders import fill
from eval_pipeline.systems.response import RAW_LENGTH, Response, from_fields, given, is_count

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
LONGEST_WAIT_SECONDS = 60.0
LARGEST_BODY = 16 * 1024 * 1024
SHOWN_BODY = 200


class Http:
    """Asks one endpoint. Retries what may pass (429, 5xx, connections), with back-off and `Retry-After`.

    Redirects are not followed: they turn POST into GET, and would carry headers to another host. Cookies are not kept:
    one item's answer must not depend on another's. The proxies of the environment are not used.

    Raises:
        SystemMisconfigured: variables not set, a URL or header that cannot be sent, or a path that is not a JSONPath.
    """

    is_live = True

    def __init__(self, name: str, config: SystemConfig, expansion: Expansion) -> None:
        if config.request is None:
            raise SystemMisconfigured(system=name, reason="it has no `request`")
        self._config, self._method, self._expansion = config, config.request.method, expansion
        self._url = expansion.fill(config.request.url)
        self._headers = expansion.fill(config.request.headers)
        self._params = expansion.fill(config.request.params)
        self._json = expansion.fill(config.request.json_)
        expansion.refuse_missing()
        self._paths = {field: _path(name, field, path) for field, path in config.response.model_dump().items() if path}
        if problem := self._problem():
            raise SystemMisconfigured(system=name, reason=problem)
        self._session: aiohttp.ClientSession | None = None

    def _problem(self) -> str | None:
        if urlsplit(self._url).scheme not in {"http", "https"} or not urlsplit(self._url).netloc:
            return "request.url must begin with http:// or https:// and a host"
        broken = [key for key, value in self._headers.items() if not f"{key}{value}".isprintable()]
        return f"header {', '.join(broken)} has a line break or control character" if broken else None

    async def respond(self, item: Mapping[str, Any]) -> Response:
        """Asks for one item; whatever goes wrong is the response's error."""
        tries = self._config.retries + 1
        response, wait = await self._once(given(item), time.monotonic())
        for attempt in range(self._config.retries):
            if wait is None:
                return response
            await asyncio.sleep(wait or random.uniform(0.5, 1) * min(8.0, 0.5 * 2**attempt))  # noqa: S311 - not a secret
            response, wait = await self._once(given(item), time.monotonic())
        if wait is None:
            return response
        tried = f" ({tries} tries)" if tries > 1 else ""
        return Response(error=f"{response.error}{tried}", latency_seconds=response.latency_seconds, raw=response.raw)

    async def _once(self, asked: Mapping[str, str], started: float) -> tuple[Response, float | None]:
        """The response, and null when it is final; else seconds to wait before the next try, 0 when nobody said."""
        timeout = self._config.timeout_seconds
        try:
            async with asyncio.timeout(timeout):
                status, body, retry_after = await self._send(asked)
        except TimeoutError:
            return self._failed(f"no answer within {timeout:g} s", started), None
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
            return self._failed(f"connection failed: {type(error).__name__}", started), 0.0
        except (aiohttp.ClientError, ValueError) as error:
            return self._failed(f"the request cannot be sent: {type(error).__name__}", started), None
        text = body.decode("utf-8", "replace")
        if problem := _problem_of(status, text, len(body)):
            return self._failed(problem, started, text), retry_after if status in RETRIED else None
        return self._mapped(body, text, time.monotonic() - started), None

    async def _send(self, asked: Mapping[str, str]) -> tuple[int, bytes, float]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
            )  # fmt: skip
        body = None if self._json is None else json.dumps(fill(self._json, asked)).encode()
        headers = self._headers if body is None else {"Content-Type": "application/json", **self._headers}
        url = fill(self._url, asked, lambda text: quote(text.encode("utf-8", "replace"), safe=""))
        async with self._session.request(
            self._method, url, headers=headers,
            params=fill(self._params, asked) or None, data=body, allow_redirects=False,
        ) as reply:  # fmt: skip
            chunks, size = [], 0
            async for chunk in reply.content.iter_chunked(65536):
                chunks.append(chunk)
                size += len(chunk)
                if size > LARGEST_BODY:
                    break
            return reply.status, b"".join(chunks), wait_seconds(reply.headers.get("Retry-After"))

    def _failed(self, error: str, started: float, raw: str = "") -> Response:
        shown = self._expansion.safe(error)
        return Response(
            error=shown if len(shown) <= SHOWN_BODY else f"{shown[:SHOWN_BODY]}…",
            latency_seconds=time.monotonic() - started, raw=raw[:RAW_LENGTH],
        )  # fmt: skip

    def _mapped(self, body: bytes, text: str, latency: float) -> Response:
        try:
            whole = json.loads(body)
        except (ValueError, RecursionError):
            shown = self._expansion.safe(text[:SHOWN_BODY])
            return Response(error=f"the reply is not JSON: {shown}", latency_seconds=latency, raw=text[:RAW_LENGTH])
        found = {field: path.findall(whole) for field, path in self._paths.items()}
        if not found["response"]:
            where = self._config.response.response
            return Response(error=f"the reply has nothing at {where}", latency_seconds=latency, raw=text[:RAW_LENGTH])
        fields = {"response": found["response"][0]}
        if contexts := self._paths.get("retrieved_contexts"):
            is_single = isinstance(contexts, jsonpath.JSONPath) and contexts.singular_query()
            fields["retrieved_contexts"] = _contexts(found["retrieved_contexts"], is_single=is_single)
        for field in ("input_tokens", "output_tokens"):
            fields[field] = next((value for value in found.get(field, []) if is_count(value)), None)
        return from_fields(fields, latency_seconds=latency, raw=text)

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _problem_of(status: int, text: str, size: int) -> str | None:
    if 300 <= status < 400:
        return f"HTTP {status}: redirects are not followed; put the final address into request.url"
    if status >= 400:
        return f"HTTP {status}: {text[: 20 * SHOWN_BODY]}"
    return f"the reply is larger than {LARGEST_BODY} bytes" if size > LARGEST_BODY else None


def wait_seconds(header: str | None, now: datetime | None = None) -> float:
    """What `Retry-After` asks for, in seconds or as a date, at most a minute; 0 when it says nothing readable."""
    if header is None:
        return 0.0
    try:
        wait = float(header)
    except ValueError:
        try:
            when = parsedate_to_datetime(header)
        except ValueError:
            return 0.0
        wait = (when.replace(tzinfo=when.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds()
    return min(max(wait, 0.0), LONGEST_WAIT_SECONDS) if wait == wait else 0.0  # noqa: PLR0124 - NaN


def _path(system: str, field: str, path: str) -> jsonpath.JSONPath | jsonpath.CompoundJSONPath:
    try:
        return jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        raise SystemMisconfigured(system=system, reason=f"response.{field} {path!r} is not a JSONPath") from error


def _contexts(found: list[Any], *, is_single: bool) -> Any:
    """The passages. A path to one place finds a list, one text, or nothing (null); any other path each of them."""
    if not is_single:
        return found[0] if len(found) == 1 and isinstance(found[0], list) else found
    first = found[0] if found else None
    return [first] if isinstance(first, str) else first
