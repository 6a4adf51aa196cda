"""A reply's parts: its text without reasoning blocks, and its one JSON value. What the value means is not known here."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

_OPEN = re.compile(r"<(think|thinking|reasoning|analysis)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:think|thinking|reasoning|analysis)>", re.IGNORECASE)
# A fence opens or closes at a line's start or end. Inside a JSON string neither occurs, whatever the string says.
_FENCE = re.compile(r"^[ \t]*```|```[ \t\r]*$", re.MULTILINE)
_TAG = re.compile(r"^[A-Za-z]{1,20}(?=[\s{])")
_TRAILING_COMMA = re.compile(r",\s{0,20}\}\s{0,20}$")
_NOT_FINITE = re.compile(r":\s{0,20}-?(?:NaN|Infinity)\b")
_REMNANT = re.compile(r"""\s*(?:```\w{0,20}\s*)?(?:\{|\[\s*$|[\]}],?\s*$|["'][^"']{0,40}["']\s*:)""")


@dataclass(frozen=True, slots=True)
class Found:
    """The one JSON value of a reply.

    Attributes:
        source: its text.
        value: null when there is none; a list when there are several.
        around: what the reply says outside the fenced block the value came from.
    """

    source: str
    value: Any
    around: str = ""


def json_of(text: str) -> Found:
    """The reply's one JSON value: bare, or the one fenced object, before or after reasoning blocks are taken away.

    In a longer reply only a fenced object counts: a fenced number may be a quotation.
    """
    for whole in (text.strip(), _without_blocks(text)) if "<" in text else (text.strip(),):
        inside = _unfenced(whole)
        if inside.startswith("{") and (value := _loaded(inside)) is not None:
            return Found(inside, value)
    text = body(text)
    inside = _unfenced(text)
    if inside is not text or inside.startswith("{"):
        return Found(inside, _loaded(inside))
    parts = _FENCE.split(text)
    if len(parts) % 2 == 0:
        return Found(text, None)
    blocks = [_TAG.sub("", part, count=1).strip() for part in parts[1::2]]
    loaded = [
        Found(block, value, "".join(parts[0::2])) for block in blocks if isinstance(value := _loaded(block), dict)
    ]
    return loaded[0] if len(loaded) == 1 else Found(text, [one.value for one in loaded] or None)


def body(text: str) -> str:
    """The reply after its closed reasoning blocks; empty when a block stays open or nothing is left.

    Some servers swallow the opening tag, so a lone closing tag ends a block that began with the reply.
    """
    return _CLOSE.split(_without_blocks(text))[-1].strip()


def holds_remnants(text: str) -> bool:
    """Whether a reply in which no JSON was found holds pieces of some: it is cut or broken, and its lines are no verdict."""
    if _without_blocks(text).startswith("{"):
        return True
    lines = body(text).splitlines()
    return any(map(_REMNANT.match, lines)) or len(_FENCE.findall("\n".join(lines))) % 2 == 1


def is_repeated(source: str, name: str) -> bool:
    """Whether an object gives one field twice, of which a JSON reader would silently keep the last."""
    if source.count(f'"{name}"') < 2 and "\\u" not in source:
        return False
    try:
        pairs = json.loads(source, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return True
    return sum(key == name for key, _ in pairs) > 1


def _without_blocks(text: str) -> str:
    """The reply without its closed reasoning blocks; a tag after the start of the JSON is part of what the JSON says."""
    if "<" not in text:
        return text.strip()
    kept, at = [], 0
    while opened := _OPEN.search(text, at):
        if text[at : opened.start()].lstrip().startswith(("{", "```")):
            break
        closed = _CLOSE.search(text, opened.end())
        if closed is None:
            return ""
        kept.append(text[at : opened.start()])
        at = closed.end()
    return "".join([*kept, text[at:]]).strip()


def _unfenced(whole: str) -> str:
    """The inside of a reply that is one fenced block and nothing else; any other reply as it stands."""
    if not whole.startswith("```"):
        return whole
    marks = [mark.span() for mark in _FENCE.finditer(whole)]
    if len(marks) != 2 or marks[1][1] != len(whole):
        return whole
    return _TAG.sub("", whole[marks[0][1] : marks[1][0]], count=1).strip()


def _loaded(text: str) -> Any:
    """JSON, also with a comma before the last brace or a number that is none, which have one reading each."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        mended = _NOT_FINITE.sub(': "nan"', _TRAILING_COMMA.sub("}", text))
    try:
        return orjson.loads(mended) if mended != text else None
    except orjson.JSONDecodeError:
        return None
