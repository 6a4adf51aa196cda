"""Texts that say the same in almost the same characters: groups by Jaccard similarity of character 5-grams.

Exact up to 100,000 texts, by prefix filtering (Bayardo, Ma and Srikant 2007: two sets as similar as t share one of the
rarest (1 - t) n + 1 members of each); above that MinHash LSH proposes the pairs and the same similarity decides.
"""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from eval_pipeline.errors import ExtraMissing

Components = np.ndarray[tuple[int], np.dtype[np.int64]]
"""The group of each text, as the position of its first."""
LENGTH = 5
THRESHOLD = 0.8
EXACT_LIMIT = 100_000
_WORD = re.compile(r"\w+")
_PARTICLE = re.compile(
    "(?<=[가-힣])(?:에서|에게|으로|부터|까지|이란|이나|은|는|이|가|을|를|의|에|께|로|와|과|도|만|란)$"
)


def squeezed(text: str) -> str:
    """A text without case, width, punctuation and spaces."""
    return "".join(_words(text)) or text.strip()


def normalised(text: str) -> str:
    """A squeezed text without Korean particles, which change with the sentence and not with what is asked."""
    return "".join(_PARTICLE.sub("", word) for word in _words(text)) or text.strip()


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def grams(text: str) -> frozenset[str]:
    """Character 5-grams of a normalised text; a shorter text is its own only one."""
    return frozenset(text[i : i + LENGTH] for i in range(max(1, len(text) - LENGTH + 1)))


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """Shared members over all members."""
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared)


def groups(texts: Sequence[str], threshold: float = THRESHOLD, exact_limit: int = EXACT_LIMIT) -> list[list[int]]:
    """Positions of texts that are near-duplicates of each other, directly or over others; in order, groups of at least two.

    Args:
        texts: normalised.
        threshold: of the Jaccard similarity, in (0, 1].
        exact_limit: number of distinct texts up to which no candidate can be missed.

    Raises:
        ExtraMissing: more texts than that, and datasketch is not installed.
    """
    distinct = list(dict.fromkeys(texts))
    sets = [grams(text) for text in distinct]
    component = np.arange(len(distinct))
    propose = _by_prefix if len(distinct) <= exact_limit else _by_min_hash
    for a, b in propose(sets, threshold, component):
        first, second = component[a], component[b]
        if first != second and jaccard(sets[a], sets[b]) >= threshold:
            component[component == max(first, second)] = min(first, second)
    place = dict(zip(distinct, component.tolist(), strict=True))
    found: dict[int, list[int]] = defaultdict(list)
    for position, text in enumerate(texts):
        found[place[text]].append(position)
    return [members for members in found.values() if len(members) > 1]


def _by_prefix(sets: Sequence[frozenset[str]], threshold: float, component: Components) -> Iterator[tuple[int, int]]:
    """Candidate pairs: those that share a gram among the rarest of each, and whose sizes allow the similarity.

    Whole groups found so far are skipped at once: a set made from one template is one group, not 50 million pairs.
    """
    frequency = Counter(gram for one in sets for gram in one)
    lengths = np.array([len(one) for one in sets])
    postings: dict[str, array[int]] = defaultdict(lambda: array("q"))
    for index in np.argsort(lengths, kind="stable").tolist():
        size = len(sets[index])
        prefix = sorted(sets[index], key=lambda gram: (frequency[gram], gram))
        for gram in prefix[: size - math.ceil(threshold * size) + 1]:
            posted = postings[gram]
            others = np.array(posted, dtype=np.int64)
            others = others[(component[others] != component[index]) & (lengths[others] >= threshold * size)]
            while len(others):
                tried = 0
                for other in others.tolist():
                    tried += 1
                    yield other, index
                    if component[other] == component[index]:
                        break
                others = others[tried:]
                others = others[component[others] != component[index]]
            posted.append(index)


def _by_min_hash(sets: Sequence[frozenset[str]], threshold: float, _: Components) -> Iterator[tuple[int, int]]:
    """Candidate pairs of MinHash LSH (Broder 1997), asked for at a lower threshold, since it may miss pairs."""
    try:
        from datasketch import MinHash, MinHashLSH
    except ImportError as error:
        raise ExtraMissing(feature=f"Near-duplicates among {len(sets):,} texts", extra="dedupe") from error
    index = MinHashLSH(threshold=threshold - 0.1, num_perm=64)
    encoded: Iterable[list[bytes]] = ([gram.encode() for gram in one] for one in sets)
    for number, sketch in enumerate(MinHash.generator(encoded, num_perm=64)):
        for other in index.query(sketch):
            yield int(str(other)), number
        index.insert(number, sketch, check_duplication=False)
