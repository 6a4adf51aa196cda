"""Every table once: its columns, key, and what one row is.

Parquet schemas, DuckDB DDL with comments, Great Expectations column rules and the table page of the docs derive from
here. Only declarations and `frame` belong here; how rows come about is the business of the stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

TEXT = pl.String()
INT = pl.Int64()
REAL = pl.Float64()
FLAG = pl.Boolean()
TIME = pl.Datetime("us", "UTC")
TEXTS = pl.List(pl.String)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type, what it holds, and whether null is allowed (null always means unknown or undefined)."""

    name: str
    dtype: pl.DataType
    comment: str
    is_nullable: bool = True
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table. The first key column is also the folder of its Parquet parts."""

    name: str
    key: tuple[str, ...]
    row: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return {column.name: column.dtype for column in self.columns}

    def frame(self, rows: Iterable[Mapping[str, object]] = ()) -> pl.DataFrame:
        """Rows as a frame of exactly this table's columns; a missing cell is null, an unknown one is an error."""
        taken = list(rows)
        strangers = {name for row in taken for name in row} - self.schema.keys()
        if strangers:
            raise ValueError(f"{self.name} has no column(s) {sorted(strangers)}")
        return pl.DataFrame(taken, schema=self.schema, orient="row", strict=True)


def _c(name: str, dtype: pl.DataType, comment: str) -> Column:
    return Column(name, dtype, comment)


def _k(name: str, dtype: pl.DataType, comment: str) -> Column:
    return Column(name, dtype, comment, is_nullable=False)


EVALUATION = _k("evaluation_id", TEXT, "The evaluation: UTC start of the root run and the first 8 characters of its id")
ITEM = _k("item_id", TEXT, "The item of the golden dataset")
METRIC = _k("metric", TEXT, "Metric instance as named in evaluation.yaml; `claims` and `labels: ...` in verdicts")
STRATUM = _k("stratum", TEXT, "Stratum of the item")
DATASET = _k("dataset", TEXT, "Name of the golden dataset")
VERSION = _k("dataset_version", TEXT, "sha256 of the dataset version's canonical content")

