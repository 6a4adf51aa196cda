"""What a correlation cannot see: shift, absolute error and hit rates of a judge against people.

Probes of known judge biases (length, position, own family) are in `probes`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .counts import Counts, Numbers, PairTable, as_counts, as_pairs
from .means import mean_interval
from .paired import paired_difference
from .rates import wilson
from .stat import Stat, undefined


def mean_bias(human: Numbers | PairTable, judge: Numbers | None = None, level: float = 0.95) -> Stat:
    """mean(judge - human) with a Bonett-Price interval; positive = lenient."""
    return paired_difference(as_pairs(human, judge), level=level, name="bias")


def mean_absolute_error(human: Numbers | PairTable, judge: Numbers | None = None, level: float = 0.95) -> Stat:
    """mean |judge - human| with a pseudo-observation interval; both on [0, 1]."""
    differences = as_pairs(human, judge).differences()
    return mean_interval(
        as_counts(Counts(np.abs(differences.levels), differences.counts, differences.n_dropped)),
        level, name="mean_absolute_error",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class HitRates:
    """Pass/fail agreement at a cut; positive = a human score at or above the cut."""

    true_positive_rate: Stat
    true_negative_rate: Stat
    true_positives: int
    human_positives: int
    true_negatives: int
    human_negatives: int


def hit_rates(
    human: Numbers | PairTable, judge: Numbers | None = None, *, cut: float, judge_cut: float | None = None,
    level: float = 0.95,
) -> HitRates:  # fmt: skip
    """TPR and TNR with Wilson intervals; a class without labels is undefined (`single_class_labels`).

    Args:
        cut: Human scores at or above it are positive ("good"). judge_cut: the same for the judge; default `cut`.
    """
    table = as_pairs(human, judge)
    positive = table.x >= cut
    agreed = (table.y >= (cut if judge_cut is None else judge_cut)) == positive
    counts = table.counts

    def rate(name: str, rows: np.ndarray) -> tuple[Stat, int, int]:
        total, hits = float(counts[rows].sum()), float(counts[rows & agreed].sum())
        if total == 0:
            return undefined(name, "single_class_labels", n_dropped=table.n_dropped), 0, 0
        return wilson(hits, total, level, name=name), round(hits), round(total)

    tpr, tp, positives = rate("true_positive_rate", positive)
    tnr, tn, negatives = rate("true_negative_rate", ~positive)
    return HitRates(tpr, tnr, tp, positives, tn, negatives)
