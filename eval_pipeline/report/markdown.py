"""One evaluation as Markdown: for `report --format md`, step summaries and pull request comments."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from eval_pipeline.report import sections
from eval_pipeline.report.figures import duration, money, number, signed, span
from eval_pipeline.report.metadata import cell, escaped, table
from eval_pipeline.report.view import EvaluationView
from eval_pipeline.report.words import rule_name, words
from eval_pipeline.vocabulary import Language

MARKER = "<!-- eval-pipeline -->"
"""First line of a comment body, by which a later one finds and replaces it."""
SYMBOLS = {"PASS": "✅", "PASS_UNPROVEN": "✅", "INCONCLUSIVE": "⚠️", "FAIL": "❌", "BLOCKED": "⛔"}
SHOWN_RULES, SHOWN_ITEMS = 30, 12
Words = Mapping[str, str]


def markdown(view: EvaluationView, language: Language) -> str:
    """The decision with its reasons, the numbers, the judge against people, what changed. Texts of the data are escaped."""
    t = words(language)
    parts = [MARKER, _head(view, t), *_flags(view, t, language), _reasons(view, t, language)]
    parts += [f"### {t['numbers']}", _responses(view, t), _numbers(view, t), f"### {t['trust']}", _trust(view, t)]
    parts += [f"### {t['since']}", _since(view, t), _worst(view, t), _foot(view, t)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(view: EvaluationView, t: Words) -> str:
    row = view.evaluation
    decision, _ = sections.rules(view, "evidence")
    word = decision["verdict"] if decision else "–"
    where = f"{escaped(row['dataset'])}@{escaped(row['dataset_tag'])} · {escaped(row['system'])} {escaped(row['system_release'])}"
    shown = t.get(word, t["undecided"])
    policy = f" · {t['policy']} {escaped(decision['policy'])}" if decision else ""
    return f"## {SYMBOLS.get(word, '❔')} {shown} ({word})\n\n{where} · {escaped(row['judge'])} ({escaped(row['judge_model'])}) · {escaped(row['evaluation_id'])}{policy}"


def _flags(view: EvaluationView, t: Words, language: Language) -> list[str]:
    row, found = view.evaluation, []
    if row["is_partial"]:
        found.append(f"**{t['partial']}:** {escaped(row['partial_reason'], 400)}")
    found += [t[name] for name in ("replay", "unpinned") if row[f"is_{name}"]]
    found += [f"**{t['warning']}:** {escaped(one, 400)}" for one in view.remarks(language)]
    if str(row["judge_model"]).startswith("overlap_judge"):
        found.append(t["embedded"])
    kinds = sorted(set(view.calibrations["label_provenance"]) - {"human", "none"})
    if kinds:
        found.append(t["constructed_note"].format(kinds=", ".join(t.get(kind, kind) for kind in kinds)))
    return [f"> {text}" for text in found]


def _reasons(view: EvaluationView, t: Words, language: Language) -> str:
    _, rules = sections.rules(view, "evidence_ko" if language == Language.KO else "evidence")
    rows = []
    for rule in rules[:SHOWN_RULES]:
        ids = rule["item_ids"] or []
        named = ", ".join(ids[:SHOWN_ITEMS]) + (f" … +{len(ids) - SHOWN_ITEMS}" if len(ids) > SHOWN_ITEMS else "")
        metric = t["whole"] if rule["metric"] == "all" else rule["metric"]
        rows.append(
            [t.get(rule["verdict"], rule["verdict"]), metric, rule_name(rule["rule"], t), rule["evidence"], named]
        )
    if not rows:
        return t["no_gate"]
    text = table([t["verdict"], t["metric"], t["rule"], t["evidence"], t["items"]], rows)
    rest = len(rules) - len(rows)
    return f"{text}\n\n{t['rest'].format(n=rest)}" if rest else text


def _responses(view: EvaluationView, t: Words) -> str:
    items, answered = view.responses.height, view.responses["error"].null_count()
    return t["responses_line"].format(items=f"{items:,}", answered=f"{answered:,}", failed=f"{items - answered:,}")


def _numbers(view: EvaluationView, t: Words) -> str:
    rows = []
    for row in sections.numbers(view, t):
        worst = number(row["cvar10"], 2) + (f" ({t['was']} {number(row['previous'], 2)})" if row["had"] else "")
        rows.append([
            row["metric"], number(row["mean"]), span(row["mean_interval_lower"], row["mean_interval_upper"], 2),
            span(row["mean_lower_bound"], row["mean_upper_bound"]), worst, *row["counts"],
        ])  # fmt: skip
    counts = ("scored", "failed", "invalid", "no_claims", "not_applicable", "not_asked")
    return table([t[name] for name in ("metric", "mean", "interval", "if_missing", "worst", *counts)], rows)


def _trust(view: EvaluationView, t: Words) -> str:
    rows = [
        [row["metric"], t["provisional"] if row["is_provisional"] else t.get(row["decision"], row["decision"]),
         t.get(row["label_provenance"], row["label_provenance"]), row["pair_count"], number(row["spearman_rho"], 2),
         span(row["rho_lower"], row["rho_upper"], 2), signed(row["bias"])]
        for row in view.calibrations.filter(pl.col("stratum") == "all").iter_rows(named=True)
    ]  # fmt: skip
    heads = ("metric", "decision", "labels", "pairs", "rho", "limits", "bias")
    if not rows:
        return t["no_calibration"]
    said = [corrected for row in rows if (corrected := sections.corrected(view, str(row[0]), t))]
    return "\n\n".join([table([t[name] for name in heads], rows), *(escaped(text, 200) for text in said)])


def _since(view: EvaluationView, t: Words) -> str:
    if view.previous is None:
        return t["first"]
    against = t["against"].format(
        id=escaped(view.previous["evaluation_id"]), date=f"{view.previous['started_at']:%Y-%m-%d}"
    )
    moved = [
        f"- {escaped(row['name'])}: {escaped(row['before'], 24)} → {escaped(row['now'], 24)}"
        for row in sections.since(view, t)
    ]
    rows = [[row["metric"], row["shared_count"], signed(row["difference"], 3), row["worse_count"], row["better_count"]]
            for row in sections.paired(view)]  # fmt: skip
    paired = table([t[name] for name in ("metric", "shared", "difference", "worse", "better")], rows) if rows else ""
    return "\n\n".join(part for part in (against, "\n".join(moved), paired) if part)


def _worst(view: EvaluationView, t: Words) -> str:
    lines = [
        f"- {cell(metric)}: {escaped(', '.join(row['worst_item_ids'][:SHOWN_ITEMS]))}"
        for metric, row in sections.whole(view).items() if row["worst_item_ids"]
    ]  # fmt: skip
    return "\n".join([f"### {t['worst_items']}", "", *lines]) if lines else ""


def _foot(view: EvaluationView, t: Words) -> str:
    row = view.evaluation
    took = duration((row["finished_at"] - row["started_at"]).total_seconds())
    return f"{t['calls']} {row['call_count']:,} · {t['cached']} {row['cached_count']:,} · {money(row['cost_usd'], t['unknown'])} · {took}"
