"""The summary that `run` prints: the verdict first, then the numbers with their bounds, then why to trust them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from eval_pipeline.report.figures import duration, money, number, signed, span
from eval_pipeline.report.inert import line as _clean
from eval_pipeline.report.sections import ORDER, corrected
from eval_pipeline.report.view import EvaluationView
from eval_pipeline.report.words import rule_name
from eval_pipeline.report.words import words as report_words
from eval_pipeline.vocabulary import PROVENANCE_KO, Language

__all__ = ["COLOURS", "number", "signed", "span", "summary_text"]

COLOURS = {"PASS": "green", "PASS_UNPROVEN": "green", "INCONCLUSIVE": "yellow", "FAIL": "red", "BLOCKED": "magenta"}
WORDS = {
    "en": {
        "responses": "Responses  {items} = {answered} answered + {failed} failed", "columns": ("metric", "scored", "fail", "inv", "none", "n/a", "left", "mean", "95% CI", "if missing", "worst10%", "invalid"),
        "trust": "Can the judge be trusted?", "labels": "(labels: {provenance})", "gate": "Gate ({policy})", "was": "was", "lower": "lower", "improved": ", improved {n}", "in": "{n} of {all} in {stratum}", "needed": "; about {n} labels needed",
        "newly": "Newly failed {n}{improved}: {where}{ids}", "changed": "What changed: {text}", "nothing": "no earlier evaluation", "calls": "{calls} calls, {cached} from ledger, {cost}, {time}",
        "unknown": "cost unknown", "next": "Next: eval-pipeline show {item} | report | query \"select * from worst_items\"", "partial": "PARTIAL  {reason}",
        "none": "0 labels", "same": "unchanged", "edited": "dataset edited under its tag {tag}", "other_responses": "system: same release {release}, {n} items answered otherwise", "system": "system", "judge": "judge", "dataset": "dataset", "configuration": "configuration", "baseline": "The judge is the embedded lexical baseline: a floor to beat, not a judge to rely on.",
        "not_human": "Only human labels certify a judge.",
    },
    "ko": {
        "responses": "응답  {items} = 답변 {answered} + 실패 {failed}", "columns": ("지표", "채점", "실패", "무효", "없음", "비해당", "남음", "평균", "95% 구간", "누락 시", "하위10%", "무효율"),
        "trust": "심판을 믿을 수 있는가?", "labels": "(라벨: {provenance})", "gate": "게이트 ({policy})", "was": "이전", "lower": "하한", "improved": ", 개선 {n}건", "in": "{all}건 중 {n}건이 {stratum}", "needed": "; 라벨 약 {n}개 필요",
        "newly": "새로 실패 {n}건{improved}: {where}{ids}", "changed": "달라진 것: {text}", "nothing": "이전 평가 없음", "calls": "호출 {calls}건, 원장에서 {cached}건, {cost}, {time}",
        "unknown": "비용 모름", "next": "다음: eval-pipeline show {item} | report | query \"select * from worst_items\"", "partial": "부분 결과  {reason}",
        "none": "라벨 0개", "same": "그대로", "edited": "데이터셋이 태그 {tag} 그대로 수정됨", "other_responses": "시스템: 릴리스 {release} 그대로, 응답 {n}건이 달라짐", "system": "시스템", "judge": "심판", "dataset": "데이터셋", "configuration": "설정", "baseline": "심판이 내장 어휘 기준선입니다. 넘어야 할 바닥이지 의지할 심판이 아닙니다.",
        "not_human": "사람의 라벨만 심판을 인증합니다.",
    },
}  # fmt: skip


def summary_text(view: EvaluationView, language: Language):  # noqa: ANN201 - a rich renderable
    """The whole summary as one rich renderable. Names and evidence are data: no markup in them is read."""
    from rich.console import Group
    from rich.text import Text

    words = WORDS[Language(language).value]
    parts: list[Any] = [_headline(view), *_reason(view, language), Text()]
    if view.evaluation["is_partial"]:
        parts += [
            Text(words["partial"].format(reason=_clean(view.evaluation["partial_reason"], 400)), style="yellow"),
            Text(),
        ]
    for remark in view.remarks(language):
        parts.append(Text(f"! {_clean(remark, 400)}", style="yellow"))
    parts += [
        Text(_responses(view, words)),
        Text(),
        _numbers(view, words),
        Text(),
        *_trust(view, words, language),
        Text(),
    ]
    parts += [*_gate(view, words, language), Text(_changed(view, words)), Text(), Text(_calls(view, words))]
    worst = view.summaries.filter(pl.col("stratum") == "all")["worst_item_ids"].to_list()
    item = next((ids[0] for ids in worst if ids), None)
    if item is not None:
        parts.append(Text(words["next"].format(item=_clean(item, 80))))
    return Group(*parts)


def _headline(view: EvaluationView):  # noqa: ANN202
    from rich.text import Text

    row = view.evaluation
    decision = view.gate.filter(pl.col("rule") == "decision")["verdict"].to_list()
    verdict = decision[0] if decision else "-"
    names = {
        name: _clean(row[name], 60)
        for name in ("dataset", "dataset_tag", "system", "system_release", "judge", "judge_model")
    }
    what = "{dataset}@{dataset_tag} · {system} {system_release} · {judge} ({judge_model})".format_map(names)
    return Text.assemble((verdict, f"bold {COLOURS.get(verdict, '')}"), f"  {what}    {_clean(row['evaluation_id'])}")


def _reason(view: EvaluationView, language: Language) -> Sequence[Any]:
    """Why, in the decision's own words, when it is not a plain pass."""
    from rich.text import Text

    evidence = "evidence_ko" if language == Language.KO else "evidence"
    rows = view.gate.filter(
        (pl.col("rule") == "decision") & ~pl.col("verdict").is_in(["PASS", "PASS_UNPROVEN"])
    ).to_dicts()
    first = (rows[0][evidence] or rows[0]["evidence"]).split("; ")[0] if rows else ""
    return [Text(_clean(first, 400))] if first else []


