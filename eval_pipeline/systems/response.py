"""One answer of a system, checked and cleaned. How an answer is obtained belongs to the sources."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from eval_pipeline.stages.versioning import nfc

GIVEN = ("item_id", "user_input", "language", "stratum")
"""What a system is told of an item: never the reference."""

ERROR_LENGTH = 400
RAW_LENGTH = 20_000
LARGEST_COUNT = 2**53
UNSEEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")
"""White space, control characters, and those that turn or hide text."""


@dataclass(frozen=True, slots=True)
class Response:
    """What a system answered for one item. With `error` set there is no response.

    Attributes:
        response: the answer; an empty text is an answer.
        retrieved_contexts: passages in rank order; null when the system gives none.
        error: why there is no response; null when there is one.
        latency_seconds, input_tokens, output_tokens: null when unknown.
        fetched_at: ISO time in UTC; set when the answer arrives in `fetch`.
        raw: what the system sent, for people who map it; never stored.
    """

    response: str | None = None
    retrieved_contexts: list[str] | None = None
    error: str | None = None
    latency_seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    fetched_at: str | None = None
    raw: str = field(default="", repr=False, compare=False)


def given(item: Mapping[str, Any]) -> dict[str, str]:
    """The fields of an item that a system may see; one that the item lacks is an empty text."""
    return {name: "" if item.get(name) is None else str(item[name]) for name in GIVEN}


def from_fields(fields: Mapping[str, Any], *, latency_seconds: float | None = None, raw: str = "") -> Response:
    """A response from what a system or a file said of it.

    Args:
        fields: `response`, `retrieved_contexts`, `error`, `latency_seconds`, `input_tokens`, `output_tokens`; others
            are ignored. A latency that it gives goes before the measured one.
        latency_seconds: measured wall time.
        raw: what was sent.

    Returns:
        The response; when a type is wrong, one whose `error` says which.
    """
    problem = problem_of(fields)
    told = fields.get("latency_seconds")
    measured = latency_seconds if told is None or problem else float(told)
    if problem or fields.get("error"):
        return Response(
            error=short(problem or fields["error"]) or "failed without a reason",
            latency_seconds=measured,
            raw=raw[:RAW_LENGTH],
        )
    return Response(
        clean(fields["response"]), clean(fields.get("retrieved_contexts")), None, measured,
        fields.get("input_tokens"), fields.get("output_tokens"), raw=raw[:RAW_LENGTH],
    )  # fmt: skip


def problem_of(fields: Mapping[str, Any]) -> str | None:
    """What is wrong with the types of the fields; null when nothing is."""
    error, contexts, latency = fields.get("error"), fields.get("retrieved_contexts"), fields.get("latency_seconds")
    if error is not None and not isinstance(error, str):
        return f"error is {_kind(error)}, not text"
    if not error and not isinstance(fields.get("response"), str):
        return f"response is {_kind(fields.get('response'))}, not text"
    if not (contexts is None or (isinstance(contexts, list | tuple) and all(isinstance(one, str) for one in contexts))):
        return "retrieved_contexts is not a list of texts"
    if latency is not None and not (_is_number(latency) and math.isfinite(latency) and latency >= 0):
        return "latency_seconds is not a number of seconds"
    for name in ("input_tokens", "output_tokens"):
        if (count := fields.get(name)) is not None and not is_count(count):
            return f"{name} is not a count"
    return None


def is_count(value: object) -> bool:
    """Whether a value can be a number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT


def clean(value: Any) -> Any:
    """Text (also in lists) in NFC, without lone surrogates, which no table can hold; anything else as it is."""
    if isinstance(value, list | tuple):
        return [clean(one) for one in value]
    return nfc(_whole(value)) if isinstance(value, str) else value


def short(text: object, length: int = ERROR_LENGTH) -> str:
    """Foreign text as one line for an error message: no control characters, at most `length` characters."""
    line = UNSEEN.sub(" ", _whole(str(text))).strip()
    return line if len(line) <= length else line[: length - 1] + "…"


def finished(response: Response, fetched_at: str) -> Response:
    """The response with its time. One with neither answer nor error gets an error; one with both keeps the error."""
    error = response.error or ("no response" if response.response is None else None)
    return replace(response, response=None if error else response.response, fetched_at=fetched_at, error=error)


def _whole(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_COUNT


def _kind(value: object) -> str:
    return "missing" if value is None else type(value).__name__
