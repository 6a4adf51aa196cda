"""The strict reader of judges' replies: what counts as a grade, a list of claims, a generated question.

Nothing here guesses: no digit scans, no first match, no rounding, no clamping. It never sees the prompt. A reply may be
hostile or huge, so every step is linear in its length.
"""

from __future__ import annotations

import json
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
LONGEST_VERDICT_LINE = 160
LEAST_MASS = 0.05
"""Probability that the scale must hold at the grade's place for an expectation over it to mean anything."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply read as a grade. `grade` is null unless the outcome is graded."""

    outcome: Outcome
    grade: int | None = None
    reason: str | None = None


_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?")
_LABEL = (
    r"(?:(?:final|overall|my) )?(?:rating|grade|score|verdict|relevance|groundedness|answer|result)"
    r"|(?:최종 ?)?(?:등급|점수|평점|판정|평가)(?:은|는)?"
)
# Matched against a line whose decoration became single spaces, so that no two repetitions compete for a character.
_LINE = re.compile(
    rf"(?:- )?(?:(?P<label>{_LABEL}) ?(?:is|=|:|->|→)? ?)?(?:(?P<of>[0-9]{{1,9}})점 만점(?:에|중)? )?"
    r"[\[(]?(?P<number>[-+]?[0-9]{1,9}(?:\.[0-9]{1,9})?)[\])]? ?(?P<unit>점|등급|points?)?(?: ?(?:입니다|이다|임))?"
    r"(?: ?(?:/|out of) ?(?P<top>[0-9]{1,9})"
    r"| ?\((?P<remark>(?:on|out of|of|scale|the|from|to|척도|만점|중|[-0-9 ~/])*))?",
    re.IGNORECASE,
)
_DECORATION = str.maketrans(dict.fromkeys("*_`\"'", " "))
_OPEN = re.compile(r"<(think|thinking|reasoning|analysis)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:think|thinking|reasoning|analysis)>", re.IGNORECASE)
_TAG = re.compile(r"^[A-Za-z]{1,20}(?=[\s{])")
_TRAILING_COMMA = re.compile(r",\s{0,20}\}\s{0,20}$")
_NOT_FINITE = re.compile(r":\s{0,20}-?(?:NaN|Infinity)\b")
_NO_NUMBERS = frozenset({"nan", "inf", "-inf", "infinity", "-infinity", "true", "false"})


def parse_grade(text: str, grades: Sequence[int]) -> ParsedReply:
    """Reads a reply as one of the allowed grades.

    Accepts JSON with the one grade field (bare, fenced, or after a closed reasoning block) or a reply that is only the
    number, with an optional label or unit. Where a reply reasons first, its last verdict line counts.
    """
    if not text.strip():
        return ParsedReply(Outcome.EMPTY)
    source, found = _json_of(text)
    if found is None and not text.isascii():
        source, found = _json_of(unicodedata.normalize("NFKC", text))
    if found is not None:
        return _from_json(source, found, grades)
    body = unicodedata.normalize("NFKC", _body(text))
    if body.lower() in _NO_NUMBERS:
        return ParsedReply(Outcome.OFF_SCALE)
    lines = [line for line in body.splitlines() if line.strip()]
    number = _verdict_number([_verdict(line, grades) for line in lines])
    return ParsedReply(Outcome.UNPARSEABLE) if number is None else _allowed(number, grades, None)


def _body(text: str) -> str:
    """The reply after its closed reasoning blocks; empty when a block stays open or nothing is left.

    Some servers swallow the opening tag, so a lone closing tag ends a block that began with the reply.
    """
    if "<" not in text:
        return text.strip()
    kept, at = [], 0
    while opened := _OPEN.search(text, at):
        closed = _CLOSE.search(text, opened.end())
        if closed is None:
            return ""
        kept.append(text[at : opened.start()])
        at = closed.end()
    rest = "".join([*kept, text[at:]])
    return _CLOSE.split(rest)[-1].strip()


def _json_of(text: str) -> tuple[str, Any]:
    """The reply's one JSON value with its source: bare, or the one fenced block. Null when there is none."""
    whole = text.strip()
    if whole.startswith("{") and (found := _loaded(whole)) is not None:
        return whole, found
    body = _body(text)
    if body.startswith("{"):
        return body, _loaded(body)
    parts = body.split("```")
    if len(parts) % 2 == 0:
        return body, None
    blocks = [_TAG.sub("", part, count=1).strip() for part in parts[1::2]]
    loaded = [(block, found) for block in blocks if (found := _loaded(block)) is not None]
    if len(loaded) == 1:
        return loaded[0]
    return body, [found for _, found in loaded] or None


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