def _responses(view: EvaluationView, words: dict[str, Any]) -> str:
    failed = view.responses.filter(pl.col("error").is_not_null())
    kinds = failed.group_by("error").len().sort("len", descending=True).head(3).iter_rows()
    named = ", ".join(f"{_clean(error)[:60]} x{count}" for error, count in kinds)
    items, lost = view.responses.height, failed.height
    line = words["responses"].format(items=items, answered=items - lost, failed=lost)
    line += f" ({named})" if named else ""
    before = view.previous_summaries.filter(pl.col("stratum") == "all")["no_response_count"].max()
    more = (
        lost - int(before) if isinstance(before, int) else 0
    )  # the largest of the metrics: each counts the same failures
    return f"{line}  ! +{more}" if more > 0 else line


def _numbers(view: EvaluationView, words: dict[str, Any]):  # noqa: ANN202
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for index, name in enumerate(words["columns"]):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=True)
    before = {
        row["metric"]: row for row in view.previous_summaries.filter(pl.col("stratum") == "all").iter_rows(named=True)
    }
    for row in view.summaries.filter(pl.col("stratum") == "all").iter_rows(named=True):
        worst = number(row["cvar10"], 2)
        if (old := before.get(row["metric"])) and number(old["cvar10"], 2) != worst:
            worst += f" ({words['was']} {number(old['cvar10'], 2)})"
        counts = (
            "scored_count",
            "no_response_count",
            "invalid_count",
            "no_claims_count",
            "not_applicable_count",
            "not_asked_count",
        )
        table.add_row(
            Text(_clean(row["metric"], 60)), *(str(row[name]) for name in counts), number(row["mean"]),
            span(row["mean_interval_lower"], row["mean_interval_upper"], 2), span(row["mean_lower_bound"], row["mean_upper_bound"]),
            worst, "–" if row["invalid_share"] is None else f"{row['invalid_share']:.1%}",
        )  # fmt: skip
    return table


