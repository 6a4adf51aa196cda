"""The strict reader of judges' replies: what counts as a grade, a list of claims, a generated question.

Nothing here guesses: no digit scans, no first match, no rounding, no clamping. It never sees the prompt.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from eval_pipeline.chat import TokenAlternatives
from eval_pipeline.vocabulary import Outcome

GRADE_FIELDS = ("grade", "rating", "score")


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply read as a grade. `grade` is null unless the outcome is graded."""

    outcome: Outcome
    grade: int | None = None
    reason: str | None = None


_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_LABEL = (
    r"(?:(?:final|overall|my)\s+)?(?:rating|grade|score|verdict|relevance|groundedness|answer|result)"
    r"|(?:최종\s*)?(?:등급|점수|평점|판정|평가)(?:은|는)?"
)
_SCALE = r"(?:\s*(?:/|out\s+of|점\s*만점에)\s*(?P<top>\d+)|\s*\(\s*(?:on|out|of|scale|the|from|to|척도|만점|중|[-\d\s~/])*\)?\s*\)?)?"
_LINE = re.compile(
    rf"^(?:-\s+)?[\s>#*_`\"'\[(]*(?:(?P<label>{_LABEL})\s*(?:is|=|:|：|->|→)?\s*)?[\s*_`\"'\[(]*(?P<number>{_NUMBER})[\s*_`\"'\])]*"
    rf"(?P<unit>점|등급|points?)?(?:\s*(?:입니다|이다|임))?{_SCALE}[\s*_`\"'\])]*[.!。]?[\s*_`\"']*$",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```[\w-]*\s*\n?(.*?)```", re.DOTALL)
_REASONING = re.compile(r"<(think|thinking|reasoning|analysis)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_REASONING = re.compile(r"<(think|thinking|reasoning|analysis)>", re.IGNORECASE)


def parse_grade(text: str, grades: Sequence[int]) -> ParsedReply:
    """Reads a reply as one of the allowed grades.

    Accepts JSON with the one grade field (bare, fenced, or after a closed reasoning block) or a reply that is only the
    number, with an optional label or unit. Where a reply reasons first, its last verdict line counts.
    """
    body = _body(text)
    if not body:
        return ParsedReply(Outcome.UNPARSEABLE if text.strip() else Outcome.EMPTY)
    found = _json_of(body)
    if found is not None:
        return _from_json(found, grades)
    numbers = _verdict_numbers(body, grades)
    if not numbers:
        return ParsedReply(Outcome.UNPARSEABLE)
    return _allowed(numbers[-1], grades, None)


def _body(text: str) -> str:
    """The reply without closed reasoning blocks; empty when a block stays open or nothing is left."""
    if text.isascii() and "<" not in text:
        return text.strip()
    body = _REASONING.sub("", unicodedata.normalize("NFKC", text)).strip()
    return "" if _OPEN_REASONING.search(body) else body


def _json_of(body: str) -> Any:
    """The reply's one JSON object: bare, or the one fenced block. Null when there is none."""
    if body[0] == "{":
        return _loaded(body)
    blocks = [found for block in _FENCE.findall(body) if (found := _loaded(block.strip())) is not None]
    if len(blocks) == 1:
        return blocks[0]
    return blocks or None


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _from_json(found: Any, grades: Sequence[int]) -> ParsedReply:
    if not isinstance(found, dict):
        return _allowed(found, grades, None) if isinstance(found, int | float) else ParsedReply(Outcome.UNPARSEABLE)
    present = [name for name in GRADE_FIELDS if name in found]
    if len(present) != 1:
        return ParsedReply(Outcome.UNPARSEABLE)
    reason = found.get("reason") or found.get("feedback")
    return _allowed(found[present[0]], grades, reason if isinstance(reason, str) else None)


def _allowed(value: Any, grades: Sequence[int], reason: str | None) -> ParsedReply:
    """An integer, integral float or numeric string among the grades; any other single number is off the scale."""
    if isinstance(value, bool):
        return ParsedReply(Outcome.OFF_SCALE, reason=reason)
    if isinstance(value, str):
        stripped = value.strip()
        if not re.fullmatch(_NUMBER, stripped):
            return ParsedReply(
                Outcome.OFF_SCALE if stripped.lower() in {"nan", "inf", "-inf"} else Outcome.UNPARSEABLE, reason=reason
            )
        value = float(stripped)
    if not isinstance(value, int | float):
        return ParsedReply(Outcome.UNPARSEABLE, reason=reason)
    if not math.isfinite(value) or value != int(value) or int(value) not in grades:
        return ParsedReply(Outcome.OFF_SCALE, reason=reason)
    return ParsedReply(Outcome.GRADED, int(value), reason)


def _verdict_numbers(body: str, grades: Sequence[int]) -> list[float]:
    """Numbers of the lines that are a verdict and nothing else: the whole reply, or labelled lines of a longer one."""
    lines = [line for line in body.splitlines() if line.strip()]
    matches = [_LINE.match(line.strip()) for line in lines]
    if len(lines) == 1:
        one = matches[0]
        return [float(one["number"])] if one and _scale_fits(one, grades) else []
    return [float(m["number"]) for m in matches if m and m["label"] and _scale_fits(m, grades)] or _closing(
        matches, grades
    )


def _closing(matches: Sequence[re.Match[str] | None], grades: Sequence[int]) -> list[float]:
    """A bare number on the last line of a reply, when no other line is one."""
    bare = [m for m in matches if m]
    last = matches[-1]
    return [float(last["number"])] if last and len(bare) == 1 and _scale_fits(last, grades) else []


def _scale_fits(match: re.Match[str], grades: Sequence[int]) -> bool:
    """`4/4` names the scale asked for; `4/10` names another and is no verdict on ours."""
    return match["top"] is None or int(match["top"]) == max(grades)


def parse_claims(text: str) -> tuple[Outcome, tuple[str, ...]]:
    """Reads `{"claims": [...]}`. An empty list is a valid answer: the text holds no claims. Blank claims are dropped."""
    body = _body(text)
    if not body:
        return (Outcome.UNPARSEABLE if text.strip() else Outcome.EMPTY), ()
    found = _json_of(body)
    claims = found.get("claims") if isinstance(found, dict) else None
    if not isinstance(claims, list) or not all(isinstance(claim, str) for claim in claims):
        return Outcome.UNPARSEABLE, ()
    return Outcome.GRADED, tuple(claim.strip() for claim in claims if claim.strip())


def parse_generated_question(text: str) -> tuple[Outcome, str | None, bool | None]:
    """Reads `{"question": ..., "is_noncommittal": bool}`; the flag may be 0 or 1."""
    body = _body(text)
    if not body:
        return (Outcome.UNPARSEABLE if text.strip() else Outcome.EMPTY), None, None
    found = _json_of(body)
    if not isinstance(found, dict):
        return Outcome.UNPARSEABLE, None, None
    question, flag = found.get("question"), found.get("is_noncommittal", found.get("noncommittal"))
    if not isinstance(question, str) or flag not in (0, 1, True, False):
        return Outcome.UNPARSEABLE, None, None
    return Outcome.GRADED, question.strip(), bool(flag)


def expected_grade(logprobs: Sequence[TokenAlternatives], grades: Sequence[int], text: str) -> float | None:
    """Expectation of the grade over the token alternatives at the grade's own place (G-Eval, Liu et al. 2023, sec. 2.2).

    The place is the last token that spells the grade the reply was read as, searched from the grade field on, so a
    digit in the reason does not count. Alternatives off the scale are ignored, spellings of one grade merged.

    Returns:
        A value between the lowest and highest grade, or null when no token spells the grade.
    """
    read = parse_grade(text, grades).grade
    if read is None:
        return None
    place = _grade_token(logprobs, read)
    if place is None:
        return None
    mass: dict[int, float] = {}
    for token, logprob in logprobs[place].alternatives:
        spelled = token.strip().strip('"')
        if spelled.lstrip("-").isascii() and spelled.lstrip("-").isdigit() and int(spelled) in grades:
            mass[int(spelled)] = mass.get(int(spelled), 0.0) + math.exp(logprob)
    total = math.fsum(mass.values())
    return math.fsum(grade * weight for grade, weight in mass.items()) / total if total > 0 else None


def _grade_token(logprobs: Sequence[TokenAlternatives], grade: int) -> int | None:
    """Index of the token that spells the grade: right after the grade field's name where there is one, else the last."""
    spelled = [index for index, one in enumerate(logprobs) if one.token.strip().strip('":,} ') == str(grade)]
    written, after = "", None
    for index, one in enumerate(logprobs):
        written += one.token
        if after is None and re.search(r'"(?:grade|rating|score)"\s*:\s*"?$', written):
            after = index
        if after is not None and index > after and index in spelled:
            return index
        if after is not None and index > after and one.token.strip().strip('"'):
            after = None
    return spelled[-1] if spelled else None
