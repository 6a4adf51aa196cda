"""Row rules of `verdicts`."""

from __future__ import annotations

from typing import Any

from eval_pipeline.vocabulary import Expects, GradeMethod, Language, Outcome, PartSource

WORDS = {"outcome": Outcome, "expects": Expects, "method": GradeMethod, "part_source": PartSource, "language": Language}
COUNTS = ("attempt_count", "transport_retry_count", "call_count", "input_tokens", "output_tokens", "cost_usd")


def rules() -> list[Any]:
    """Expectations, each named in its `meta`."""
    import great_expectations.expectations as gxe

    words = [
        gxe.ExpectColumnValuesToBeInSet(column=name, value_set=[one.value for one in enum], meta={"rule": f"{name} is a known word", "severity": "error"})
        for name, enum in WORDS.items()
    ]  # fmt: skip
    counts = [
        gxe.ExpectColumnValuesToBeBetween(column=name, min_value=0, meta={"rule": f"{name} is not negative", "severity": "error"})
        for name in COUNTS
    ]  # fmt: skip
    return [
        *words, *counts,
        gxe.ExpectColumnValuesToBeBetween(column="value", min_value=-1, max_value=1, meta={"rule": "value lies in [-1, 1]", "severity": "error"}),
        gxe.ExpectColumnValuesToBeNull(column="grade", row_condition=f'outcome!="{Outcome.GRADED}"', condition_parser="pandas",
                                       meta={"rule": "only a graded verdict has a grade", "severity": "error"}),
    ]  # fmt: skip
