"""The summary that `run` prints: the verdict first, then the numbers with their bounds, then why to trust them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from eval_pipeline.report.view import EvaluationView
from eval_pipeline.vocabulary import Language

COLOURS = {"PASS": "green", "PASS_UNPROVEN": "green", "INCONCLUSIVE": "yellow", "FAIL": "red", "BLOCKED": "magenta"}
WORDS = {
    "en": {
        "responses": "Responses  {items} = {answered} answered + {failed} failed", "columns": ("metric", "scored", "fail", "inv", "none", "n/a", "left", "mean", "95% CI", "if missing", "worst10%", "invalid"),
        "trust": "Can the judge be trusted?", "labels": "(labels: {provenance})", "gate": "Gate ({policy})", "was": "was", "needed": "; about {n} labels needed",
        "newly": "Newly failed {n}: {ids}", "changed": "What changed: {text}", "nothing": "no earlier evaluation", "calls": "{calls} calls, {cached} from ledger, {cost}, {time}",
        "unknown": "cost unknown", "next": "Next: eval-pipeline show {item} | report | query \"select * from worst_items\"", "partial": "PARTIAL  {reason}",
        "none": "0 labels", "same": "unchanged", "baseline": "The judge is the embedded lexical baseline: a floor to beat, not a judge to rely on.",
        "not_human": "Only human labels certify a judge.",
    },
    "ko": {
        "responses": "응답  {items} = 답변 {answered} + 실패 {failed}", "columns": ("지표", "채점", "실패", "무효", "주장없음", "해당없음", "남음", "평균", "95% 구간", "누락 시", "하위10%", "무효율"),
        "trust": "심판을 믿을 수 있는가?", "labels": "(라벨: {provenance})", "gate": "게이트 ({policy})", "was": "이전", "needed": "; 라벨 약 {n}개 필요",
        "newly": "새로 실패 {n}건: {ids}", "changed": "달라진 것: {text}", "nothing": "이전 평가 없음", "calls": "호출 {calls}건, 원장에서 {cached}건, {cost}, {time}",
        "unknown": "비용 모름", "next": "다음: eval-pipeline show {item} | report | query \"select * from worst_items\"", "partial": "부분 결과  {reason}",
        "none": "라벨 0개", "same": "그대로", "baseline": "심판이 내장 어휘 기준선입니다. 넘어야 할 바닥이지 의지할 심판이 아닙니다.",
        "not_human": "사람의 라벨만 심판을 인증합니다.",
    },
}  # fmt: skip
PROVENANCE_KO = {"human": "사람", "constructed": "구성", "model": "모델", "mixed": "혼합", "none": "없음"}


def summary_text(view: EvaluationView, language: Language):  # noqa: ANN201 - a rich renderable
    """The whole summary as one rich renderable. Names and evidence are data: no markup in them is read."""
    from rich.console import Group
    from rich.text import Text

    words = WORDS[language.value]
    parts: list[Any] = [_headline(view), Text()]
    if view.evaluation["is_partial"]:
        parts += [Text(words["partial"].format(reason=_clean(view.evaluation["partial_reason"])), style="yellow"), Text()]
    parts += [Text(_responses(view, words)), Text(), _numbers(view, words), Text(), *_trust(view, words, language), Text()]
    parts += [*_gate(view, words, language), Text(_changed(view, words)), Text(), Text(_calls(view, words))]
    worst = view.summaries.filter(pl.col("stratum") == "all")["worst_item_ids"].to_list()
    item = next((ids[0] for ids in worst if ids), None)
    if item is not None:
        parts.append(Text(words["next"].format(item=_clean(item))))
    return Group(*parts)


def _clean(value: object) -> str:
    return "".join(c if c.isprintable() else "?" for c in str(value))


def _headline(view: EvaluationView):  # noqa: ANN202
    from rich.text import Text

    row = view.evaluation
    decision = view.gate.filter(pl.col("rule") == "decision")["verdict"].to_list()
    verdict = decision[0] if decision else "-"
    what = f"{row['dataset']}@{row['dataset_tag']} · {row['system']} {row['system_release']} · {row['judge']} ({row['judge_model']})"
    return Text.assemble((verdict, f"bold {COLOURS.get(verdict, '')}"), f"  {_clean(what)}    {_clean(row['evaluation_id'])}")


def _responses(view: EvaluationView, words: dict[str, Any]) -> str:
    failed = view.responses.filter(pl.col("error").is_not_null())
    kinds = failed.group_by("error").len().sort("len", descending=True).head(3).iter_rows()
    named = ", ".join(f"{_clean(error)[:60]} x{count}" for error, count in kinds)
    items, lost = view.responses.height, failed.height
    line = words["responses"].format(items=items, answered=items - lost, failed=lost)
    return f"{line} ({named})" if named else line


def _numbers(view: EvaluationView, words: dict[str, Any]):  # noqa: ANN202
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for index, name in enumerate(words["columns"]):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=True)
    before = {row["metric"]: row for row in view.previous_summaries.filter(pl.col("stratum") == "all").iter_rows(named=True)}
    for row in view.summaries.filter(pl.col("stratum") == "all").iter_rows(named=True):
        worst = number(row["cvar10"], 2)
        if (old := before.get(row["metric"])) and number(old["cvar10"], 2) != worst:
            worst += f" ({words['was']} {number(old['cvar10'], 2)})"
        counts = ("scored_count", "no_response_count", "invalid_count", "no_claims_count", "not_applicable_count", "not_asked_count")
        table.add_row(
            Text(_clean(row["metric"])), *(str(row[name]) for name in counts), number(row["mean"]),
            span(row["mean_interval_lower"], row["mean_interval_upper"], 2), span(row["mean_lower_bound"], row["mean_upper_bound"]),
            worst, "–" if row["invalid_share"] is None else f"{row['invalid_share']:.1%}",
        )  # fmt: skip
    return table


def _trust(view: EvaluationView, words: dict[str, Any], language: Language) -> Sequence[Any]:
    from rich.text import Text

    rows = view.calibrations.filter(pl.col("stratum") == "all").to_dicts()
    kinds = sorted({row["label_provenance"] for row in rows}) or ["none"]
    shown = ", ".join(PROVENANCE_KO.get(kind, str(kind)) if language == Language.KO else kind for kind in kinds)
    lines = [Text(f"{words['trust']}  {words['labels'].format(provenance=shown)}", style="bold")]
    for row in rows:
        word = "PROVISIONAL" if row["is_provisional"] else row["decision"].upper()
        if row["pair_count"] == 0:
            lines.append(Text(f"{_clean(row['metric']):<24}{word:<13}{words['none']}"))
            continue
        needed = words["needed"].format(n=row["labels_needed"]) if row["labels_needed"] and row["decision"] == "inconclusive" else ""
        limits = f"rho {number(row['spearman_rho'], 2)}, {span(row['rho_lower'], row['rho_upper'], 2)}"
        reason = f" ({row['reason']})" if row["reason"] else ""
        lines.append(Text(f"{_clean(row['metric']):<24}{word:<13}{limits}, n {row['pair_count']}, bias {signed(row['bias'])}{needed}{reason}"))
    if view.evaluation["judge_model"].startswith("overlap_judge"):
        lines.append(Text(words["baseline"], style="dim"))
    if kinds != ["human"]:
        lines.append(Text(words["not_human"], style="dim"))
    return lines


def _gate(view: EvaluationView, words: dict[str, Any], language: Language) -> Sequence[Any]:
    from rich.text import Text

    rows = [row for row in view.gate.to_dicts() if row["rule"] != "decision"]
    policy = view.gate["policy"][0] if view.gate.height else "-"
    lines = [Text(words["gate"].format(policy=policy), style="bold")]
    evidence = "evidence_ko" if language == Language.KO else "evidence"
    order = ["FAIL", "BLOCKED", "INCONCLUSIVE", "PASS_UNPROVEN", "NOT_EVALUATED", "PASS"]
    for row in sorted(rows, key=lambda one: order.index(one["verdict"])):
        verdict = "ok" if row["verdict"] == "PASS" else row["verdict"]
        name = "" if row["metric"] == "all" else _clean(row["metric"])
        lines.append(
            Text.assemble((f"{verdict:<14}", COLOURS.get(row["verdict"], "dim")), f"{name:<24}{row['rule']}: {_clean(row[evidence] or row['evidence'])}")
        )
    failed = list(dict.fromkeys(item for row in rows if row["rule"].startswith("regression") for item in row["item_ids"]))
    if failed:
        lines.append(Text(words["newly"].format(n=len(failed), ids=" ".join(_clean(item) for item in failed[:12]))))
    return lines


def _changed(view: EvaluationView, words: dict[str, Any]) -> str:
    if view.previous is None:
        return words["changed"].format(text=words["nothing"])
    names = {"system_release": "system", "judge_model": "judge", "dataset_tag": "dataset", "config_sha256": "configuration"}
    texts = [
        f"{name} {_clean(view.previous[column])[:12]} -> {_clean(view.evaluation[column])[:12]}"
        for column, name in names.items()
        if view.previous[column] != view.evaluation[column]
    ]
    return words["changed"].format(text="; ".join(texts) or words["same"])


def _calls(view: EvaluationView, words: dict[str, Any]) -> str:
    row = view.evaluation
    seconds = (row["finished_at"] - row["started_at"]).total_seconds()
    time = f"{int(seconds // 60)}m{seconds % 60:02.0f}s" if seconds >= 60 else f"{seconds:.1f}s"
    cost = words["unknown"] if row["cost_usd"] is None else f"${row['cost_usd']:.2f}"
    return words["calls"].format(calls=f"{row['call_count']:,}", cached=f"{row['cached_count']:,}", cost=cost, time=time)


def number(value: float | None, digits: int = 3) -> str:
    """A number without its leading zero; null as `–`."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def signed(value: float | None, digits: int = 2) -> str:
    """A number with its sign."""
    return "–" if value is None else ("+" if value >= 0 else "") + number(value, digits)


def span(lower: float | None, upper: float | None, digits: int = 3) -> str:
    """Two ends."""
    return f"{number(lower, digits)}-{number(upper, digits)}"
