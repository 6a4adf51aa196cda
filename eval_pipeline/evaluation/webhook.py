"""Posts one text to a webhook as Slack takes it. The URL is a secret: it is in no message and no log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

TRIES = 3
PASSING = {408, 429, 500, 502, 503, 504}


def post(url: str, text: str, *, sleep: Callable[[float], None] = time.sleep, timeout: float = 10) -> str | None:
    """Sends `{"text": ...}`, again when the receiver is busy. Null when it arrived, else why it did not."""
    if not url.startswith(("http://", "https://")):
        return "the webhook is no http(s) URL"
    body = json.dumps({"text": text}, ensure_ascii=False).encode()
    failure = ""
    for attempt in range(TRIES):
        if attempt:
            sleep(2.0**attempt)
        try:
            request = Request(url, body, {"Content-Type": "application/json; charset=utf-8"})  # noqa: S310
            with urlopen(request, timeout=timeout):  # noqa: S310
                return None
        except HTTPError as error:
            error.close()
            failure = f"HTTP {error.code}"
            if error.code not in PASSING:
                break
        except (URLError, OSError, HTTPException, ValueError) as error:
            failure = type(getattr(error, "reason", None) or error).__name__
    return failure
