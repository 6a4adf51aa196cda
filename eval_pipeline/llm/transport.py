"""The lean way to talk JSON to a model API: aiohttp and orjson, one session per event loop.

The SDK spends 2 ms of CPU a call on typed models and its HTTP stack; this spends a tenth. What a status means is not
known here; that is `endpoint`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakKeyDictionary

import orjson

ApiKey = str | Callable[[], str | Awaitable[str]]
"""A key, or a function that gives the token of the moment (Entra ID and the like), plain or async."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Status, headers (looked up without regard to case) and body of one reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON, or null when it is not."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None


class ConnectionBrokenError(Exception):
    """The connection failed or ended before the reply was whole. `kind` is a word without addresses or keys."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Transport:
    """Posts to one base URL, which may carry a query (`?api-version=...`). Usable from several event loops and threads."""

    def __init__(self, base_url: str, api_key: ApiKey | None, max_in_flight: int) -> None:
        parts = urlsplit(base_url)
        self._base = urlunsplit(parts._replace(query="", fragment="")).rstrip("/")
        self._query = f"?{parts.query}" if parts.query else ""
        self._is_azure = (parts.hostname or "").endswith(".azure.com")
        self._api_key = api_key
        self._limit = max_in_flight
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()

    async def post(self, path: str, body: object, timeout_seconds: float) -> HttpReply:
        """Sends one request; the timeout covers it whole, slow bodies included.

        Raises:
            TimeoutError: no whole reply in time.
            ConnectionBrokenError: the connection failed.
        """
        import aiohttp

        session = self._session()
        try:
            async with asyncio.timeout(timeout_seconds):
                headers = {"Authorization": f"Bearer {await self.token()}"} if callable(self._api_key) else None
                async with session.post(
                    self._base + path + self._query, data=orjson.dumps(body), headers=headers, allow_redirects=False
                ) as reply:
                    return HttpReply(reply.status, reply.headers, await reply.read())
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ConnectionBrokenError(type(error).__name__) from error

    async def token(self) -> str:
        """The key of the moment; `none` where the endpoint needs none."""
        given = self._api_key() if callable(self._api_key) else self._api_key
        return (await given if inspect.isawaitable(given) else given) or "none"

    def _session(self) -> Any:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            import aiohttp

            headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "eval-pipeline"}
            if isinstance(self._api_key, str):
                headers["Authorization"] = f"Bearer {self._api_key}"
                if self._is_azure:
                    headers["api-key"] = self._api_key
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._limit, keepalive_timeout=60),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return session

    async def aclose(self) -> None:
        """Closes this loop's session, and what is left of loops that are gone; those still running close their own."""
        here = asyncio.get_running_loop()
        for loop in list(self._sessions):
            if loop is not here and not loop.is_closed():
                continue
            session = self._sessions.pop(loop, None)
            if session is None:  # another thread was faster
                continue
            if loop is here:
                await session.close()
            elif session.connector is not None:
                session.connector._close()  # noqa: SLF001 - its loop is gone; only the sockets are left to close
                session.detach()
