"""Judge scores and labels to calibrations: how far a judge agrees with people, and whether that is enough.

`pairs` decides on two columns, `people` makes one label of several; here they meet the tables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from eval_pipeline.stages.calibration.pairs import (
    FLAT,
    STATISTICS,
    Bar,
    PairsReport,
    SamplingPlan,
    as_score,
    calibrate_pairs,
    compare,
    confusion,
    exit_code,
    flat,
    sampling_plan,
    statistics,
)  # fmt: skip
from eval_pipeline.stages.calibration.people import (
    ADJUDICATED,
    agreement,
    as_json,
    human_agreement,
    per_text,
    two_people,
)
from eval_pipeline.stats.calibration_rule import MINIMUM_LABELS, heterogeneity, off_modal_count
from eval_pipeline.stats.correlation import spearman, spearman_weighted
from eval_pipeline.stats.counts import PairTable
from eval_pipeline.stats.stat import Stat
from eval_pipeline.tables import CALIBRATIONS
from eval_pipeline.vocabulary import CalibrationDecision, Provenance

__all__ = [
    "ADJUDICATED", "ALL", "Bar", "JudgeOnMetric", "PairsReport", "SamplingPlan", "as_score", "attempt", "calibrate",
    "calibrate_pairs", "compare", "exit_code", "flat", "human_agreement", "is_current", "labels_sha256", "report", "sampling_plan",
    "statistics",
]  # fmt: skip

ALL = "all"
STRATUM_LABELS, STRATUM_OFF_MODAL = 30, 5
"""Below these a stratum shows the judge's bias only, no rho."""


@dataclass(frozen=True, slots=True)
class JudgeOnMetric:
    """Who judged a metric."""

    judge_key: str
    judge: str
    judge_model: str


def calibrate(
    labels: pl.DataFrame,
    judged: pl.DataFrame,
    judges: Mapping[str, JudgeOnMetric],
    *,
    bar: Bar = Bar(),  # noqa: B008
    evaluation_id: str | None,
    now: datetime,
    history: pl.DataFrame | None = None,
    contaminated: Collection[str] = (),
) -> pl.DataFrame:
    """`calibrations` rows: one per metric over all labels, and one per stratum.

    Args:
        labels: `human_labels` rows.
        judged: the judge's value of each labelled text: metric, content_sha256, value (null when invalid).
        judges: by metric; a metric without one (it asks no judge) is left out.
        bar: when a judge counts as tested.
        evaluation_id: the evaluation in whose run it is made.
        now: when.
        history: earlier `calibrations` rows of any judge; how often a label set was used is counted from them.
        contaminated: hashes of labelled texts that were used in the judge's prompt or in tuning; any refuses.

    Where human labels exist only they count. Without any, the others are compared and shown as what they are, and the
    decision is `untested`: constructed labels certify nothing.
    """
    rows: list[dict[str, Any]] = []
    for metric, judge in sorted(judges.items()):
        counted, provenance = _counted(labels.filter(pl.col("metric") == metric))
        values = judged.filter(pl.col("metric") == metric).unique("content_sha256", keep="last")
        sha = labels_sha256(counted)
        used = attempt(history, metric, sha, judge.judge_key)
        shared = {
            "judge_key": judge.judge_key, "metric": metric, "labels_sha256": sha, "evaluation_id": evaluation_id,
            "judge": judge.judge, "judge_model": judge.judge_model, "label_provenance": provenance, "bar": bar.bar,
            "attempt": used, "calibrated_at": now,
        }  # fmt: skip
        bad = counted["content_sha256"].is_in(list(contaminated)).sum()
        whole = _Part(counted, values, bar, used, provenance, int(bad))
        strata = [
            (str(name), _Part(part, values, bar, used, provenance))
            for (name,), part in sorted(counted.drop_nulls("stratum").group_by("stratum"), key=lambda p: str(p[0][0]))
            if name != ALL
        ]
        rows.append(shared | {"stratum": ALL} | _row(whole, strata=[part.rho() for _, part in strata]))
        rows += [shared | {"stratum": name} | _row(part) for name, part in strata]
    return CALIBRATIONS.frame(rows)


def labels_sha256(labels: pl.DataFrame) -> str:
    """Identity of a label set: what was labelled, by whom, how."""
    parts = labels.select("content_sha256", "annotator", "value").sort("content_sha256", "annotator").rows()
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def is_current(calibrations: pl.DataFrame, labels: pl.DataFrame) -> bool:
    """Whether every `calibrations` row of a whole metric was made with these `human_labels` rows."""
    whole = calibrations.filter(pl.col("stratum") == ALL).select("metric", "labels_sha256")
    return all(
        sha == labels_sha256(_counted(labels.filter(pl.col("metric") == metric))[0])
        for metric, sha in whole.iter_rows()
    )


def attempt(history: pl.DataFrame | None, metric: str, sha: str, judge_key: str) -> int:
    """Which use of this label set this is: each other judge, prompt or rubric tried on it before counts as one.

    A judge that comes back keeps its number, so a nightly run does not wear its labels out.
    """
    if history is None or history.is_empty():
        return 1
    same = history.filter((pl.col("metric") == metric) & (pl.col("labels_sha256") == sha) & (pl.col("stratum") == ALL))
    order = same.group_by("judge_key").agg(pl.col("calibrated_at").min()).sort("calibrated_at", "judge_key")
    keys = order["judge_key"].to_list()
    return keys.index(judge_key) + 1 if judge_key in keys else len(keys) + 1


