"""Replies that are texts: a list of claims, a question generated from an answer."""

from __future__ import annotations

from typing import Any

from eval_pipeline.replies.reading import is_repeated, json_of
from eval_pipeline.vocabulary import Outcome


def parse_claims(text: str, field: str = "claims") -> tuple[Outcome, tuple[str, ...]]:
    """Reads `{"claims": [...]}`. An empty list is a valid answer: the text holds no claims. Blank claims are dropped.

    The claims are kept letter by letter: folding `10²` to `102` would change what is judged. Another list of texts is
    read alike, by its own field.
    """
    if not text.strip():
        return Outcome.EMPTY, ()
    claims = _object(text, field).get(field)
    if not isinstance(claims, list) or not all(isinstance(claim, str) for claim in claims):
        return Outcome.UNPARSEABLE, ()
    return Outcome.GRADED, tuple(claim.strip() for claim in claims if claim.strip())


def parse_generated_question(text: str) -> tuple[Outcome, str | None, bool | None]:
    """Reads `{"question": ..., "is_noncommittal": bool}`; the flag may be 0 or 1.

    A blank question is an answer only beside the flag: no question fits an evasive text.
    """
    if not text.strip():
        return Outcome.EMPTY, None, None
    found = _object(text, "question", "is_noncommittal", "noncommittal")
    question, flag = found.get("question"), found.get("is_noncommittal", found.get("noncommittal"))
    if not isinstance(question, str) or flag not in (0, 1) or not (question.strip() or flag):
        return Outcome.UNPARSEABLE, None, None
    return Outcome.GRADED, question.strip(), bool(flag)


def _object(text: str, *names: str) -> dict[str, Any]:
    """The reply's one object; empty when there is none or one of the fields is given twice."""
    found = json_of(text)
    is_clear = isinstance(found.value, dict) and not any(is_repeated(found.source, name) for name in names)
    return found.value if is_clear else {}
