"""What each section of the report says, as plain rows and charts. No HTML here but finished SVG, no escaping."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from eval_pipeline.report import charts
from eval_pipeline.report.figures import number, signed, span
from eval_pipeline.report.items import shown_reply
from eval_pipeline.report.view import EvaluationView

Row = dict[str, Any]
Words = Mapping[str, str]
ORDER = ("FAIL", "BLOCKED", "INCONCLUSIVE", "PASS_UNPROVEN", "NOT_EVALUATED", "PASS")
COUNTS = (
    "scored_count",
    "no_response_count",
    "invalid_count",
    "no_claims_count",
    "not_applicable_count",
    "not_asked_count",
)
ESTIMATORS = {"ppi_mean": "PPI++", "rogan_gladen": "Rogan-Gladen"}
SHOWN_STRATA, SHOWN_INVALID, SHOWN_CHANGES, SHOWN_FLIPS = 24, 40, 100, 20


def rules(view: EvaluationView, evidence: str) -> tuple[Row | None, list[Row]]:
    """The decision's row, or null, and the rules, worst first. `evidence` names the column of the wanted language."""
    listed = [row | {"evidence": row[evidence] or row["evidence"]} for row in view.gate.iter_rows(named=True)]
    decision = next((row for row in listed if row["rule"] == "decision"), None)
    rest = [row for row in listed if row["rule"] != "decision"]
    return decision, sorted(rest, key=lambda row: ORDER.index(row["verdict"]) if row["verdict"] in ORDER else 0)


def metrics(view: EvaluationView) -> list[str]:
    """Metrics in the order of the evaluation, then any the summaries hold besides."""
    found = view.summaries["metric"].unique(maintain_order=True).to_list()
    named = [name for name in view.evaluation["metrics"] or () if name in found]
    return [*named, *(name for name in found if name not in named)]


def whole(view: EvaluationView) -> dict[str, Row]:
    """Summaries over the whole set by metric."""
    return {row["metric"]: row for row in view.summaries.filter(pl.col("stratum") == "all").iter_rows(named=True)}


def numbers(view: EvaluationView, words: Words) -> list[Row]:
    """One row per metric: counts by status, mean with interval and bounds, worst 10 % now and before."""
    now = whole(view)
    before = {
        row["metric"]: row for row in view.previous_summaries.filter(pl.col("stratum") == "all").iter_rows(named=True)
    }
    return [summary_row(now[name], words) | {"previous": before.get(name, {}).get("cvar10"), "had": name in before}
            for name in metrics(view) if name in now]  # fmt: skip


def summary_row(row: Row, words: Words) -> Row:
    """A summary with its small range chart."""
    interval = row["mean_interval_lower"], row["mean_interval_upper"]
    bounds = row["mean_lower_bound"], row["mean_upper_bound"]
    label = words["range_label"].format(mean=number(row["mean"]), interval=span(*interval, 2))
    return row | {
        "counts": [row[name] for name in COUNTS],
        "range": charts.ranges(row["mean"], interval, bounds, label),
    }


def trust(view: EvaluationView, words: Words) -> list[Row]:
    """One row per metric: the judge against labels, with a plot where the counts are known."""
    rows = []
    for row in view.calibrations.filter(pl.col("stratum") == "all").iter_rows(named=True):
        cells = [
            charts.Cell(cell["human"], cell["judge"], cell["count"]) for cell in _details(row).get("confusion") or ()
        ]
        chart = calibration_chart(row, cells, words) if cells else None
        rows.append(row | {"cells": cells, "chart": chart, "corrected": corrected(view, row["metric"], words)})
    return rows


def corrected(view: EvaluationView, metric: str, words: Words) -> str | None:
    """What the labels say of a metric's true mean; null where they cannot say it."""
    found = view.true_quality(metric)
    if found is None or found["corrected"] is None:
        return None
    mean = found["corrected"]
    return words["corrected"].format(
        metric=metric, value=number(mean["value"]), limits=span(mean["lower"], mean["upper"]),
        raw=number(found["raw"]["value"]), estimator=ESTIMATORS[found["estimator"]],
    )  # fmt: skip


def _details(row: Row) -> dict[str, Any]:
    return json.loads(row["statistics"] or "{}")


