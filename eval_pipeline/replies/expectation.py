"""The expectation of a grade over token probabilities, where the endpoint gives them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from eval_pipeline.chat import TokenAlternatives
from eval_pipeline.replies.grades import LONGEST_VERDICT_LINE, parse_grade, verdict_of

LEAST_MASS = 0.05
"""Probability that the scale must hold at the grade's place for an expectation over it to mean anything."""


def expected_grade(logprobs: Sequence[TokenAlternatives], grades: Sequence[int], text: str) -> float | None:
    """Expectation of the grade over the token alternatives at the grade's own place (G-Eval, Liu et al. 2023, sec. 2.2).

    The place is found in the text, so the same digit in the reason does not count. Alternatives off the scale are
    ignored, spellings of one grade merged, the rest renormalised.

    Returns:
        A value between the lowest and highest grade, or null when no token spells the grade or nearly all probability
        lies off the scale.
    """
    read = parse_grade(text, grades).grade
    place = None if read is None else _grade_offset(text, read, grades)
    token = None if place is None else _token_at(logprobs, text, place)
    if token is None or _spelled(token.token) != read:
        return None
    mass: dict[int, float] = {}
    for alternative, logprob in token.alternatives:
        spelled = _spelled(alternative)
        if spelled is not None and spelled in grades and math.isfinite(logprob):
            mass[spelled] = mass.get(spelled, 0.0) + math.exp(min(logprob, 0.0))
    total = math.fsum(mass.values())
    return math.fsum(grade * weight for grade, weight in mass.items()) / total if total >= LEAST_MASS else None


def _spelled(token: str) -> int | None:
    """The whole number a token is, quotes and punctuation of JSON aside."""
    bare = token.strip(" \t\r\n\":,}'*`")
    return int(bare) if re.fullmatch(r"-?[0-9]{1,9}", bare) else None


_FIELD = re.compile(r'"(?:grade|rating|score)"\s{0,20}:\s{0,20}"?\s{0,20}(-?[0-9]{1,9})(?![0-9])')


def _grade_offset(text: str, grade: int, grades: Sequence[int]) -> int | None:
    """Where in the reply the grade stands: at the grade field, else at the last verdict line."""
    fields = [match.start(1) for match in _FIELD.finditer(text) if int(match[1]) == grade]
    if fields:
        return fields[-1]
    at, offset = None, 0
    for line in text.splitlines(keepends=True):
        number = re.search(rf"(?<![-0-9.]){grade}(?![0-9])", line[:LONGEST_VERDICT_LINE])
        verdict = verdict_of(line.rstrip("\r\n"), grades) if number else None
        if number and verdict and verdict[0] == grade:
            at = offset + number.start()
        offset += len(line)
    return at


def _token_at(logprobs: Sequence[TokenAlternatives], text: str, place: int) -> TokenAlternatives | None:
    """The token that covers a place of the text; tokens are laid along the text in order."""
    cursor = 0
    for one in logprobs:
        start = text.find(one.token, cursor) if one.token else -1
        if start < 0:
            continue
        cursor = start + len(one.token)
        if cursor > place:
            return one if start <= place else None
    return None
