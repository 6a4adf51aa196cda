"""Whether dataset and judge are still what they were: PSI with its null, canaries, dead and wrong items, saturation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from .counts import Numbers, as_floats, complete
from .permutation import sign_flip
from .quantiles import chi2_quantile
from .stat import Stat, undefined


def population_stability(
    expected: Sequence[float], actual: Sequence[float], *, smoothing: float = 0.5, level: float = 0.95
) -> Stat:
    """PSI of two count vectors over the same bins, sum (a - e) ln(a / e), with the limit it keeps when nothing changed.

    Args:
        expected: Counts of the reference. actual: counts of today, same bins.
        smoothing: Added to each count; without it an empty bin makes the value infinite (`empty_bin`).
        level: Of the null limit chi2_{level, B-1} (1/n + 1/m). The folk limits .1 and .25 ignore n.

    Returns:
        The value; `details.null_limit` and `details.is_shifted`.
    """
    e, a = np.asarray(expected, dtype=np.float64), np.asarray(actual, dtype=np.float64)
    name = "population_stability_index"
    if e.shape != a.shape or e.ndim != 1:
        raise ValueError("PSI compares two count vectors over the same bins.")
    if not (np.isfinite(e).all() and np.isfinite(a).all()) or (e < 0).any() or (a < 0).any() or smoothing < 0:
        raise ValueError("Counts are finite and not negative.")
    n, m = float(e.sum()), float(a.sum())
    if n == 0 or m == 0:
        return undefined(name, "n_zero", n=int(m))
    used = (e > 0) | (a > 0) if smoothing == 0 else np.ones(len(e), dtype=bool)
    p, q = e[used] + smoothing, a[used] + smoothing
    if (p == 0).any() or (q == 0).any():
        return undefined(name, "empty_bin", n=int(m), details={"smoothing": smoothing})
    p, q = p / p.sum(), q / q.sum()
    value = max(0.0, float(((q - p) * np.log(q / p)).sum()))
    occupied = int(((e > 0) | (a > 0)).sum())
    limit = chi2_quantile(level, occupied - 1) * (1 / n + 1 / m) if occupied > 1 else 0.0
    return Stat(
        name=name, value=value, n=int(m), level=level, method="psi", estimand="population",
        details={
            "null_limit": limit, "is_shifted": occupied > 1 and value > limit, "smoothing": smoothing,
            "bins": len(e), "n_expected": n, "n_actual": m,
        },
    )  # fmt: skip


def canary(reference: Numbers, today: Numbers, *, flip_share: float | None = None, alpha: float = 0.01) -> Stat:
    """Whether the judge moved on frozen items: two-sided exact sign flip, and the flips against the noise floor.

    Args:
        reference: Scores of the frozen items when they were frozen. today: scores now.
        flip_share: Share of items that differ between two judgings by the unchanged judge.
        alpha: Of each of the two tests.

    Returns:
        The mean shift with p; `details.flip_p`, `details.is_moved`. Undefined under 50 items.
    """
    (a, b), dropped = complete(reference, today)
    name, n = "canary_shift", len(a)
    if n < 50:
        return undefined(name, "n_too_small", n=n, n_dropped=dropped)
    test = sign_flip(a, b, name=name)
    changed = int(test.details["n_changed"])
    flip_p = None
    if flip_share is not None:
        from scipy.special import bdtrc

        flip_p = 1.0 if changed == 0 else float(bdtrc(changed - 1, n, min(max(flip_share, 0.0), 1.0)))
    assert test.p is not None
    moved = test.p < alpha or (flip_p is not None and flip_p < alpha)
    return Stat(
        name=name, value=test.value, n=n, n_dropped=dropped, p=test.p, method=test.method, estimand="fixed_set",
        details={**test.details, "flips": changed, "flip_p": flip_p, "is_moved": moved},
    )  # fmt: skip


def item_discrimination(scores: Sequence[Numbers]) -> list[Stat]:
    """Corrected item-total correlation of each item over systems (or distinct runs).

    Args:
        scores: One row per system, one column per item; None = missing.

    Returns:
        One `Stat` per item: correlation of the item with the system's mean over the *other* items. Undefined under 8
        systems that scored it, or where either is constant. Negative: probably a wrong reference.
    """
    table = np.stack([as_floats(row) for row in scores]) if len(scores) else np.empty((0, 0))
    present = ~np.isnan(table)
    filled = np.where(present, table, 0.0)
    others = present.sum(axis=1, keepdims=True) - present
    rest = (filled.sum(axis=1, keepdims=True) - filled) / np.maximum(others, 1)
    rest[others == 0] = np.nan
    usable = present & ~np.isnan(rest)
    n = usable.sum(axis=0)
    x, y = np.where(usable, table, 0.0), np.where(usable, rest, 0.0)
    safe = np.maximum(n, 1)
    dx, dy = np.where(usable, x - x.sum(axis=0) / safe, 0.0), np.where(usable, y - y.sum(axis=0) / safe, 0.0)
    sxx, syy, sxy = (dx**2).sum(axis=0), (dy**2).sum(axis=0), (dx * dy).sum(axis=0)
    results = []
    for item in range(table.shape[1]):
        count, missing = int(n[item]), int(table.shape[0] - n[item])
        if count < 8:
            results.append(undefined("item_discrimination", "n_too_small", n=count, n_dropped=missing))
        elif sxx[item] < 1e-12 or syy[item] < 1e-12:
            results.append(undefined("item_discrimination", "constant_input", n=count, n_dropped=missing))
        else:
            value = float(np.clip(sxy[item] / np.sqrt(sxx[item] * syy[item]), -1, 1))
            results.append(
                Stat(
                    name="item_discrimination", value=value, n=count, n_dropped=missing, estimand="fixed_set",
                    method="corrected_item_total", notes=("negative: check the reference",) if value < 0 else (),
                )
            )  # fmt: skip
    return results


@dataclass(frozen=True, slots=True)
class DeadItems:
    """Items that had one and the same score in every run, and what is left to show a change."""

    share: Stat
    item_ids: tuple[Hashable, ...]
    live_count: int
    all_perfect_share: float | None
    is_rotten: bool


def dead_items(item_ids: Sequence[Hashable], runs: Sequence[Numbers], systems: Sequence[Hashable]) -> DeadItems:
    """Items with the same score in all runs over at least 3 distinct systems; over 60% of them is rot.

    Args:
        item_ids: One id per column of `runs`.
        runs: One row of scores per run. systems: the system of each run.
    """
    name, n = "dead_item_share", len(item_ids)
    if len(set(systems)) < 3 or n == 0:
        return DeadItems(undefined(name, "fewer_than_three_systems" if n else "n_zero", n=n), (), n, None, False)
    table = np.stack([as_floats(run) for run in runs])
    complete_columns = ~np.isnan(table).any(axis=0)
    dead = complete_columns & (np.ptp(np.nan_to_num(table), axis=0) < 1e-12)
    perfect = dead & (table[0] >= 1 - 1e-12)
    measured = int(complete_columns.sum())
    if measured == 0:
        return DeadItems(undefined(name, "n_zero", n_dropped=n), (), n, None, False)
    share = int(dead.sum()) / measured
    stat = Stat(
        name=name,
        value=share,
        n=measured,
        n_dropped=n - measured,
        method="same_score_in_all_runs",
        estimand="fixed_set",
    )
    ids = tuple(item_ids[column] for column in np.flatnonzero(dead).tolist())
    return DeadItems(stat, ids, n - len(ids), int(perfect.sum()) / measured, share > 0.6)


def saturation(mean: float, detectable: float) -> Stat:
    """Headroom 1 - mean; saturated when it is under twice the minimum detectable effect."""
    headroom = 1 - mean
    saturated = headroom < 2 * detectable
    return Stat(
        name="headroom", value=headroom, n=1, method="headroom", estimand="fixed_set",
        notes=("the set can no longer show improvement",) if saturated else (),
        details={"is_saturated": saturated, "detectable": detectable},
    )  # fmt: skip
