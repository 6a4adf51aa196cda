"""A real HTTP server on the loopback interface that counts what it was asked, and rows of golden items."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import polars as pl
import pytest

Answer = tuple[int, dict[str, str], bytes]


class Loopback:
    """The system under evaluation. `answer` gives status, headers and body; `seen` holds every request."""

    def __init__(self) -> None:
        self.answer: Callable[[dict[str, Any]], Answer] = lambda seen: self.json({"response": seen["json"]["query"]})
        self.seen: list[dict[str, Any]] = []
        self.lock = threading.Lock()
        loopback = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    sent = json.loads(body) if body else None
                except ValueError:
                    sent = None
                seen = {"method": self.command, "path": self.path, "headers": dict(self.headers), "json": sent}
                with loopback.lock:
                    loopback.seen.append(seen)
                status, headers, answer = loopback.answer(seen)
                if status == 0:
                    self.close_connection = True
                    return
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = do_PUT = _serve  # noqa: N815 - the names that http.server calls

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    @staticmethod
    def json(body: Any, status: int = 200, **headers: str) -> Answer:
        return status, headers, json.dumps(body).encode()

    def counts(self) -> Counter[str]:
        with self.lock:
            return Counter(seen["json"]["query"] for seen in self.seen)


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    server = Loopback()
    yield server
    server.server.shutdown()
    server.thread.join()
    server.server.server_close()


@pytest.fixture
def items() -> Callable[..., pl.DataFrame]:
    def make(*ids: str, **columns: list[str]) -> pl.DataFrame:
        rows = {
            "item_id": list(ids),
            "user_input": [f"question {one}" for one in ids],
            "language": ["en"] * len(ids),
            "stratum": ["faq"] * len(ids),
            "reference": ["the secret reference"] * len(ids),
        }
        return pl.DataFrame(rows | columns)

    return make
