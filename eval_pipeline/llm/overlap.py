"""How far a response and a reference overlap: the lexical scoring behind the embedded judge.

Containment of content tokens with checks for numbers, dates, negation, named entities and refusals. No grade, no
template and no model is known here; `overlap_text` makes the tokens, `overlap_support` looks claims up in contexts,
`overlap_judge` turns shares into grades.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from eval_pipeline.llm.overlap_text import Token, clean, is_hangul, tokens

_WEIGHTS = {"number": 2.0, "name": 1.5, "word": 1.0}
# Above this many pairs only equal tokens match: near matches cost the product of both vocabularies.
_NEAR_MATCH_LIMIT = 400_000

_NONCOMMITTAL = re.compile(
    r"""
      \b(?:documents?|texts?|passages?|contexts?|sources?|information|answer)\b[^.!?\n]{0,40}
        \b(?:(?:do|does|did|is|are)(?:\snot|n't)|not|nothing|no)\b
    | \b(?:no|nothing)\b[^.!?\n]{0,40}\b(?:documents?|passages?|contexts?|mentioned|stated|given\sin|information|found)\b
    | \b(?:do\snot|don't|does\snot|doesn't)\s(?:say|state|mention|contain|know|have\s(?:any\s)?(?:information|enough))
    | \b(?:cannot|can't|could\snot|couldn't|unable\sto)\b[^.!?\n]{0,12}\b(?:find|answer|determine|say|give|tell|provide)\b
    | \bi(?:'m|\sam)\s(?:not\s(?:sure|certain|aware)|afraid|unsure|sorry) | \bi\s(?:do\snot|don't)\sknow
    | \b(?:it\s(?:really\s)?depends\son\b|may\svary|not\sclear\b|more\sinformation|insufficient)
    | \bnot\s(?:\w+\s)?(?:mentioned|stated|contained|given|named|said|specified|described|included|available|provided)\b
    | (?:문서|자료|본문|문맥)[^.!?\n]{0,40}(?:없|않|못)
    | (?:찾을|알|확인할|답할|답변할)\s?수\s?(?:없|가\s?없) | 모르겠 | 모릅니다 | 상황에\s따라\s다 | 담당\s?부서에\s(?:확인|문의) | 상의해\s보시
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCE_WORDS = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does?|did|can|may|must|will|would|because|since|after|on|at|with|in)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^\W*(?:(?P<yes>yes|yeah|yep|true|correct|네|예|맞습니다|그렇습니다)|(?P<no>no|nope|false|아니요|아니오|아뇨|아닙니다))(?=[\s,.!;:]|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Match:
    """How a response and a reference overlap, outside what the question already says.

    Attributes:
        precision: weighted share of the response's own content tokens that the reference has.
        recall: weighted share of the reference's content tokens that the response has.
        core: how much of what the reference repeats most the response has; 0 when the reference repeats nothing.
        contradiction: why the two exclude each other, or "" when nothing says so.
        is_prose: whether the reference is made of sentences; else it is a name, a number or a list of wordings.
    """

    precision: float
    recall: float
    core: float
    contradiction: str = ""
    is_prose: bool = True


def is_noncommittal(text: str) -> bool:
    """Whether a text declines or evades: says that the documents do not tell, or that it depends."""
    return bool(_NONCOMMITTAL.search(clean(text).replace("’", "'")))


def _pairs(word: str) -> Counter[str]:
    return Counter(word[i : i + 2] for i in range(len(word) - 1))


@lru_cache(maxsize=65536)
def near(left: str, right: str) -> bool:
    """Whether two words are inflections or spellings of one: character bigrams (Dice >= .72), or a Hangul stem."""
    if left == right:
        return True
    if left.startswith("#") or right.startswith("#"):
        return False
    if is_hangul(left) and is_hangul(right):
        short, long = sorted((left, right), key=len)
        return len(short) >= 2 and long.startswith(short)
    if min(len(left), len(right)) < 5 or abs(len(left) - len(right)) > 4:
        return False
    a, b = _pairs(left), _pairs(right)
    return 2 * (a & b).total() >= 0.72 * (a.total() + b.total())


def equivalents(keys: set[str], among: set[str]) -> dict[str, set[str]]:
    """For each key the others that are equal or near."""
    if len(keys) * len(among) > _NEAR_MATCH_LIMIT:
        return {key: {key} & among for key in keys}
    return {key: {other for other in among if near(key, other)} for key in keys}


def found_among(keys: set[str], among: set[str]) -> set[str]:
    """The keys that occur among others, equal or near."""
    return {key for key, others in equivalents(keys, among).items() if others}


def weight(items: Iterable[Token]) -> float:
    """The summed weight of tokens: numbers 2, names 1.5, words 1."""
    return sum(_WEIGHTS[token.kind] for token in items)


def share_of(items: Sequence[Token], hits: set[str]) -> float:
    """The weighted share of tokens whose key is among the hits; 0 for no tokens."""
    total = weight(items)
    return weight(token for token in items if token.key in hits) / total if total else 0.0


def content(text: str) -> list[Token]:
    """The content tokens of a text; all of its tokens when it has function words only."""
    found = tokens(text)
    return [token for token in found if not token.is_stop] or list(found)


def _lead(text: str) -> bool | None:
    match = _LEAD.match(clean(text))
    return None if match is None else match["yes"] is not None


def negation_conflict(left: Sequence[Token], right: Sequence[Token]) -> bool:
    """Whether a word that both texts share is always negated in one and never in the other."""
    seen: tuple[dict[str, set[bool]], dict[str, set[bool]]] = ({}, {})
    for side, items in zip(seen, (left, right), strict=True):
        for token in items:
            if token.kind != "number" and not token.is_stop:
                side.setdefault(token.key, set()).add(token.is_negated)
    shared = seen[0].keys() & seen[1].keys()
    return any(not seen[0][key] & seen[1][key] for key in shared)


def _number_conflict(missing: Sequence[Token], extra: Sequence[Token]) -> bool:
    """Whether a number the reference gives is replaced: one of its kind is missing and another stands instead."""
    return bool({token.unit for token in missing} & {token.unit for token in extra})


def _is_prose(text: str) -> bool:
    """Whether a text ends like a sentence and holds a finite verb or a reason: no mere name, no list of names."""
    found = text.rstrip(" \"'")
    if found.rstrip(".!?").endswith(("다", "요")):
        return True
    return found.endswith((".", "!", "?")) and _SENTENCE_WORDS.search(found) is not None


def compare(response: str, reference: str, question: str = "") -> Match:
    """Overlap of a response with a reference; what the question says counts for neither.

    A reference that lists several wordings repeats its decisive tokens; `core` asks for those, without any
    knowledge of how the wordings are separated.
    """
    given, wanted = content(response), content(reference)
    if not given or not wanted:
        return Match(0.0, 0.0, 0.0)
    if is_noncommittal(response) or is_noncommittal(reference):
        alike = is_noncommittal(response) and is_noncommittal(reference)
        return Match(1.0, 1.0, 0.0) if alike else Match(0.0, 0.0, 0.0, "only one of the two declines to answer")
    leads = _lead(response), _lead(reference)
    if None not in leads and leads[0] != leads[1]:
        return Match(0.0, 0.0, 0.0, "yes against no")
    asked = {token.key for token in tokens(question)}
    known = found_among({token.key for token in given + wanted if token.kind != "number"}, asked) | (
        asked & {t.key for t in given + wanted}
    )
    own = [token for token in given if token.key not in known]
    key = [token for token in wanted if token.key not in known]
    is_plain_yes_or_no = not key and leads[0] is not None and leads[0] == leads[1]
    if not key or (not own and leads[0] is not None):
        own, key = given, wanted
    own_keys, key_keys = {token.key for token in own}, {token.key for token in key}
    own_hits, key_hits = found_among(own_keys, key_keys), found_among(key_keys, own_keys)
    precision, recall = share_of(own, own_hits), share_of(key, key_hits)
    counts = Counter(token.key for token in key)
    top = 0 if _is_prose(reference) else max(counts.values())
    core = max((counts[k] for k in key_hits), default=0) / top if top > 1 else 0.0
    # What every wording repeats settles it, unless it repeats a number that the response does not have.
    is_settled = core == 1.0 and all(
        token.key in key_hits for token in key if token.kind == "number" and counts[token.key] == top
    )
    reason = "" if is_settled else _exclusion(response, reference, own, key, own_hits, key_hits, leads, recall)
    if is_plain_yes_or_no and not reason:
        return Match(1.0, 1.0, 0.0)
    return Match(precision, recall, core, reason, _is_prose(reference))


def _exclusion(
    response: str,
    reference: str,
    own: Sequence[Token],
    key: Sequence[Token],
    own_hits: set[str],
    key_hits: set[str],
    leads: tuple[bool | None, bool | None],
    recall: float,
) -> str:
    """Why a response excludes the reference, or "" when nothing says so."""
    head = [token for token in key if token.clause == key[0].clause]
    if _is_prose(reference) and leads[1] is None and not any(token.key in key_hits for token in head):
        return "what the reference says first is missing"
    missing = [token for token in key if token.key not in key_hits]
    extra = [token for token in own if token.key not in own_hits]
    if _number_conflict([t for t in missing if t.kind == "number"], [t for t in extra if t.kind == "number"]):
        return "another number"
    if (leads[0] is None or leads[0] != leads[1]) and negation_conflict(tokens(response), tokens(reference)):
        return "negated in one of the two"
    names, other = ({t.key for t in items if t.kind == "name"} for items in (key, own))
    if names and other and not (names & key_hits) and recall < 0.5:
        return "another name"
    return ""
