"""`evaluations`, `show`, `report`, `export`: reading what is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from eval_pipeline.cli.console import LANGUAGE, emit, out, printable, say, t
from eval_pipeline.cli.querying import table
from eval_pipeline.errors import UnknownName
from eval_pipeline.evaluation import reading as stored
from eval_pipeline.evaluation.project import Project
from eval_pipeline.korean import in_korean


def evaluations(project: Project, as_json: bool) -> None:
    """All evaluations, newest last."""
    columns = ["evaluation_id", "dataset", "dataset_tag", "system", "system_release", "judge", "item_count", "call_count",
               "cost_usd", "is_partial", "partial_reason"]  # fmt: skip
    rows = stored.evaluations(project).select(columns)
    if as_json:
        emit(rows.to_dicts())
    elif rows.is_empty():
        say(
            t(
                "Nothing was evaluated yet. Run `eval-pipeline run`.",
                "아직 평가가 없습니다. `eval-pipeline run`을 실행하세요.",
            )
        )
    else:
        out().print(table(rows.columns, rows.rows()))


def show(project: Project, item_id: str, selector: str, as_json: bool) -> None:
    """One item of one evaluation in full, with the evaluation before beside it."""
    seen = stored.view(project, stored.select(project, selector))
    item = seen.items.filter(pl.col("item_id") == item_id).to_dicts()
    if not item:
        raise UnknownName(kind=t("item", "항목"), name=item_id, known=seen.items["item_id"].to_list()[:2000])

    def mine(frame: pl.DataFrame) -> list[dict[str, Any]]:
        return frame.filter(pl.col("item_id") == item_id).to_dicts()

    found = {
        "evaluation_id": seen.evaluation["evaluation_id"], "item": item[0], "response": (mine(seen.responses) or [None])[0],
        "claims": mine(seen.claims), "scores": mine(seen.scores), "verdicts": mine(seen.verdicts),
        "previous_scores": mine(seen.previous_scores),
    }  # fmt: skip
    if as_json:
        emit(found)
        return
    _print_item(found)


def _print_item(found: dict[str, Any]) -> None:
    from eval_pipeline.report.figures import number
    from eval_pipeline.report.words import words

    names = words(LANGUAGE)
    item, answer = found["item"], found["response"] or {}
    _section(t("Question", "질문"), item["user_input"])
    _section(t("Reference", "기준 답변"), item["reference"])
    for index, context in enumerate(answer.get("retrieved_contexts") or [], 1):
        _section(t(f"Context {index}", f"문맥 {index}"), context)
    _section(t("Response", "응답"), answer.get("response") or f"[{answer.get('error')}]")
    for claim in found["claims"]:
        _section(t("Claim", "주장"), f"{names['of_' + claim['source']]} {claim['claim_index']}: {claim['claim']}")
    before = {row["metric"]: row["value"] for row in found["previous_scores"]}
    for row in found["scores"]:
        was = f" ({names['was']} {number(before[row['metric']])})" if row["metric"] in before else ""
        parts = ", ".join(f"{name} {number(value)}" for name, value in json.loads(row["components"]).items())
        told = (f"{number(row['value'])}{was}", names[row["status"]], row["reason"], parts)
        _section(row["metric"], " · ".join(filter(None, told)))
    for row in found["verdicts"]:
        place = f"{row['template_id']} {names['of_' + row['part_source']]} {row['part_index']}"
        grade = None if row["grade"] is None else f"{names['grade']} {row['grade']:g}"
        outcome = None if row["outcome"] == "graded" else t(row["outcome"], in_korean(row["outcome"]))
        told = (grade or outcome, f"{names['attempts']} {row['attempt_count']}", row["reply"])
        _section(place, " · ".join(filter(None, told)))


def _section(name: str, text: object) -> None:
    from rich.text import Text

    out().print(Text.assemble((f"{printable(str(name))}: ", "bold"), printable(str(text))))


def report(project: Project, selector: str, out_file: Path | None, format_: str, baseline: str | None) -> None:
    """Writes the report."""
    from eval_pipeline.evaluation.publication import write_charts, write_report

    known = ("html", "md", "png", "svg")
    if format_ not in known:
        raise UnknownName(kind=t("format", "형식"), name=format_, known=known)
    evaluation_id = stored.select(project, selector)
    compared = None if baseline is None else stored.select(project, baseline)
    if format_ == "md":
        from eval_pipeline.report.markdown import markdown

        text = markdown(stored.view(project, evaluation_id, compared), LANGUAGE)
        if out_file is None:
            say(text)
            return
        out_file.write_text(text, encoding="utf-8")
        path = out_file
    elif format_ in {"png", "svg"}:
        for chart in write_charts(project, evaluation_id, format_, out_file, LANGUAGE):
            say(str(chart))
        return
    else:
        path = write_report(project, evaluation_id, out_file, LANGUAGE, compared)
    say(str(path))


def export(project: Project, selector: str, shape: str, target: str) -> None:
    """Writes the scores of one evaluation for other tools."""
    from eval_pipeline.report.exports import SHAPES

    if shape not in {*SHAPES, "mlflow"}:
        raise UnknownName(kind=t("format", "형식"), name=shape, known=(*SHAPES, "mlflow"))
    evaluation_id = stored.select(project, selector)
    if shape == "mlflow":
        from eval_pipeline.evaluation.publication import log_to_mlflow

        say(f"{evaluation_id}: MLflow {log_to_mlflow(project, evaluation_id, target, LANGUAGE)}")
        return
    seen = stored.view(project, evaluation_id)
    Path(target).write_bytes(SHAPES[shape](seen))
    say(f"{target}: {t(f'{seen.responses.height} items', f'항목 {seen.responses.height}개')}")