def _trust(view: EvaluationView, words: dict[str, Any], language: Language) -> Sequence[Any]:
    from rich.text import Text

    names = report_words(language)
    rows = view.calibrations.filter(pl.col("stratum") == "all").to_dicts()
    kinds = sorted({row["label_provenance"] for row in rows}) or ["none"]
    shown = ", ".join(PROVENANCE_KO.get(kind, str(kind)) if language == Language.KO else kind for kind in kinds)
    lines = [Text(f"{words['trust']}  {words['labels'].format(provenance=shown)}", style="bold")]
    for row in rows:
        word = "PROVISIONAL" if row["is_provisional"] else row["decision"].upper()
        if row["pair_count"] == 0:
            lines.append(Text(f"{_clean(row['metric']):<24}{word:<13}{words['none']}"))
            continue
        needed = (
            words["needed"].format(n=row["labels_needed"])
            if row["labels_needed"] and row["decision"] == "inconclusive"
            else ""
        )
        limits = f"rho {number(row['spearman_rho'], 2)}, {words['lower']} {number(row['rho_lower'], 2)}"
        reason = f" ({names.get('reason ' + row['reason'], _clean(row['reason']))})" if row["reason"] else ""
        lines.append(
            Text(
                f"{_clean(row['metric']):<24}{word:<13}{limits}, n {row['pair_count']}, bias {signed(row['bias'])}{needed}{reason}"
            )
        )
    lines += [Text(_clean(said, 200)) for row in rows if (said := corrected(view, row["metric"], names))]
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
    names = report_words(language)
    for row in sorted(rows, key=lambda one: ORDER.index(one["verdict"]) if one["verdict"] in ORDER else 0):
        verdict = "ok" if row["verdict"] == "PASS" else row["verdict"]
        name = "" if row["metric"] == "all" else _clean(row["metric"])
        lines.append(
            Text.assemble(
                (f"{verdict:<14}", COLOURS.get(row["verdict"], "dim")),
                f"{name:<24}{_clean(rule_name(row['rule'], names))}: {_clean(row[evidence] or row['evidence'], 400)}",
            )
        )
    newly = _newly_failed(view, rows, words)
    return [*lines, Text(newly)] if newly else lines


def _newly_failed(view: EvaluationView, rows: list[dict[str, Any]], words: dict[str, Any]) -> str:
    """Items that fell since the reference, how many rose, and the stratum most of them are in."""
    fell = [row for row in rows if row["rule"].startswith("regression") and row["item_ids"]]
    listed = list(dict.fromkeys(item for row in fell for item in row["item_ids"]))
    if not listed:
        return ""
    counts = [json.loads(row["numbers"] or "{}") for row in fell]
    improved = max((one.get("improved_count") or 0 for one in counts), default=0)
    total = max(len(listed), *(one.get("newly_failed_count") or 0 for one in counts))
    strata = view.items.filter(pl.col("item_id").is_in(listed))["stratum"].value_counts(sort=True)
    where = ""
    if strata.height and 2 * strata["count"][0] > len(listed):
        where = (
            words["in"].format(
                n=strata["count"][0],
                all=len(listed),
                stratum=json.dumps(_clean(strata["stratum"][0], 40), ensure_ascii=False),
            )
            + ": "
        )
    ids = " ".join(_clean(item, 60) for item in listed[:12]) + (" ..." if len(listed) > 12 else "")
    return words["newly"].format(
        n=total, improved=words["improved"].format(n=improved) if improved else "", where=where, ids=ids
    )


def _other_responses(view: EvaluationView) -> int:
    """Unchanged items whose judged texts are not those of the evaluation before: the system answered otherwise."""
    key = ["metric", "item_id", "item_sha256"]
    both = view.scores.join(view.previous_scores.select(*key, "content_sha256"), on=key, suffix="_before")
    return both.filter(pl.col("content_sha256") != pl.col("content_sha256_before"))["item_id"].n_unique()


def _changed(view: EvaluationView, words: dict[str, Any]) -> str:
    if view.previous is None:
        return words["changed"].format(text=words["nothing"])
    names = {
        "system_release": "system",
        "judge_model": "judge",
        "dataset_tag": "dataset",
        "config_sha256": "configuration",
    }
    moved = [name for name in names if view.previous[name] != view.evaluation[name]]
    texts = [
        f"{words[names[name]]} {_clean(view.previous[name])[:12]} -> {_clean(view.evaluation[name])[:12]}"
        for name in moved
    ]
    # A name that stayed proves nothing: the content behind a tag or a release may have changed all the same.
    if "dataset_tag" not in moved and view.previous["dataset_version"] != view.evaluation["dataset_version"]:
        moved.append("dataset_tag")
        texts.append(words["edited"].format(tag=_clean(view.evaluation["dataset_tag"])))
    count = _other_responses(view)
    if "system_release" not in moved and count:
        moved.append("system_release")
        texts.append(words["other_responses"].format(release=_clean(view.evaluation["system_release"]), n=count))
    rest = [words[names[name]] for name in names if name not in moved]
    if rest:
        texts.append(f"{', '.join(rest)} {words['same']}")
    return words["changed"].format(text="; ".join(texts))


def _calls(view: EvaluationView, words: dict[str, Any]) -> str:
    row = view.evaluation
    time = duration((row["finished_at"] - row["started_at"]).total_seconds())
    cost = money(row["cost_usd"], words["unknown"])
    return words["calls"].format(
        calls=f"{row['call_count']:,}", cached=f"{row['cached_count']:,}", cost=cost, time=time
    )
