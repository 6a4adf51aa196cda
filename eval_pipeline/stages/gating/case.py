"""What the gate looks at and what it says: the case, a rule's verdict, the whole decision. No rule belongs here."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from eval_pipeline.config import GateConfig, GateMetricConfig, PolicyConfig
from eval_pipeline.vocabulary import Decision, Policy

if TYPE_CHECKING:
    from eval_pipeline.stages.gating.canary import Canary

ALL = "all"
LISTED_ITEMS = 1000
"""Item ids kept with one rule; the numbers beside it count all of them."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The verdict of one rule, with its evidence in both languages."""

    rule: str
    metric: str
    verdict: Decision
    evidence: str
    evidence_ko: str
    item_ids: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gate:
    """The decision with all rules."""

    decision: Decision
    exit_code: int
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Past:
    """An earlier evaluation to compare with.

    Attributes:
        scores: its `scores` rows, or a pinned baseline's, of the same columns.
        is_failed: its own gate found a regression; such a night is no reference, unless it was pinned since.
    """

    evaluation_id: str
    scores: pl.DataFrame
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """Everything the gate looks at.

    Attributes:
        evaluation: the `evaluations` row.
        gated: metrics that decide; others are only reported.
        judged: metrics that ask a judge, so need a calibration.
        accepted_judges: judge keys accepted by a recorded decision, after a parallel baseline.
        judges_of_record: by metric, the judge keys that may decide; a metric that is new has none and needs none.
        rot: remarks about content that differs from its tag; empty when there are none.
        window: earlier complete evaluations of this system and dataset, oldest first, replays left out.
        pinned: the pinned baseline, or null.
        self_evaluation: remarks about judges that are a model inside the system; any blocks.
        noise_floors: by metric, the sd of the mean difference between two judgings of the same responses.
        canaries: frozen questions asked anew, by metric; empty when none were asked.
        confirmed: metrics whose drop was confirmed by judging both sides again on one day.
    """

    evaluation: Mapping[str, Any]
    scores: pl.DataFrame
    summaries: pl.DataFrame
    calibrations: pl.DataFrame
    gate: GateConfig
    policy: Policy
    gated: tuple[str, ...]
    judged: tuple[str, ...]
    accepted_judges: frozenset[str] = frozenset()
    judges_of_record: Mapping[str, frozenset[str]] = field(default_factory=dict)
    rot: tuple[str, ...] = ()
    window: tuple[Past, ...] = ()
    pinned: Past | None = None
    self_evaluation: tuple[str, ...] = ()
    noise_floors: Mapping[str, float] = field(default_factory=dict)
    canaries: tuple[Canary, ...] = ()
    confirmed: frozenset[str] = frozenset()

    @property
    def policy_config(self) -> PolicyConfig:
        return self.gate.policy(self.policy)

    @property
    def references(self) -> tuple[Past, ...]:
        """The window without failed nights. Pinning one of its nights accepts that level: older ones leave."""
        pin = self.pinned.evaluation_id if self.pinned else None
        start = next((index for index, past in enumerate(self.window) if past.evaluation_id == pin), 0)
        return tuple(past for past in self.window[start:] if not past.is_failed or past.evaluation_id == pin)

    def demands(self, metric: str) -> GateMetricConfig:
        return self.gate.metrics.get(metric, GateMetricConfig())

    def is_of_record(self, metric: str, keys: AbstractSet[str | None]) -> bool:
        """Whether these judge keys may decide on a metric."""
        return metric not in self.judges_of_record or keys <= self.judges_of_record[metric]

    def summary(self, metric: str) -> dict[str, Any] | None:
        """The metric's summary over all strata, or null."""
        found = self.summaries.filter((pl.col("metric") == metric) & (pl.col("stratum") == ALL)).to_dicts()
        return found[0] if found else None


def number(value: float | None) -> str:
    """Three digits without a leading zero: `.842`, `-.041`."""
    return "undefined" if value is None else f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}"


def signed(value: float | None) -> str:
    """The same with its sign."""
    return f"+{number(value)}" if value is not None and value > 0 else number(value)


def p_value(value: float | None) -> str:
    """A p value as people write it."""
    return "undefined" if value is None else "<.001" if value < 0.001 else number(value)