def _counted(labels: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    human = labels.filter(pl.col("provenance") == Provenance.HUMAN.value)
    if human.height:
        return human, Provenance.HUMAN.value
    kinds = labels["provenance"].unique().to_list()
    return labels, kinds[0] if len(kinds) == 1 else "mixed" if kinds else "none"


class _Part:
    """The labels of one metric, whole or one stratum, beside the judge's scores."""

    def __init__(
        self, labels: pl.DataFrame, judged: pl.DataFrame, bar: Bar, used: int, provenance: str, contaminated: int = 0
    ) -> None:
        self.labels, self.provenance, self.bar = labels, provenance, bar
        scores = judged.select("content_sha256", pl.col("value").alias("judge"))
        self.pairs = per_text(labels).join(scores, on="content_sha256", how="left")
        self.human, self.judge = (self.pairs[name].cast(pl.Float64).to_numpy() for name in ("human", "judge"))
        self.table = PairTable.from_rows(self.human, self.judge)
        self.result = compare(
            self.human, self.judge, bar=bar, attempt=used, clusters=self._clusters(), contaminated_count=contaminated
        )

    def _clusters(self) -> list[str] | None:
        """One id per text where texts share one; null where none do."""
        shared = self.pairs["cluster_id"].drop_nulls()
        if shared.len() == shared.n_unique():
            return None
        return (
            self.pairs.select(pl.coalesce("cluster_id", pl.concat_str(pl.lit("\x00"), "content_sha256")))
            .to_series()
            .to_list()
        )

    def rho(self) -> Stat:
        return self.result.spearman_rho

    def has_rho(self) -> bool:
        return self.table.n >= STRATUM_LABELS and off_modal_count(self.table) >= STRATUM_OFF_MODAL

    def decision(self) -> tuple[str, str | None]:
        """Only human labels certify; the reason says which others there were."""
        if self.provenance == Provenance.HUMAN.value:
            return self.result.decision, self.result.reason
        reason = "no_labels" if self.labels.is_empty() else f"{self.provenance}_labels"
        return CalibrationDecision.UNTESTED.value, reason

    def weighted_rho(self) -> Stat | None:
        """What the labels say of the whole run, where each text's chance to be labelled is known."""
        chance = self.pairs["inclusion_probability"]
        if chance.is_empty() or chance.null_count() or (chance <= 0).any() or chance.n_unique() == 1:
            return None
        return spearman_weighted(self.human, self.judge, (1 / chance).to_numpy())

    def unanimous_rho(self) -> Stat | None:
        """rho on the texts on which all people agree."""
        agreed = self.pairs.filter(pl.col("is_unanimous").fill_null(value=False))
        if agreed.height < STRATUM_LABELS:
            return None
        return spearman(agreed["human"].to_numpy(), agreed["judge"].cast(pl.Float64).to_numpy())


def _row(part: _Part, strata: list[Stat] | None = None) -> dict[str, Any]:
    decision, reason = part.decision()
    result, row = part.result, flat(part.result, part.bar)
    if strata is None and not part.has_rho():
        row |= dict.fromkeys(("spearman_rho", "rho_lower", "rho_upper", "kendall_tau_b"))
        row |= {"rho_status": "undefined", "labels_needed": None}
        decision = CalibrationDecision.UNTESTED.value
    elif part.provenance != Provenance.HUMAN.value:
        # What the other labels would need says nothing of the human ones that are missing.
        row["labels_needed"] = max(part.bar.minimum_labels, MINIMUM_LABELS)
    agreed = agreement(*two_people(part.labels))
    further = {"spearman_rho_weighted": part.weighted_rho(), "spearman_rho_unanimous": part.unanimous_rho()}
    if strata is not None:
        further["rho_heterogeneity"] = heterogeneity(strata)
    details = (
        statistics(result) | as_json(agreed) | confusion(part.human, part.judge)
        | {name: stat.to_dict() for name, stat in further.items() if stat is not None}
    )  # fmt: skip
    return row | {
        "decision": decision,
        "reason": reason,
        "is_provisional": result.provisional and decision == CalibrationDecision.INCONCLUSIVE.value,
        "human_agreement": agreed["human_agreement"].value,
        "statistics": json.dumps(details, sort_keys=True),
    }


def report(row: Mapping[str, Any]) -> dict[str, Any]:
    """What `calibrate --json` prints of one `calibrations` row."""
    details = json.loads(row["statistics"])

    def shown(name: str) -> dict[str, Any] | None:
        stat = details.get(name)
        return None if stat is None else {key: stat[key] for key in FLAT}

    names = (*STATISTICS, "human_agreement", "human_agreement_kappa", "rho_ceiling_by_human_noise")
    return {
        "judge": row["judge"], "metric": row["metric"], "stratum": row["stratum"], "pair_count": row["pair_count"],
        "dropped_count": row["dropped_count"], **{name: shown(name) for name in names}, "decision": row["decision"],
        "provisional": row["is_provisional"], "labels_needed": row["labels_needed"], "reason": row["reason"],
        "bar": row["bar"], "attempt": row["attempt"], "label_provenance": row["label_provenance"],
        "warnings": details.get("warnings", []),
    }  # fmt: skip
