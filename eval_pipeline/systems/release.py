"""The release that a system's own URL tells, read once, without the proxies of the environment."""

from __future__ import annotations

import json
import urllib.request
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import jsonpath

from eval_pipeline.config import ReleaseConfig, SystemConfig
from eval_pipeline.errors import SystemMisconfigured
from eval_pipeline.systems.expansion import Expansion

TIMEOUT_SECONDS = 10
LARGEST_BODY = 1024 * 1024
LONGEST_RELEASE = 200


def read_release(config: SystemConfig, where: ReleaseConfig, system: str, expansion: Expansion) -> str:
    """Reads the release. The request's headers go along when the URL is on the same host, where one token opens both.

    Raises:
        SystemMisconfigured: a variable is not set, no answer, not JSON, or no release at the path.
    """
    url = expansion.fill(where.url)
    asked = expansion.fill(config.request.url) if config.request else ""
    headers = expansion.fill(config.request.headers) if config.request and _origin(asked) == _origin(url) else {}
    expansion.refuse_missing()
    if urlsplit(url).scheme not in {"http", "https"}:
        raise SystemMisconfigured(system=system, reason="the release URL must be http or https")
    try:
        text = release_text(jsonpath.findall(where.path, _json(url, headers)))
    except HTTPError as error:
        raise SystemMisconfigured(system=system, reason=f"the release URL answered HTTP {error.code}") from error
    except OSError as error:
        reason = f"the release URL cannot be reached ({type(error).__name__})"
        raise SystemMisconfigured(system=system, reason=reason) from error
    except (ValueError, RecursionError) as error:
        raise SystemMisconfigured(system=system, reason="the release URL's reply is not JSON") from error
    except jsonpath.JSONPathError as error:
        raise SystemMisconfigured(system=system, reason=f"release.path {where.path!r} is not a JSONPath") from error
    if text is None:
        reason = f"the release URL's reply has no text or number at {where.path}"
        raise SystemMisconfigured(system=system, reason=reason)
    return text


def release_text(found: list[Any]) -> str | None:
    """The release among what a path found; null unless the first is a short text or a number."""
    first = found[0] if found else None
    if isinstance(first, bool) or not isinstance(first, str | int | float):
        return None
    text = str(first).strip()
    return text if text.isprintable() and 0 < len(text) <= LONGEST_RELEASE else None


def _json(url: str, headers: dict[str, str]) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the caller checked the scheme
    with opener.open(request, timeout=TIMEOUT_SECONDS) as reply:
        return json.loads(reply.read(LARGEST_BODY))


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