def calibration_chart(row: Row, cells: list[charts.Cell], words: Words) -> str:
    """The plot of one calibration row."""
    label = words["calibration_label"].format(
        metric=row["metric"], kind=words.get(row["label_provenance"], row["label_provenance"]), n=row["pair_count"],
        rho=number(row["spearman_rho"], 2), limits=span(row["rho_lower"], row["rho_upper"], 2), bias=signed(row["bias"]),
    )  # fmt: skip
    kind = words.get(row["label_provenance"], row["label_provenance"])
    return charts.calibration(cells, label, f"{words['label_axis']} ({kind})", words["judge_axis"])


def trends(view: EvaluationView, words: Words) -> list[Row]:
    """One chart per metric that has a mean in at least two evaluations."""
    found = []
    for name in metrics(view):
        points = list(_points(view.trend.filter((pl.col("metric") == name) & pl.col("mean").is_not_null())))
        if len(points) > 1:
            label = words["trend_label"].format(metric=name, n=len(points), mean=number(points[-1].mean))
            found.append({"metric": name, "points": points, "chart": charts.trend(points, label)})
    return found


def _points(rows: pl.DataFrame) -> Iterator[charts.Point]:
    last: Row | None = None
    for row in rows.iter_rows(named=True):
        yield charts.Point(
            f"{row['started_at']:%Y-%m-%d}", row["mean"], row["mean_interval_lower"], row["mean_interval_upper"],
            last is not None and last["system_release"] != row["system_release"],
            last is not None and last["judge_model"] != row["judge_model"],
        )  # fmt: skip
        last = row


def distributions(view: EvaluationView, words: Words) -> list[Row]:
    """Per metric: the histogram of the whole set, and its strata as rows of numbers, each with its histogram."""
    return [_distribution(view, name, words) for name in metrics(view)]


def _distribution(view: EvaluationView, metric: str, words: Words) -> Row:
    scores = view.scores.filter(pl.col("metric") == metric)
    rows = view.summaries.filter(pl.col("metric") == metric).to_dicts()
    strata = sorted((row for row in rows if row["stratum"] != "all"), key=lambda row: row["stratum"])
    shown = [
        summary_row(row, words) | {"chart": histogram(scores.filter(pl.col("stratum") == row["stratum"]), row, words)}
        for row in strata[:SHOWN_STRATA]
    ]
    all_row = next((row for row in rows if row["stratum"] == "all"), None)
    chart = histogram(scores, all_row, words) if all_row else None
    return {"metric": metric, "chart": chart, "whole": all_row, "strata": shown, "rest": len(strata) - len(shown)}


def histogram(scores: pl.DataFrame, row: Row, words: Words) -> str | None:
    """The histogram of scored values, those at or below the row's 10 % quantile marked; null when there are none."""
    values = scores["value"].drop_nulls()
    if values.is_empty():
        return None
    bins = (values.clip(0, 1) * (charts.BINS - 1) + 0.5).floor().cast(pl.Int64)
    counts = [0] * charts.BINS
    for place, count in bins.value_counts().iter_rows():
        counts[place] = count
    edge = row["q10"]
    low = 0 if edge is None else int(edge * (charts.BINS - 1) + 0.5) + 1
    stratum = words["whole"] if row["stratum"] == "all" else row["stratum"]
    label = words["distribution_label"].format(
        metric=row["metric"], stratum=stratum, n=values.len(), low=int((values <= edge).sum()) if edge is not None else 0,
        cut=number(edge, 2),
    )  # fmt: skip
    return charts.histogram(counts, low, label)


def invalid(view: EvaluationView) -> tuple[list[Row], list[Row], int]:
    """Counts of questions without a grade by metric and outcome, the first of them, and how many more there are."""
    lost = view.verdicts.filter(~pl.col("outcome").is_in(["graded", "skipped"]))
    counts = lost.group_by("metric", "outcome").len().sort("metric", "len", descending=[False, True]).to_dicts()
    asked = lost.filter(pl.col("outcome") != "not_asked").sort("metric", "item_id", "template_id")
    shown = [shown_reply(row) for row in asked.head(SHOWN_INVALID).iter_rows(named=True)]
    return counts, shown, asked.height - len(shown)


