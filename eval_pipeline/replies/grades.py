"""What counts as a grade: JSON with the one field, or a line that is a verdict and nothing else."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.replies.reading import Found, body, holds_remnants, is_repeated, json_of
from eval_pipeline.vocabulary import Outcome

GRADE_FIELDS = ("grade", "rating", "score")
CODE_FIELDS = ("grade", "rating")
"""Without `score`: a score may be a number in [0, 1], and `{"score": 1}` of the codes 0, 1, 2 is full marks or half."""
LONGEST_VERDICT_LINE = 160


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
_NO_NUMBERS = frozenset({"nan", "inf", "-inf", "infinity", "-infinity", "true", "false"})


def parse_grade(text: str, grades: Sequence[int], fields: Sequence[str] = GRADE_FIELDS) -> ParsedReply:
    """Reads a reply as one of the allowed grades.

    Accepts JSON with the one grade field (bare, fenced, or after a closed reasoning block) or a reply that is only the
    number, with an optional label or unit. Where a reply reasons first, its last verdict line counts.

    Args:
        text: the reply.
        grades: the allowed grades.
        fields: names that the JSON grade field may have.
    """
    if not text.strip():
        return ParsedReply(Outcome.EMPTY)
    found = json_of(text)
    # Where wide and plain quotes mix, the wide ones are a quotation, and folding them would let it write fields.
    if found.value is None and not text.isascii() and not ('"' in text and "\uff02" in text):
        found = json_of(unicodedata.normalize("NFKC", text))
    if found.value is not None:
        return _from_json(found, grades, fields)
    text = unicodedata.normalize("NFKC", text)
    if body(text).lower() in _NO_NUMBERS:
        return ParsedReply(Outcome.OFF_SCALE)
    if holds_remnants(text):
        return ParsedReply(Outcome.UNPARSEABLE)
    number = _verdict_number(_verdicts(body(text), grades))
    return ParsedReply(Outcome.UNPARSEABLE) if number is None else _allowed(number, grades, None)


def _from_json(found: Found, grades: Sequence[int], fields: Sequence[str]) -> ParsedReply:
    value = found.value
    if not isinstance(value, dict):
        return _allowed(value, grades, None) if isinstance(value, int | float) else ParsedReply(Outcome.UNPARSEABLE)
    present = [name for name in GRADE_FIELDS if name in value]
    if len(present) != 1 or present[0] not in fields or is_repeated(found.source, present[0]):
        return ParsedReply(Outcome.UNPARSEABLE)
    reason = value.get("reason") or value.get("feedback")
    read = _allowed(value[present[0]], grades, reason if isinstance(reason, str) else None)
    around = [one for one in _verdicts(found.around, grades) if one is not None]
    if read.grade is not None and any(is_labelled and number != read.grade for number, is_labelled in around):
        return ParsedReply(Outcome.UNPARSEABLE, reason=read.reason)
    return read


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


def _verdicts(text: str, grades: Sequence[int]) -> list[tuple[float, bool] | None]:
    return [verdict_of(line, grades) for line in text.splitlines() if line.strip()]


def verdict_of(line: str, grades: Sequence[int]) -> tuple[float, bool] | None:
    """The number of a line that is a verdict and nothing else, and whether a label says so.

    `4/4` names the scale asked for; `4/10` names another, so its number is NaN. `Answer:` may just as well be the
    quoted answer, so it labels nothing.
    """
    if len(line) > LONGEST_VERDICT_LINE:
        return None
    bare = " ".join(line.translate(_DECORATION).split()).lstrip(" >#[(").rstrip(" ])!.。")
    match = _LINE.fullmatch(bare)
    if match is None:
        return None
    is_labelled = match["label"] is not None and not match["label"].lower().endswith(("answer", "result"))
    named = [*re.findall(r"[0-9]+", match["remark"] or ""), *filter(None, (match["top"], match["of"]))]
    if named and max(int(number[:9]) for number in named) != max(grades):
        return math.nan, is_labelled
    return float(match["number"]), is_labelled


def _verdict_number(verdicts: Sequence[tuple[float, bool] | None]) -> float | None:
    """The one line of a reply, the last labelled line of a longer one, or a bare last line when no other is bare."""
    found = [one for one in verdicts if one is not None]
    labelled = [number for number, is_labelled in found if is_labelled]
    if labelled:
        number = labelled[-1]
    elif len(found) == 1 and verdicts[-1] is not None:
        number = found[0][0]
    else:
        return None
    return None if math.isnan(number) else number
