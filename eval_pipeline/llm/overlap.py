"""How far one text is contained in another: the lexical scoring behind the embedded judge.

Containment of content tokens with checks for numbers, dates, negation, named entities and refusals. No grade, no
template and no model is known here; `overlap_text` makes the tokens, `overlap_judge` turns shares into grades.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from eval_pipeline.llm.overlap_text import Token, clean, is_hangul, sentences, tokens

_WEIGHTS = {"number": 2.0, "name": 1.5, "word": 1.0}
# Above this many distinct tokens only equal tokens match: near matches cost the product of both vocabularies.
_NEAR_MATCH_LIMIT = 400

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
    r"\b(?:is|are|was|were|has|have|had|does?|did|can|may|must|will|would|because|since|after|on|at|with|in)\b", re.IGNORECASE
)
_LEAD = re.compile(r"^\W*(?:(?P<yes>yes|yeah|yep|true|correct|네|예|맞습니다|그렇습니다)|(?P<no>no|nope|false|아니요|아니오|아뇨|아닙니다))(?=[\s,.!;:]|$)", re.I)


@dataclass(frozen=True, slots=True)
class Match:
    """How a response and a reference overlap, outside what the question already says.

    Attributes:
        precision: weighted share of the response's own content tokens that the reference has.
        recall: weighted share of the reference's content tokens that the response has.
        core: how much of what the reference repeats most the response has; 0 when the reference repeats nothing.
        contradiction: why the two exclude each other, or "" when nothing says so.
    """

    precision: float
    recall: float
    core: float
    contradiction: str = ""


@dataclass(frozen=True, slots=True)
class Support:
    """How a claim is contained in contexts.

    Attributes:
        block: weighted share of its content tokens found anywhere.
        window: the same within the best two neighbouring sentences.
        contradiction: why the contexts exclude it, or "".
    """

    block: float
    window: float
    contradiction: str = ""


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
    if min(len(left), len(right)) < 5:
        return False
    a, b = _pairs(left), _pairs(right)
    return 2 * (a & b).total() >= 0.72 * (a.total() + b.total())


def _found(keys: set[str], among: set[str]) -> set[str]:
    """The keys that occur among others, equal or near."""
    hits = keys & among
    if len(keys) + len(among) <= _NEAR_MATCH_LIMIT:
        hits |= {key for key in keys - hits if any(near(key, other) for other in among)}
    return hits


def _weight(items: Iterable[Token]) -> float:
    return sum(_WEIGHTS[token.kind] for token in items)


def _share(items: Sequence[Token], hits: set[str]) -> float:
    total = _weight(items)
    return _weight(token for token in items if token.key in hits) / total if total else 0.0


def _content(text: str) -> list[Token]:
    found = tokens(text)
    return [token for token in found if not token.is_stop] or list(found)


def _lead(text: str) -> bool | None:
    match = _LEAD.match(clean(text))
    return None if match is None else match["yes"] is not None


def negation_conflict(left: Sequence[Token], right: Sequence[Token]) -> bool:
    """Whether a word that both texts share is always negated in one and never in the other."""
    seen: list[dict[str, set[bool]]] = [{}, {}]
    for side, items in zip(seen, (left, right), strict=True):
        for token in items:
            if token.kind != "number" and not token.is_stop:
                side.setdefault(token.key, set()).add(token.is_negated)
    return any(len(seen[0][key] | seen[1][key]) == 2 and len(seen[0][key]) == len(seen[1][key]) == 1
               for key in seen[0].keys() & seen[1].keys())  # fmt: skip


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
    given, wanted = _content(response), _content(reference)
    if not given or not wanted:
        return Match(0.0, 0.0, 0.0)
    if is_noncommittal(response) or is_noncommittal(reference):
        alike = is_noncommittal(response) and is_noncommittal(reference)
        return Match(1.0, 1.0, 0.0) if alike else Match(0.0, 0.0, 0.0, "only one of the two declines to answer")
    leads = _lead(response), _lead(reference)
    if None not in leads and leads[0] != leads[1]:
        return Match(0.0, 0.0, 0.0, "yes against no")
    asked = {token.key for token in tokens(question)}
    known = _found({token.key for token in given + wanted if token.kind != "number"}, asked) | (asked & {t.key for t in given + wanted})
    own = [token for token in given if token.key not in known]
    key = [token for token in wanted if token.key not in known]
    if not key or (not own and leads[0] is not None):
        own, key = given, wanted
    own_keys, key_keys = {token.key for token in own}, {token.key for token in key}
    own_hits, key_hits = _found(own_keys, key_keys), _found(key_keys, own_keys)
    precision, recall = _share(own, own_hits), _share(key, key_hits)
    counts = Counter(token.key for token in key)
    top = 0 if _is_prose(reference) else max(counts.values())
    core = max((counts[k] for k in key_hits), default=0) / top if top > 1 else 0.0
    reason = "" if core == 1.0 else _exclusion(response, reference, own, key, own_hits, key_hits, leads, recall)
    return Match(precision, recall, core, reason)


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


def windows(contexts: str, size: int = 2) -> list[str]:
    """Runs of `size` neighbouring sentences; a line of a table comes with the table's first line."""
    lines = sentences(contexts)
    out = [" ".join(lines[i : i + size]) for i in range(max(1, len(lines) - size + 1))]
    header = ""
    for line in lines:
        is_row = line.count("|") >= 2 or line.count(";") >= 2 or line.count(",") >= 2
        if is_row and header:
            out.append(f"{header}\n{line}")
        elif is_row:
            header = line
        else:
            header = ""
    return out


