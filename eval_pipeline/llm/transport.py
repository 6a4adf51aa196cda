"""The lean way to POST JSON to a model API: aiohttp and orjson, one session per event loop.

The SDK spends 2 ms of CPU a call on typed models and its HTTP stack; this spends a tenth. The SDK still owns base URL,
headers and authentication, and the mapping of errors is the one place in `openai_chat`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Status, lower-case headers and body of one reply."""

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
    """Posts to one base URL."""

    def __init__(self, base_url: str, headers: Mapping[str, str], max_in_flight: int) -> None:
        self._base = base_url.rstrip("/")
        self._headers = {**headers, "Content-Type": "application/json"}
        self._limit = max_in_flight
        self._session: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, path: str, body: Mapping[str, Any], timeout_seconds: float) -> HttpReply:
        """Sends one request; the timeout covers it whole, slow bodies included.

        Raises:
            TimeoutError: no whole reply in time.
            ConnectionBrokenError: the connection failed.
        """
        import aiohttp

        session = await self._open()
        try:
            async with asyncio.timeout(timeout_seconds):
                async with session.post(self._base + path, data=orjson.dumps(body)) as reply:
                    content = await reply.read()
                    return HttpReply(reply.status, reply.headers, content)
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ConnectionBrokenError(type(error).__name__) from error

    async def _open(self) -> Any:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            await self.aclose()
            self._loop = loop
            connector = aiohttp.TCPConnector(limit=self._limit, keepalive_timeout=60)
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=True,
            )
        return self._session

    async def aclose(self) -> None:
        """Closes the session; one of a loop that is gone is closed as far as it can be."""
        if self._session is None:
            return
        session, self._session = self._session, None
        if self._loop is asyncio.get_running_loop():
            await session.close()
        elif session.connector is not None:
            session.connector._close()  # noqa: SLF001 - its loop is gone; only the sockets are left to close
            session.detach()
