"""Splits and samples keep strata, never cut a cluster, and repeat under a seed."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.stages.splitting import sample, split

clusters = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.one_of(st.none(), st.integers(0, 5))), min_size=1, max_size=60
)


def frame(rows) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"item_id": f"q{n:03}", "stratum": stratum, "cluster_id": None if c is None else f"c{c}"}
            for n, (stratum, c) in enumerate(rows)
        ],
        schema={"item_id": pl.String, "stratum": pl.String, "cluster_id": pl.String},
    )


@given(rows=clusters, seed=st.integers(0, 99))
def test_every_item_is_in_one_part_and_no_cluster_is_cut(rows, seed: int) -> None:
    items = frame(rows)
    parts = split(items, {"dev": 0.7, "test": 0.3}, seed)
    assert sorted(one for part in parts.values() for one in part["item_id"]) == items["item_id"].to_list()
    where = [{c for c in part["cluster_id"] if c is not None} for part in parts.values()]
    assert not where[0] & where[1]
    turned = split(items.reverse(), {"dev": 0.7, "test": 0.3}, seed)
    assert {name: set(part["item_id"]) for name, part in turned.items()} == {
        name: set(part["item_id"]) for name, part in parts.items()
    }


@pytest.mark.parametrize("seed", range(5))
def test_each_part_has_its_share_of_each_stratum(seed: int) -> None:
    parts = split(frame([("a", None)] * 100 + [("b", None)] * 50), {"dev": 7, "test": 3}, seed)
    assert Counter(parts["dev"]["stratum"]) == {"a": 70, "b": 35}
    assert Counter(parts["test"]["stratum"]) == {"a": 30, "b": 15}


def test_a_sample_is_exact_in_proportion_and_differs_by_seed() -> None:
    items = frame([("a", None)] * 90 + [("b", None)] * 10)
    drawn = sample(items, 20, 1)
    assert Counter(drawn["stratum"]) == {"a": 18, "b": 2}
    assert drawn["item_id"].to_list() != sample(items, 20, 2)["item_id"].to_list()
    assert sample(items, 20, 1).equals(drawn) and sample(items, 999, 1).height == 100 and sample(items, 0, 1).is_empty()


def test_every_item_is_as_likely_in_a_sample() -> None:
    items = frame([("a", None)] * 20)
    counts = Counter(one for seed in range(500) for one in sample(items, 5, seed)["item_id"])
    # p = 1/4 over 500 draws: sd sqrt(.25 * .75 / 500) = .019; 20 items, so 4 sd.
    assert all(abs(counts[one] / 500 - 0.25) < 0.08 for one in items["item_id"])


@given(rows=clusters, n=st.integers(0, 60), seed=st.integers(0, 9))
def test_a_sample_holds_whole_clusters(rows, n: int, seed: int) -> None:
    items = frame(rows)
    drawn = sample(items, n, seed)
    for cluster in set(drawn["cluster_id"].drop_nulls()):
        assert (drawn["cluster_id"] == cluster).sum() == (items["cluster_id"] == cluster).sum()


@pytest.mark.parametrize("shares", [{}, {"a": 0.0}, {"a": -1, "b": 2}, {"a": float("nan")}])
def test_a_share_that_is_none_is_refused(shares) -> None:
    with pytest.raises(ValueError, match="positive share"):
        split(frame([("a", None)]), shares, 0)
