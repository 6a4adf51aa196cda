"""The HTML report: one self-contained file without scripts, which asks the network for nothing."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from eval_pipeline.report import charts, figures, sections
from eval_pipeline.report.inert import line, visible
from eval_pipeline.report.items import worst_items, worst_of
from eval_pipeline.report.view import EvaluationView
from eval_pipeline.report.words import rule_name, words
from eval_pipeline.vocabulary import Language

LINKED_IDS = 40
"""Item ids written out in one place; the rest are counted."""


def render(view: EvaluationView, language: Language) -> str:
    """The page of one evaluation. Bounded whatever the size of the dataset: the full rows are in the database."""
    return _environment().get_template("report.html.j2").render(_content(view, language))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("eval_pipeline.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "seen": lambda text: escape(visible(text)), "line": lambda text, limit=0: escape(line(text, limit)),
        "num": figures.number, "signed": figures.signed, "pct": figures.percent, "svg": _svg, "rule": rule_name,
        "count": lambda value: "–" if value is None else f"{value:,}",
    }  # fmt: skip
    environment.globals["span"] = figures.span
    environment.globals["money"] = figures.money
    return environment


def _svg(chart: str | None) -> Markup:
    """A chart of `charts`, which escapes every text it draws."""
    return Markup(chart or "")  # noqa: S704


def _content(view: EvaluationView, language: Language) -> dict[str, Any]:
    t = words(language)
    decision, rules = sections.rules(view, "evidence_ko" if language == Language.KO else "evidence")
    items, of_metric = worst_items(view), worst_of(view)
    trust = sections.trust(view, t)
    invalid_counts, invalid_shown, invalid_rest = sections.invalid(view)
    change_counts, change_rows, changes_rest = sections.changes(view)
    rotten, without_rotten = sections.rotten(view, "message_ko" if language == Language.KO else "message")
    row = view.evaluation
    return {
        "rotten": rotten, "without_rotten": without_rotten,
        "t": t, "language": language.value, "e": row, "remarks": view.remarks(language), "decision": decision, "rules": rules, "items": items,
        "style": _style(), "numbers": sections.numbers(view, t), "trust": trust,
        "kinds": [t.get(kind, kind) for kind in sorted({one["label_provenance"] for one in trust} - {"human", "none"})],
        "trends": sections.trends(view, t), "distributions": sections.distributions(view, t),
        "anchors": {item.item_id: item.anchor for item in items}, "of_metric": of_metric, "linked": LINKED_IDS,
        "worst_total": len({name for names in of_metric.values() for name in names}),
        "invalid_counts": invalid_counts, "invalid_shown": invalid_shown, "invalid_rest": invalid_rest,
        "costs": sections.costs(view), "change_counts": change_counts, "change_rows": change_rows, "changes_rest": changes_rest,
        "previous": view.previous, "since": sections.since(view, t), "paired": sections.paired(view),
        "answered": view.responses["error"].null_count(), "responses": view.responses.height,
        "took": figures.duration((row["finished_at"] - row["started_at"]).total_seconds()),
        "is_embedded": str(row["judge_model"]).startswith("overlap_judge"),
    }  # fmt: skip


@cache
def _style() -> Markup:
    css = (files("eval_pipeline.report") / "templates" / "report.css").read_text(encoding="utf-8")
    roots = {
        name: ";".join(f"--{key}:{colour}" for key, colour in one.items())
        for name, one in (("light", charts.LIGHT), ("dark", charts.DARK))
    }
    head = f":root{{{roots['light']}}}@media screen and (prefers-color-scheme:dark){{:root{{{roots['dark']}}}}}"
    return Markup(head + css + charts.page_style())  # noqa: S704 - files of this package only
