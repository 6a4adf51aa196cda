"""How many pairs lie above, below or level with each cell of a pair table.

The counting under Spearman's and Kendall's leave-one-out values; no statistic is here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .counts import DENSE_CELLS, Floats, Ints, PairTable


@dataclass(frozen=True, slots=True)
class Concordance:
    """Per cell: concordant minus discordant pairs (`score`), and marginal counts at its levels."""

    score: Floats
    tied_x: Floats
    tied_y: Floats
    above_x: Floats
    above_y: Floats


def concordance(table: PairTable) -> Concordance:
    """Count, for each cell, the pairs concordant and discordant with it. O(cells) on a grid, O(n log^2 n) off it."""
    n = float(table.counts.sum())
    x_counts, y_counts = table.x_counts, table.y_counts
    tied_x, tied_y = x_counts[table.x_index], y_counts[table.y_index]
    above_x = (n - np.cumsum(x_counts))[table.x_index]
    above_y = (n - np.cumsum(y_counts))[table.y_index]
    both_above, same_x_above_y, above_x_same_y = _above(table)
    x_above_y_below = above_x - both_above - above_x_same_y
    x_below_y_above = above_y - both_above - same_x_above_y
    x_below_same_y = tied_y - above_x_same_y - table.counts
    both_below = (n - above_x - tied_x) - x_below_y_above - x_below_same_y
    return Concordance(both_above + both_below - x_above_y_below - x_below_y_above, tied_x, tied_y, above_x, above_y)


def _above(table: PairTable) -> tuple[Floats, Floats, Floats]:
    """Counts with (x >, y >), (x =, y >) and (x >, y =) of each cell."""
    rows, columns = len(table.x_levels), len(table.y_levels)
    if rows * columns <= DENSE_CELLS:
        dense = np.zeros((rows + 1, columns + 1))
        np.add.at(dense, (table.x_index, table.y_index), table.counts)
        right = np.cumsum(dense[:, ::-1], axis=1)[:, ::-1]
        down = np.cumsum(dense[::-1], axis=0)[::-1]
        corner = np.cumsum(right[::-1], axis=0)[::-1]
        xi, yi = table.x_index, table.y_index
        return corner[xi + 1, yi + 1], right[xi, yi + 1], down[xi + 1, yi]
    same_x = _greater_in_group(table.x_index, table.y_index, table.counts, columns)
    same_y = _greater_in_group(table.y_index, table.x_index, table.counts, rows)
    swap = rows > columns
    first, second, width = (table.y_index, table.x_index, rows) if swap else (table.x_index, table.y_index, columns)
    # Two indices a < b first differ in one bit: 0 in a, 1 in b, all higher bits equal. Sum over that bit.
    both = np.zeros(len(table.counts))
    for bit in range(int(first.max()).bit_length()):
        is_upper = (first >> bit) & 1
        found = _greater_in_group(first >> (bit + 1), second, table.counts * is_upper, width)
        both += np.where(is_upper == 0, found, 0.0)
    return both, same_x, same_y


def _greater_in_group(group: Ints, value: Ints, weight: Floats, width: int) -> Floats:
    """For each cell, the weight of cells in its group with a greater value."""
    key = group.astype(np.int64) * width + value
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    cumulative = np.concatenate([[0.0], np.cumsum(weight[order])])
    beyond = np.searchsorted(ordered, ordered, side="right")
    end = np.searchsorted(ordered, (group[order].astype(np.int64) + 1) * width, side="left")
    result = np.empty(len(key))
    result[order] = cumulative[end] - cumulative[beyond]
    return result