_CLAUSE = re.compile(r"[,;:]\s|\s(?:and|but|while|whereas)\s|(?<=[고며와과])\s|\n|(?<=[.!?])\s", re.IGNORECASE)


def _outweighs(rival: set[str], home: set[str], rest: Sequence[Token]) -> bool:
    """Whether what only the rival shares weighs more than twice what only the home shares (room for ellipsis)."""
    return _weight(t for t in rest if t.key in rival - home) > 2 * _weight(t for t in rest if t.key in home - rival)


def _displaced(claim: str, contexts: str) -> bool:
    """Whether a number of the claim stands, in the contexts, beside something else than the claim says.

    True when another clause shares clearly more of the claim's words than any clause with that number does, and
    gives a number of the same kind that the claim does not have.
    """
    said = {token.key for token in tokens(claim)}
    clauses = [tokens(text) for text in _CLAUSE.split(contexts)]
    for part in (tokens(text) for text in _CLAUSE.split(claim)):
        for number in (token for token in part if token.kind == "number" and token.unit in ("plain", "year", "time")):
            rest = [token for token in part if token.key != number.key and not token.is_stop]
            homes, rivals = [], []
            for clause in clauses:
                inside = {token.key for token in clause}
                shared = {token.key for token in rest if token.key in inside}
                if number.key in inside:
                    homes.append(shared)
                elif any(t.kind == "number" and t.unit == number.unit and t.key not in said for t in clause):
                    rivals.append(shared)
            if homes and any(all(_outweighs(rival, home, rest) for home in homes) for rival in rivals):
                return True
    return False


def _anchor(wanted: Sequence[Token], contexts: str, question: str) -> tuple[float, str]:
    """The share of a claim in its best window, and that window's text.

    A claim of few words ("30 minutes.") says little by itself: its window is where its question is.
    """
    keys = {token.key for token in wanted}
    asked = [token for token in _content(question) if token.key not in keys] if question and len(keys) <= 3 else []
    asked_keys = {token.key for token in asked}
    best, share, best_text = -1.0, 0.0, ""
    for text in [*windows(contexts, 1), *windows(contexts, 2)]:
        inside = {token.key for token in tokens(text)}
        own = _share(wanted, _found(keys, inside))
        rank = 0.5 * own + _share(asked, _found(asked_keys, inside)) if asked else own
        if rank > best:
            best, share, best_text = rank, own, text
    return share, best_text


def support(claim: str, contexts: str, question: str = "") -> Support:
    """Containment of a claim in contexts, anywhere and within one window; short claims are read with their question."""
    wanted = _content(claim)
    available = {token.key for token in tokens(contexts)}
    if not wanted or not available:
        return Support(0.0, 0.0)
    hits = _found({token.key for token in wanted}, available)
    block = _share(wanted, hits)
    if any(token.kind == "number" and token.key not in hits and token.key != "#1" for token in wanted):
        return Support(block, 0.0, "a number the contexts do not have")
    share, text = _anchor(wanted, contexts, question)
    # Negation is looked for in the best window only: elsewhere the same words speak of other things.
    # A "no" in the cell of a table governs its column, which word order does not show.
    if share >= 0.5 and text.count("|") < 2 and negation_conflict(tokens(claim), tokens(text)):
        return Support(block, share, "negated in one of the two")
    if _displaced(claim, contexts):
        return Support(block, share, "the number belongs to something else")
    return Support(block, share)


def relevance(question: str, contexts: str) -> float:
    """Weighted share of the question's content tokens that the contexts have, in [0, 1]."""
    wanted = _content(question)
    keys = {token.key for token in wanted}
    return _share(wanted, _found(keys, {token.key for token in tokens(contexts)}))
