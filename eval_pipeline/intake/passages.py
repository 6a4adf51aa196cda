"""A cell or field of contexts as a list of passages: lists, lists written as text, and the objects of Hugging Face sets."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

TEXTS = ("text", "texts", "sentences", "contexts", "context", "passages", "passage_text", "paragraphs", "documents", "content",
         "page_content", "snippet")  # fmt: skip
"""Names under which sets keep a passage, or its parts, in an object; the first that is there is taken."""


def contexts(value: Any, how: str | None) -> list[str]:
    """A list of passages. One string is a list only when it is written as one, or `how` says how to read it.

    An object of parallel lists (`{title: [...], sentences: [[...]]}`) and a list of objects give their texts; a passage
    in parts is put together.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(value, Mapping):
        value = _inside(value)
    if isinstance(value, list):
        return [_passage(one) for one in value]
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} where a list of texts belongs")
    if how == "text":
        return [value]
    if how == "lines":
        return [line for line in value.split("\n") if line.strip()]
    for name, read in (("json", json.loads), ("python", ast.literal_eval)):
        if how in {None, name} and value.lstrip().startswith("["):
            try:
                found = read(value)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            if isinstance(found, list) and all(isinstance(one, str) for one in found):
                return found
    raise ValueError("contexts given as one string; say how to read it with --contexts-as json|python|lines|text")


def _inside(value: Mapping[str, Any]) -> Any:
    """The texts of an object: under a known name, else its only value.

    Raises:
        ValueError: none of its fields is known to hold them.
    """
    known = next((name for name in TEXTS if value.get(name) is not None), None)
    if known is None and len(value) == 1:
        known = next(iter(value))
    if known is None:
        raise ValueError(
            f"an object with {', '.join(value)}; say which holds the texts, as in --map reference_contexts=FIELD.NAME"
        )
    return value[known]


def _passage(value: Any) -> str:
    if isinstance(value, Mapping):
        value = _inside(value)
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        # Sentences that begin with their space were cut out of a text; others are put side by side.
        return "".join(value) if any(one[:1].isspace() for one in value[1:]) else " ".join(value)
    if isinstance(value, str):
        return value
    raise ValueError("a list of contexts holds something that is not text")
