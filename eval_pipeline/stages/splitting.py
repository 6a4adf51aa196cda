"""Parts of a golden set: splits and samples that keep the mix of strata, never cut a cluster, and repeat under a seed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

Unit = tuple[list[int], Counter[str]]
"""Rows of one cluster, and how many of each stratum they hold."""


def split(items: pl.DataFrame, shares: Mapping[str, float], seed: int) -> dict[str, pl.DataFrame]:
    """Parts by name, each with about its share of every stratum; items of one cluster stay together.

    Args:
        items: `golden_items` rows.
        shares: positive, by name of the part; only their ratio counts.
        seed: the same items and seed give the same parts, in whatever order the items come.

    Raises:
        ValueError: no shares, or one that is not positive.
    """
    if not shares or any(not share > 0 for share in shares.values()):
        raise ValueError("a split needs a positive share for every part")
    total = sum(shares.values())
    sizes = Counter(items["stratum"].to_list())
    wanted = {name: {s: count * share / total for s, count in sizes.items()} for name, share in shares.items()}
    rows: dict[str, list[int]] = {name: [] for name in shares}
    have: dict[str, Counter[str]] = {name: Counter() for name in shares}
    for members, strata in _units(items, seed):
        name = max(shares, key=lambda one: _gain(wanted[one], have[one], strata))
        rows[name] += members
        have[name] += strata
    return {name: items[sorted(chosen)] for name, chosen in rows.items()}


def sample(items: pl.DataFrame, n: int, seed: int) -> pl.DataFrame:
    """About `n` items with the strata in proportion, whole clusters only; exactly `n` when no item shares its cluster.

    Raises:
        ValueError: `n` is negative.
    """
    if n < 0:
        raise ValueError("a sample cannot have fewer than no items")
    wanted = _quotas(Counter(items["stratum"].to_list()), min(n, items.height))
    have: Counter[str] = Counter()
    chosen: list[int] = []
    for members, strata in sorted(_units(items, seed), key=lambda unit: _place(seed, items["item_id"][unit[0][0]])):
        if _gain(wanted, have, strata) > 0:
            chosen += members
            have += strata
    return items[sorted(chosen)]


def _units(items: pl.DataFrame, seed: int) -> list[Unit]:
    """Clusters, the large ones first (they are the hardest to place), else in the seed's order."""
    found: dict[str, list[int]] = {}
    ids, strata = items["item_id"].to_list(), items["stratum"].to_list()
    for index, cluster in sorted(enumerate(items["cluster_id"]), key=lambda row: ids[row[0]]):
        item_id = ids[index]
        found.setdefault(f"cluster {cluster}" if cluster is not None else f"item {item_id}", []).append(index)
    units = [(rows, Counter(strata[index] for index in rows)) for rows in found.values()]
    return sorted(units, key=lambda unit: (-len(unit[0]), _place(seed, ids[unit[0][0]])))


def _place(seed: int, item_id: str) -> bytes:
    """A place in the seed's order that does not depend on the order of the rows."""
    return hashlib.sha256(f"{seed} {item_id}".encode()).digest()


def _gain(wanted: Mapping[str, float], have: Mapping[str, int], strata: Mapping[str, int]) -> float:
    """How much nearer the wanted counts these rows bring a part: the fall of the summed squared distance."""
    before = [(wanted[s] - have.get(s, 0)) for s in strata]
    after = [gap - count for gap, count in zip(before, strata.values(), strict=True)]
    return sum(b * b - a * a for b, a in zip(before, after, strict=True))


def _quotas(sizes: Mapping[str, int], n: int) -> dict[str, float]:
    """Whole numbers in proportion to the sizes, by largest remainders."""
    total = sum(sizes.values())
    exact = {name: size * n / total for name, size in sizes.items()} if total else {}
    found = {name: int(value) for name, value in exact.items()}
    rest: Sequence[str] = sorted(exact, key=lambda name: (found[name] - exact[name], name))
    for name in rest[: n - sum(found.values())]:
        found[name] += 1
    return {name: float(count) for name, count in found.items()}