def costs(view: EvaluationView) -> list[Row]:
    """Per metric: questions, ledger hits, calls, tokens and cost; a sum with an unknown part is unknown (null)."""

    def total(name: str) -> pl.Expr:
        return pl.when(pl.col(name).is_null() & (pl.col("attempt_count") > 0)).then(1).otherwise(0).sum().eq(0)

    grouped = view.verdicts.group_by("metric").agg(
        pl.len().alias("question_count"),
        pl.col("is_cached").sum().alias("cached_count"),
        pl.col("call_count").sum(),
        *(
            pl.when(total(name)).then(pl.col(name).sum()).alias(name)
            for name in ("input_tokens", "output_tokens", "cost_usd")
        ),
    )
    return grouped.sort("metric").to_dicts()


def changes(view: EvaluationView) -> tuple[dict[str, int], list[Row], int]:
    """Dataset changes of this version: counts by kind, the first of them, how many more."""
    counts = dict(view.changes.group_by("change").len().sort("change").iter_rows())
    shown = view.changes.sort("change", "item_id").head(SHOWN_CHANGES).to_dicts()
    return counts, shown, view.changes.height - len(shown)


def rotten(view: EvaluationView, message: str) -> tuple[list[Row] | None, list[Row]]:
    """What is rotten, with its message in the wanted language, and every metric with and without the rotten rows."""
    if view.findings is None:
        return None, []
    found = [
        {"severity": one["severity"], "message": one[message], "ids": list(one["item_ids"])} for one in view.findings
    ]
    frame = view.without_rotten
    rows = [] if frame is None else frame.filter(pl.col("scored_count") > pl.col("scored_count_without")).to_dicts()
    return found, rows


def since(view: EvaluationView, words: Words) -> list[Row]:
    """What differs from the earlier evaluation besides the scores: name, before, now."""
    old, new = view.previous, view.evaluation
    if old is None:
        return []
    named = (("system", "system"), ("system_release", "release"), ("judge", "judge"), ("judge_model", "judge_model"),
             ("dataset_tag", "dataset"), ("dataset_version", "dataset_version"), ("config_sha256", "configuration"))  # fmt: skip
    rows = [
        {"name": words[word], "before": old[column], "now": new[column]}
        for column, word in named
        if old[column] != new[column]
    ]
    keys = [json.loads(one["judge_keys"] or "{}") for one in (old, new)]
    moved = sorted(metric for metric in keys[0].keys() & keys[1].keys() if keys[0][metric] != keys[1][metric])
    if moved:
        first = moved[0]
        rows.append(
            {
                "name": words["judge_keys"].format(metrics=", ".join(moved)),
                "before": keys[0][first],
                "now": keys[1][first],
            }
        )
    libraries = [json.loads(one["versions"] or "{}") for one in (old, new)]
    rows += [
        {"name": library, "before": libraries[0].get(library), "now": libraries[1].get(library)}
        for library in sorted(libraries[0].keys() | libraries[1].keys())
        if libraries[0].get(library) != libraries[1].get(library)
    ]
    return rows


def paired(view: EvaluationView) -> list[Row]:
    """Per metric, over items whose golden text did not change: mean difference, how many fell and rose, largest drops."""
    if view.previous_scores.is_empty():
        return []
    old = view.previous_scores.select("metric", "item_id", "item_sha256", pl.col("value").alias("old"))
    both = view.scores.join(old, on=["metric", "item_id", "item_sha256"], how="inner").drop_nulls(["value", "old"])
    both = both.with_columns((pl.col("value") - pl.col("old")).alias("difference"))
    rows = []
    for name in metrics(view):
        mine = both.filter(pl.col("metric") == name)
        drops = mine.filter(pl.col("difference") < 0).sort("difference", "item_id").head(SHOWN_FLIPS)
        rows.append({
            "metric": name, "shared_count": mine.height, "difference": mine["difference"].mean(),
            "worse_count": int((mine["difference"] < 0).sum()), "better_count": int((mine["difference"] > 0).sum()),
            "drops": drops.select("item_id", "old", "value").to_dicts(),
        })  # fmt: skip
    return rows
