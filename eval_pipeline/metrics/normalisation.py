"""SQuAD-style normalisation of short answers, shared by `exact_match` and `token_f1`.

Extended to Korean by NFKC and punctuation only: particles and date formats are what these metrics miss, and why a judge
is needed.
"""

from __future__ import annotations

import re
import unicodedata

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def tokens(text: str) -> list[str]:
    """Lower-case words without punctuation and English articles (Rajpurkar et al. 2016, evaluate-v1.1)."""
    folded = unicodedata.normalize("NFKC", text).lower()
    bare = "".join(
        " " if _is_separator(c) else c
        for c in folded
        if not unicodedata.category(c).startswith("P") or _is_separator(c)
    )
    return _ARTICLES.sub(" ", bare).split()


def _is_separator(character: str) -> bool:
    """Punctuation that stands between words in Korean text, where no space follows."""
    return character in "·ㆍ、。"
