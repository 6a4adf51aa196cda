"""Row rules of `scores`."""

from __future__ import annotations

from typing import Any

from eval_pipeline.vocabulary import ScoreStatus


def rules() -> list[Any]:
    """Expectations, each named in its `meta`."""
    import great_expectations.expectations as gxe

    ranges = [
        gxe.ExpectColumnValuesToBeBetween(column=name, min_value=0, max_value=1, meta={"rule": f"{name} lies in [0, 1]", "severity": "error"})
        for name in ("value", "lower", "upper")
    ]  # fmt: skip
    orders = [
        gxe.ExpectColumnPairValuesAToBeGreaterThanB(column_A=high, column_B=low, or_equal=True, ignore_row_if="either_value_is_missing",
                                                    meta={"rule": f"{low} <= {high}", "severity": "error"})
        for low, high in (("lower", "value"), ("value", "upper"))
    ]  # fmt: skip
    return [
        *ranges, *orders,
        gxe.ExpectColumnValuesToBeInSet(column="status", value_set=[one.value for one in ScoreStatus], meta={"rule": "status is a known word", "severity": "error"}),
        gxe.ExpectCompoundColumnsToBeUnique(column_list=["metric", "item_id"], meta={"rule": "one score per metric and item", "severity": "error"}),
    ]  # fmt: skip