GOLDEN_ITEMS = Table(
    "golden_items",
    ("dataset", "dataset_version", "item_id"),
    "an item in one dataset version",
    (
        DATASET,
        VERSION,
        ITEM,
        _k("user_input", TEXT, "The question"),
        _c("reference", TEXT, "The answer a good system gives; null when there is none"),
        _c("reference_contexts", TEXTS, "Passages that hold the reference"),
        STRATUM,
        _c("cluster_id", TEXT, "Items that share a source or are near-duplicates share it; null means its own cluster"),
        _k("language", TEXT, "ko or en"),
        _c("source", TEXT, "Where the item comes from"),
        _c("updated_at", TEXT, "ISO date of the last change to the item"),
        _c("metadata", TEXT, "Further fields of the import, as JSON"),
        _k("content_sha256", TEXT, "Hash of the item's canonical content"),
    ),
)
DATASET_VERSIONS = Table(
    "dataset_versions",
    ("dataset", "dataset_version"),
    "a version of a golden dataset",
    (
        DATASET,
        VERSION,
        _k("tag", TEXT, "Name of the version; never moves"),
        _k("message", TEXT, "Why it changed"),
        _c("author", TEXT, "Who made it"),
        _k("created_at", TIME, "When it was made"),
        _c("parent_version", TEXT, "The version before it; null for the first"),
        _k("item_count", INT, "Number of items"),
        _k("stratum_counts", TEXT, "Items by stratum, as JSON"),
    ),
)
DATASET_CHANGES = Table(
    "dataset_changes",
    ("dataset", "dataset_version", "item_id"),
    "an item that a version changed",
    (
        DATASET,
        VERSION,
        ITEM,
        _k("change", TEXT, "added, removed or changed"),
        _c("fields", TEXTS, "Names of the changed fields; null unless changed"),
    ),
)
RESPONSES = Table(
    "responses",
    ("evaluation_id", "item_id"),
    "what the system answered for an item, or its error",
    (
        EVALUATION,
        ITEM,
        _c("response", TEXT, "The answer; null when the system failed"),
        _c("retrieved_contexts", TEXTS, "Passages the system used, in rank order; null when it gave none"),
        _c("error", TEXT, "Why there is no response; null when there is one"),
        _c("latency_seconds", REAL, "Wall time of the answer; null when unknown"),
        _c("input_tokens", INT, "Prompt tokens the system reported"),
        _c("output_tokens", INT, "Completion tokens the system reported"),
        _k("is_reused", FLAG, "Taken from an earlier evaluation of the same release instead of asked anew"),
        _c("fetched_at", TIME, "When the system answered"),
    ),
)
CLAIMS = Table(
    "claims",
    ("evaluation_id", "item_id", "source", "claim_index"),
    "an atomic claim of a text",
    (
        EVALUATION,
        ITEM,
        _k("source", TEXT, "response or reference"),
        _k("claim_index", INT, "Position in the text, from 0"),
        _k("claim", TEXT, "The claim"),
    ),
)
VERDICTS = Table(
    "verdicts",
    ("evaluation_id", "metric", "item_id", "part_source", "part_index", "template_id", "sample_index"),
    "the outcome of one question put to a judge",
    (
        EVALUATION,
        METRIC,
        ITEM,
        _k("part_source", TEXT, "Which text the question is about: response, reference or context"),
        _k("part_index", INT, "Which claim or context, from 0"),
        _k("template_id", TEXT, "Prompt template; `similarity` for embeddings"),
        _k("sample_index", INT, "Which of several independent draws"),
        _k("language", TEXT, "Language of the prompt"),
        _k("expects", TEXT, "Kind of reply asked for: grade, claims, generated_question or similarity"),
        _k("outcome", TEXT, "graded, or why there is no grade"),
        _c("grade", INT, "Raw grade; null unless graded"),
        _c("value", REAL, "Grade on [0, 1], or cosine in [-1, 1] for similarity; null when there is none"),
        _k("method", TEXT, "How the value was read: single, log_probability, n_sample, embedding or entailment"),
        _c("reason", TEXT, "The judge's own words for the grade"),
        _c("texts", TEXTS, "Generated claims or question"),
        _c("is_noncommittal", FLAG, "The judge found the answer evasive; null unless asked"),
        _c("reply", TEXT, "Raw reply of the last attempt"),
        _c("detail", TEXT, "The provider's own words on a failure"),
        _k("attempt_count", INT, "Attempts the question took; 0 when not asked"),
        _k("attempt_outcomes", TEXTS, "Outcome of each attempt in order"),
        _k("transport_retry_count", INT, "Requests that failed before an answer came"),
        _c("judge", TEXT, "Judge as named in evaluation.yaml"),
        _c("judge_model", TEXT, "Model as pinned"),
        _c("returned_model", TEXT, "Model as the endpoint named it"),
        _c("system_fingerprint", TEXT, "The endpoint's fingerprint"),
        _c("prompt_sha256", TEXT, "Hash of the prompt template's text"),
        _c("judge_key", TEXT, "Hash of model, revision, parameters, templates and metric version"),
        _c("ledger_key", TEXT, "Content address of the last attempt in the ledger"),
        _k("is_cached", FLAG, "No call was made for it in the evaluation's last try"),
        _k("call_count", INT, "Requests sent for it in the evaluation's last try, repeated ones included"),
        _c("input_tokens", INT, "Prompt tokens over all attempts, cached ones included; null when unknown"),
        _c("cached_input_tokens", INT, "Prompt tokens billed at the cached price"),
        _c("output_tokens", INT, "Completion tokens over all attempts"),
        _c(
            "cost_usd",
            REAL,
            "Cost of the calls made for it in the evaluation's last try; null when the price is unknown",
        ),
        _c("latency_seconds", REAL, "Wall time of the answering request; null from the ledger"),
    ),
)
SCORES = Table(
    "scores",
    ("evaluation_id", "metric", "item_id"),
    "one metric's value for one response",
    (
        EVALUATION,
        METRIC,
        ITEM,
        STRATUM,
        _c("cluster_id", TEXT, "Cluster of the item; null means its own"),
        _k(
            "status",
            TEXT,
            "scored_both, scored_single, scored, no_response, invalid, no_claims, not_applicable or not_asked",
        ),
        _c("value", REAL, "In [0, 1]; null means unknown or undefined, never zero"),
        _c("lower", REAL, "The value if every missing grade were the worst"),
        _c("upper", REAL, "The value if every missing grade were the best"),
        _c("reason", TEXT, "Why, in a word, where the status alone does not say"),
        _c("grade_1", INT, "Raw grade of template 1 (dual metrics)"),
        _c("grade_2", INT, "Raw grade of template 2 (dual metrics)"),
        _c("disagreement", REAL, "Absolute difference of the two normalised grades"),
        _c("lost_side", INT, "Which of the two templates gave no grade; null unless exactly one"),
        _c("part_count", INT, "Claims or contexts in all"),
        _c("valid_part_count", INT, "Claims or contexts with a valid grade"),
        _k("components", TEXT, "Further numbers such as precision and recall, as JSON"),
        _k("outcomes", TEXTS, "Outcomes other than graded among its questions"),
        _k("content_sha256", TEXT, "Hash of exactly the fields the metric needs; what labels and baselines attach to"),
        _k("item_sha256", TEXT, "Hash of the golden item; what regressions are paired on"),
        _c("judge_key", TEXT, "Judge key of this metric; null for metrics without a judge"),
    ),
)
SUMMARIES = Table(
    "summaries",
    ("evaluation_id", "metric", "stratum"),
    "one metric over one stratum, or over `all`",
    (
        EVALUATION,
        METRIC,
        STRATUM,
        _k("item_count", INT, "Items; equals the sum of the six counts that follow"),
        _k("scored_count", INT, "Items with a value"),
        _k("no_response_count", INT, "Items the system failed to answer"),
        _k("invalid_count", INT, "Items whose questions got no usable reply"),
        _k("no_claims_count", INT, "Items whose response holds no claims"),
        _k("not_applicable_count", INT, "Items that lack a field the metric needs"),
        _k("not_asked_count", INT, "Items left unasked by a budget, quota or interruption"),
        _k("single_count", INT, "Scored items resting on one of two grades"),
        _c(
            "mean",
            REAL,
            "Mean value; failed responses counted as the metric's policy says; null when nothing is scored",
        ),
        _c("mean_lower_bound", REAL, "Mean if every missing grade were the worst (Manski)"),
        _c("mean_upper_bound", REAL, "Mean if every missing grade were the best (Manski)"),
        _c("mean_interval_lower", REAL, "Lower end of the 95 % population interval of the mean"),
        _c("mean_interval_upper", REAL, "Upper end of the 95 % population interval of the mean"),
        _k("mean_status", TEXT, "ok, low_precision, fallback or undefined"),
        _c("mean_reason", TEXT, "Why the mean is undefined"),
        _c(
            "weighted_mean",
            REAL,
            "Mean over strata by their declared weights; null when none are declared or one is missing",
        ),
        _c("q10", REAL, "10 % quantile"),
        _c("cvar10", REAL, "Mean of the worst 10 %"),
        _c("cvar10_lower", REAL, "One-sided 95 % lower limit of it; null when the set is too small"),
        _c("cvar10_missing_zero", REAL, "Mean of the worst 10 % with invalid items counted 0"),
        _c("cvar10_status", TEXT, "ok, low_precision or undefined"),
        _c("catastrophic_share", REAL, "Share of values at or below the metric's catastrophic level"),
        _c("catastrophic_share_upper", REAL, "One-sided 95 % upper limit of it"),
        _c("invalid_share", REAL, "Invalid items over items asked"),
        _c("invalid_share_upper", REAL, "Upper end of its 95 % Wilson interval"),
        _k("worst_item_ids", TEXTS, "The bottom 10 % by id, invalid ones first"),
    ),
)
HUMAN_LABELS = Table(
    "human_labels",
    ("dataset", "item_id", "content_sha256", "metric", "annotator"),
    "one person's (or construction's) label",
    (
        DATASET,
        ITEM,
        _k("content_sha256", TEXT, "Hash of exactly the fields the metric needs"),
        METRIC,
        _k("annotator", TEXT, "Who labelled"),
        _k("score", REAL, "The label on the metric's label scale"),
        _k("value", REAL, "The label on [0, 1]"),
        _k("provenance", TEXT, "human, constructed or model; only human certifies"),
        _c("labelled_at", TEXT, "ISO time of labelling"),
        _c("inclusion_probability", REAL, "Probability with which the item entered the sample; null when unknown"),
        _k("texts", TEXT, "The judged fields, as JSON"),
        _c("stratum", TEXT, "Stratum of the item"),
        _c("cluster_id", TEXT, "Cluster of the item"),
        _c("note", TEXT, "The annotator's remark"),
    ),
)
CALIBRATIONS = Table(
    "calibrations",
    ("judge_key", "metric", "stratum", "labels_sha256"),
    "a judge against people on one metric",
    (
        _k("judge_key", TEXT, "The judge, per metric"),
        METRIC,
        STRATUM,
        _k("labels_sha256", TEXT, "Hash of the label set"),
        _c("evaluation_id", TEXT, "The evaluation in whose run it was made"),
        _c("judge", TEXT, "Judge as named in evaluation.yaml"),
        _c("judge_model", TEXT, "Model as pinned"),
        _k("label_provenance", TEXT, "human, constructed, model or mixed"),
        _k("pair_count", INT, "Complete pairs of judge score and label"),
        _k("dropped_count", INT, "Labels without a judge score"),
        _c("spearman_rho", REAL, "Spearman's rank correlation; null when undefined"),
        _c("rho_lower", REAL, "One-sided 95 % lower limit (jackknife on Fisher z)"),
        _c("rho_upper", REAL, "One-sided 95 % upper limit"),
        _k("rho_status", TEXT, "ok, low_precision, fallback or undefined"),
        _c("kendall_tau_b", REAL, "Kendall's tau-b"),
        _c("quadratic_weighted_kappa", REAL, "Quadratic weighted kappa"),
        _c("bias", REAL, "Mean of judge minus label"),
        _c("mean_absolute_error", REAL, "Mean absolute difference"),
        _c("rho_ceiling_by_marginals", REAL, "Largest rho the two marginals allow"),
        _c("human_agreement", REAL, "Rank correlation between two annotators; null when no item has two"),
        _k("bar", REAL, "The bar the lower limit must exceed"),
        _k("decision", TEXT, "pass, fail, inconclusive or untested"),
        _k("is_provisional", FLAG, "Inconclusive, with the point value at or above the bar"),
        _c("labels_needed", INT, "Labels needed in all if the point value is right; null when not inconclusive"),
        _c("reason", TEXT, "Why untested or undefined"),
        _k("attempt", INT, "How often this label set has been used, from 1; the level is alpha over it"),
        _k("statistics", TEXT, "Every statistic in full, as JSON"),
        _k("calibrated_at", TIME, "When"),
    ),
)
LABEL_SCORES = Table(
    "label_scores",
    ("evaluation_id", "metric", "content_sha256"),
    "the judge's value of one labelled text, whatever the evaluation at hand answered",
    (
        EVALUATION,
        METRIC,
        _k("content_sha256", TEXT, "Hash of the labelled texts"),
        _c("judge_key", TEXT, "The judge, per metric"),
        _c("value", REAL, "Value in [0, 1]; null when the judge gave no usable grade"),
    ),
)
GATE_DECISIONS = Table(
    "gate_decisions",
    ("evaluation_id", "policy", "rule", "metric"),
    "the verdict of one rule",
    (
        EVALUATION,
        _k("policy", TEXT, "pr, nightly or release"),
        _k("rule", TEXT, "Name of the rule; `decision` is the whole"),
        _k("metric", TEXT, "Metric, or `all`"),
        _k("verdict", TEXT, "PASS, PASS_UNPROVEN, INCONCLUSIVE, FAIL, BLOCKED or NOT_EVALUATED"),
        _k("evidence", TEXT, "Why, in words and numbers (English)"),
        _c("evidence_ko", TEXT, "The same in Korean"),
        _k("item_ids", TEXTS, "The items that show it"),
        _k("numbers", TEXT, "The numbers behind it, as JSON"),
        _k("decided_at", TIME, "When"),
    ),
)
EVALUATIONS = Table(
    "evaluations",
    ("evaluation_id",),
    "one complete or partial evaluation; written last",
    (
        EVALUATION,
        DATASET,
        VERSION,
        _c("dataset_tag", TEXT, "Tag of the version"),
        _k("system", TEXT, "System as named in evaluation.yaml"),
        _k("system_release", TEXT, "Release of the system"),
        _k("configuration", TEXT, "Partition key: system release, judge and hash of all that can move a score"),
        _k("judge", TEXT, "Judge as named in evaluation.yaml"),
        _k("judge_model", TEXT, "Model as pinned"),
        _k("judge_keys", TEXT, "Judge key by metric, as JSON"),
        _k("metrics", TEXTS, "Metrics evaluated"),
        _k("config_sha256", TEXT, "Hash of the configuration that can move a score"),
        _k("versions", TEXT, "Versions of this package and its libraries, as JSON"),
        _k("started_at", TIME, "When the root run began"),
        _k("finished_at", TIME, "When this row was written"),
        _k("item_count", INT, "Items evaluated"),
        _k("call_count", INT, "Calls made"),
        _k("cached_count", INT, "Questions answered by the ledger"),
        _c("cost_usd", REAL, "Cost; null when a price is unknown"),
        _k("is_partial", FLAG, "A limit, a chosen metric or a stop left something out"),
        _c("partial_reason", TEXT, "What"),
        _k("is_replay", FLAG, "Every response was reused and every reply came from the ledger: no new observation"),
        _k("is_unpinned", FLAG, "The judge is an alias that moves"),
        _k("warnings", TEXTS, "Remarks on what the numbers rest on: judge admission, bias towards an order (English)"),
        _c("warnings_ko", TEXTS, "The same in Korean"),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        DATASET_VERSIONS, DATASET_CHANGES, GOLDEN_ITEMS, RESPONSES, CLAIMS, VERDICTS, SCORES, SUMMARIES, HUMAN_LABELS,
        CALIBRATIONS, LABEL_SCORES, GATE_DECISIONS, EVALUATIONS,
    )
}  # fmt: skip