def _from_json(source: str, found: Any, grades: Sequence[int]) -> ParsedReply:
    if not isinstance(found, dict):
        return _allowed(found, grades, None) if isinstance(found, int | float) else ParsedReply(Outcome.UNPARSEABLE)
    present = [name for name in GRADE_FIELDS if name in found]
    if len(present) != 1 or _is_repeated(source, present[0]):
        return ParsedReply(Outcome.UNPARSEABLE)
    reason = found.get("reason") or found.get("feedback")
    return _allowed(found[present[0]], grades, reason if isinstance(reason, str) else None)


def _is_repeated(source: str, name: str) -> bool:
    """Whether an object gives one field twice, of which a JSON reader would silently keep the last."""
    if source.count(f'"{name}"') < 2:
        return False
    try:
        pairs = json.loads(source, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return True
    return sum(key == name for key, _ in pairs) > 1


def _allowed(value: Any, grades: Sequence[int], reason: str | None) -> ParsedReply:
    """An integer, integral float or numeric string among the grades; any other single number is off the scale."""
    if isinstance(value, bool):
        return ParsedReply(Outcome.OFF_SCALE, reason=reason)
    if isinstance(value, str):
        stripped = unicodedata.normalize("NFKC", value).strip()
        if not _NUMBER.fullmatch(stripped):
            is_none = stripped.lower() in _NO_NUMBERS
            return ParsedReply(Outcome.OFF_SCALE if is_none else Outcome.UNPARSEABLE, reason=reason)
        value = float(stripped)
    if not isinstance(value, int | float):
        return ParsedReply(Outcome.UNPARSEABLE, reason=reason)
    if not math.isfinite(value) or value != int(value) or int(value) not in grades:
        return ParsedReply(Outcome.OFF_SCALE, reason=reason)
    return ParsedReply(Outcome.GRADED, int(value), reason)


def _verdict(line: str, grades: Sequence[int]) -> tuple[float, bool] | None:
    """The number of a line that is a verdict and nothing else, and whether a label says so.

    `4/4` names the scale asked for; `4/10` names another and is no verdict on ours.
    """
    if len(line) > LONGEST_VERDICT_LINE:
        return None
    bare = " ".join(line.translate(_DECORATION).split()).lstrip(" >#[(").rstrip(" ])!.。")
    match = _LINE.fullmatch(bare)
    if match is None:
        return None
    named = [*re.findall(r"[0-9]+", match["remark"] or ""), *filter(None, (match["top"], match["of"]))]
    if named and max(int(number[:9]) for number in named) != max(grades):
        return None
    return float(match["number"]), match["label"] is not None


def _verdict_number(verdicts: Sequence[tuple[float, bool] | None]) -> float | None:
    """The one line of a reply, the last labelled line of a longer one, or a bare last line when no other is bare."""
    found = [one for one in verdicts if one is not None]
    if len(verdicts) > 1 and (labelled := [number for number, is_labelled in found if is_labelled]):
        return labelled[-1]
    return found[0][0] if len(found) == 1 and verdicts[-1] is not None else None


def parse_claims(text: str) -> tuple[Outcome, tuple[str, ...]]:
    """Reads `{"claims": [...]}`. An empty list is a valid answer: the text holds no claims. Blank claims are dropped.

    The claims are kept letter by letter: folding `10²` to `102` would change what is judged.
    """
    if not text.strip():
        return Outcome.EMPTY, ()
    found = _json_of(text)[1]
    claims = found.get("claims") if isinstance(found, dict) else None
    if not isinstance(claims, list) or not all(isinstance(claim, str) for claim in claims):
        return Outcome.UNPARSEABLE, ()
    return Outcome.GRADED, tuple(claim.strip() for claim in claims if claim.strip())


def parse_generated_question(text: str) -> tuple[Outcome, str | None, bool | None]:
    """Reads `{"question": ..., "is_noncommittal": bool}`; the flag may be 0 or 1.

    A blank question is an answer only beside the flag: no question fits an evasive text.
    """
    if not text.strip():
        return Outcome.EMPTY, None, None
    found = _json_of(text)[1]
    if not isinstance(found, dict):
        return Outcome.UNPARSEABLE, None, None
    question, flag = found.get("question"), found.get("is_noncommittal", found.get("noncommittal"))
    if not isinstance(question, str) or flag not in (0, 1) or not (question.strip() or flag):
        return Outcome.UNPARSEABLE, None, None
    return Outcome.GRADED, question.strip(), bool(flag)


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
        if number and _verdict(line.rstrip("\r\n"), grades):
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
