"""A night with five failed responses, an invalid reply and constructed labels, as tables; and the same with hostile text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import polars as pl

from eval_pipeline.tables import (
    CALIBRATIONS,
    CLAIMS,
    DATASET_CHANGES,
    EVALUATIONS,
    GATE_DECISIONS,
    GOLDEN_ITEMS,
    RESPONSES,
    SCORES,
    SUMMARIES,
    TABLES,
    VERDICTS,
    Table,
)

HOSTILE = (
    '<script>document.title="owned"</script></style></title><img src=x onerror="document.title=\'owned\'">'
    '"\' onmouseover=alert(1) <a href="javascript:alert(1)">x</a> ]]> --> {{ 7*7 }} [link](javascript:alert(1)) @maintainer #1 '
    "| `code` $x$ https://evil.example www.evil.example ::error::forged [bold red]markup[/] \x1b[31mred\x1b[0m"
    " \u202eright\u2066to\u200bleft\ufeff\u200d %0A=cmd \x00\x07"
)
METRICS = ("answer_accuracy", "faithfulness")
START = datetime(2026, 6, 1, 2, 0, tzinfo=UTC)
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)


class Scenario:
    """Tables by name, read as the warehouse is read."""

    def __init__(self, frames: dict[str, pl.DataFrame], evaluation_id: str) -> None:
        self.frames, self.evaluation_id = frames, evaluation_id

    def read(self, table: Table, value: str | None = None) -> pl.DataFrame:
        frame = self.frames[table.name]
        return frame if value is None else frame.filter(pl.col(table.key[0]) == value)


def night(
    items: int = 30,
    metrics: tuple[str, ...] = METRICS,
    *,
    earlier: int = 3,
    word: str = "",
    verdict: str = "FAIL",
    is_partial: bool = False,
) -> Scenario:
    """The last of `earlier` + 1 nights. `word` is put into every text of strangers."""
    names = [f"q{n:05d}{word if n % 7 == 0 else ''}" for n in range(items)]
    strata = [f"{('faq', 'numbers', 'tables')[n % 3]}{word}" for n in range(items)]
    nights = [f"2026060{k + 1}T020000-0000000{k}" for k in range(earlier + 1)]
    last = nights[-1]
    frames = {table.name: [] for table in TABLES.values()}
    frames["evaluations"] = [
        _evaluation(name, k, items, metrics, word, is_partial and name == last) for k, name in enumerate(nights)
    ]
    frames["golden_items"] = [_golden(name, stratum, word) for name, stratum in zip(names, strata, strict=True)]
    frames["responses"] = [_response(last, name, n, word) for n, name in enumerate(names)]
    frames["claims"] = [_claim(last, name, word) for n, name in enumerate(names) if n % 60 != 5]
    for k, evaluation in enumerate(nights):
        if k >= earlier - 1:
            frames["scores"] += _scores(evaluation, names, strata, metrics, shift=earlier - k)
    for evaluation in nights:
        own = [row for row in frames["scores"] if row["evaluation_id"] == evaluation]
        frames["summaries"] += _summaries(
            evaluation, own or _scores(evaluation, names[:30], strata, metrics, shift=1), metrics
        )
    frames["verdicts"] = [
        row for n, name in enumerate(names) for metric in metrics for row in _verdicts(last, name, n, metric, word)
    ]
    frames["calibrations"] = [_calibration(last, metric, word) for metric in metrics]
    frames["gate_decisions"] = _gate(last, names, verdict, word)
    frames["dataset_changes"] = [
        {
            "dataset": "helpdesk",
            "dataset_version": "v" * 64,
            "item_id": names[0],
            "change": "changed",
            "fields": [f"reference{word}"],
        }
    ]
    tables = {table.name: table for table in (GOLDEN_ITEMS, RESPONSES, CLAIMS, VERDICTS, SCORES, SUMMARIES, CALIBRATIONS,
                                              GATE_DECISIONS, EVALUATIONS, DATASET_CHANGES)}  # fmt: skip
    return Scenario({name: table.frame(frames[name]) for name, table in tables.items()}, last)


def _evaluation(name, k, items, metrics, word, is_partial):
    started = START + timedelta(days=k)
    return {
        "evaluation_id": name, "dataset": "helpdesk", "dataset_version": "v" * 64, "dataset_tag": "v4", "system": f"rag{word}",
        "system_release": f"9f31c2{k}", "configuration": f"rag@9f31c2{k}@mini@aa", "judge": f"mini{word}",
        "judge_model": f"mini-2026-01-01{word}", "judge_keys": json.dumps(dict.fromkeys(metrics, "k")),
        "metrics": list(metrics), "config_sha256": "c" * 64, "versions": '{"eval-pipeline": "0.1.0"}', "started_at": started,
        "finished_at": started + timedelta(seconds=401), "item_count": items, "call_count": 4212, "cached_count": 1061,
        "cost_usd": 1.37, "is_partial": is_partial, "partial_reason": f"limit{word}" if is_partial else None, "is_replay": False,
        "is_unpinned": False, "warnings": [f"a remark{word}"], "warnings_ko": [f"한마디{word}"],
    }  # fmt: skip


def _golden(name, stratum, word):
    return {
        "dataset": "helpdesk", "dataset_version": "v" * 64, "item_id": name, "user_input": f"비밀번호를 어떻게 바꾸나요? {word}",
        "reference": f"설정에서 바꿉니다. {word}", "reference_contexts": [f"도움말 {word}"], "stratum": stratum, "language": "ko",
        "content_sha256": f"sha-{name}", "source": word, "metadata": json.dumps({"note": word}),
    }  # fmt: skip


def _response(evaluation, name, n, word):
    failed = n % 60 == 5
    return {
        "evaluation_id": evaluation, "item_id": name, "response": None if failed else f"설정 화면에서 바꿀 수 있습니다. {word}",
        "retrieved_contexts": [f"설정 안내 {word}", "두 번째 문맥"], "error": f"HTTP 504 {word}" if failed else None,
        "latency_seconds": 1.2, "is_reused": False,
    }  # fmt: skip


def _claim(evaluation, name, word):
    return {
        "evaluation_id": evaluation,
        "item_id": name,
        "source": "response",
        "claim_index": 0,
        "claim": f"바꿀 수 있다 {word}",
    }


def _scores(evaluation, names, strata, metrics, shift):
    rows = []
    for m, metric in enumerate(metrics):
        for n, name in enumerate(names):
            failed, invalid = n % 60 == 5, n % 60 == 11
            value = None if failed or invalid else LEVELS[min(4, (n * 7 + m + shift) % 9)]
            status = "no_response" if failed else "invalid" if invalid else "scored_both"
            rows.append({
                "evaluation_id": evaluation, "metric": metric, "item_id": name, "stratum": strata[n], "status": status, "value": value,
                "lower": value or 0.0, "upper": 1.0 if value is None else value, "grade_1": None if value is None else int(value * 4),
                "grade_2": None if value is None else int(value * 4), "disagreement": None if value is None else 0.0,
                "components": "{}", "outcomes": [], "content_sha256": f"c-{name}", "item_sha256": f"sha-{name}", "judge_key": "k",
            })  # fmt: skip
    return rows


def _summaries(evaluation, scores, metrics):
    rows = []
    for metric in metrics:
        mine = [row for row in scores if row["metric"] == metric]
        for stratum in ("all", *sorted({row["stratum"] for row in mine})):
            part = [row for row in mine if stratum in ("all", row["stratum"])]
            values = sorted(row["value"] for row in part if row["value"] is not None)
            invalid = [row["item_id"] for row in part if row["status"] == "invalid"]
            failed = sum(row["status"] == "no_response" for row in part)
            tenth = max(1, len(values) // 10)
            ranked = sorted(
                (row for row in part if row["value"] is not None), key=lambda row: (row["value"], row["item_id"])
            )
            mean = sum(values) / (len(values) + failed)
            rows.append({
                "evaluation_id": evaluation, "metric": metric, "stratum": stratum, "item_count": len(part), "scored_count": len(values),
                "no_response_count": failed, "invalid_count": len(invalid), "no_claims_count": 0, "not_applicable_count": 0,
                "not_asked_count": 0, "single_count": 0, "mean": mean, "mean_lower_bound": mean - 0.01, "mean_upper_bound": mean + 0.01,
                "mean_interval_lower": mean - 0.04, "mean_interval_upper": mean + 0.04, "mean_status": "ok", "q10": values[tenth - 1],
                "cvar10": sum(values[:tenth]) / tenth, "cvar10_status": "ok", "invalid_share": len(invalid) / len(part),
                "invalid_share_upper": 0.1, "worst_item_ids": [*invalid, *(row["item_id"] for row in ranked)][: max(50, tenth)],
            })  # fmt: skip
    return rows


def _verdicts(evaluation, name, n, metric, word):
    invalid = n % 60 == 11
    for template in (1, 2):
        yield {
            "evaluation_id": evaluation, "metric": metric, "item_id": name, "part_source": "response", "part_index": 0,
            "template_id": f"{metric}.{template}", "sample_index": 0, "language": "ko", "expects": "grade",
            "outcome": "unparseable" if invalid else "graded", "grade": None if invalid else 2, "value": None if invalid else 0.5,
            "method": "single", "reason": f"이유 {word}", "reply": f'{{"grade": 2}} {word}', "detail": word or None, "attempt_count": 1,
            "attempt_outcomes": ["graded"], "transport_retry_count": 0, "is_cached": False, "call_count": 1, "input_tokens": 400, "output_tokens": 5,
            "cost_usd": 0.0001,
        }  # fmt: skip


def _calibration(evaluation, metric, word):
    cells = [
        {"human": h, "judge": j, "count": c}
        for h, j, c in ((0, 0, 12), (0, 0.5, 3), (0.5, 0.5, 9), (1, 0.5, 4), (1, 1, 32))
    ]
    return {
        "judge_key": "k", "metric": metric, "stratum": "all", "labels_sha256": "l", "evaluation_id": evaluation, "judge": f"mini{word}",
        "judge_model": "mini-2026-01-01", "label_provenance": "constructed", "pair_count": 60, "dropped_count": 2, "spearman_rho": 0.84,
        "rho_lower": 0.73, "rho_upper": 0.91, "rho_status": "ok", "bias": 0.03, "bar": 0.7, "decision": "untested",
        "is_provisional": False, "reason": "constructed_labels", "attempt": 1, "statistics": json.dumps({"confusion": cells}),
        "calibrated_at": START,
    }  # fmt: skip


def _gate(evaluation, names, verdict, word):
    rules = [
        ("decision", "all", verdict, "Answers got worse: answer_accuracy -.041; 5 failed", []),
        ("responses", "all", "PASS", f"5 failed of 300: 1.7%{word}", []),
        ("regression (window)", "answer_accuracy", verdict, f"regression -.041, p .002; MDE .038 {word}", names[:14]),
        ("floor", "faithfulness", "PASS_UNPROVEN", "lower bound .83 >= .80", []),
        ("regression (pin)", "faithfulness", "NOT_EVALUATED", "no pinned baseline", []),
    ]
    return [
        {
            "evaluation_id": evaluation, "policy": "nightly", "rule": rule, "metric": metric, "verdict": found, "evidence": text,
            "evidence_ko": f"근거: {text}", "item_ids": ids, "decided_at": START,
            "numbers": json.dumps({"newly_failed_count": 14, "improved_count": 3}) if ids else "{}",
        }
        for rule, metric, found, text, ids in rules
    ]  # fmt: skip
