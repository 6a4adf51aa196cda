"""How far a claim, or a question, is contained in contexts: the other half of the embedded judge's scoring.

A claim is looked up anywhere, within its best window, and with the number it speaks of in the right place. Comparing
a response with a reference is `overlap`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eval_pipeline.llm.overlap import content, equivalents, found_among, negation_conflict, share_of, weight
from eval_pipeline.llm.overlap_text import Token, sentences, tokens


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
    return weight(t for t in rest if t.key in rival - home) > 2 * weight(t for t in rest if t.key in home - rival)


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
    asked = [token for token in content(question) if token.key not in keys] if question and len(keys) <= 3 else []
    available = {token.key for token in tokens(contexts)}
    alike = equivalents(keys | {token.key for token in asked}, available)
    best, share, best_text = -1.0, 0.0, ""
    for text in [*windows(contexts, 1), *windows(contexts, 2)]:
        inside = {token.key for token in tokens(text)}
        hits = {key for key, others in alike.items() if others & inside}
        own = share_of(wanted, hits)
        rank = 0.5 * own + share_of(asked, hits) if asked else own
        if rank > best:
            best, share, best_text = rank, own, text
    return share, best_text


def support(claim: str, contexts: str, question: str = "") -> Support:
    """Containment of a claim in contexts, anywhere and within one window; short claims are read with their question."""
    wanted = content(claim)
    available = {token.key for token in tokens(contexts)}
    if not wanted or not available:
        return Support(0.0, 0.0)
    hits = found_among({token.key for token in wanted}, available)
    block = share_of(wanted, hits)
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
    wanted = content(question)
    keys = {token.key for token in wanted}
    return share_of(wanted, found_among(keys, {token.key for token in tokens(contexts)}))
