"""What earlier evaluations and labels of a project say of its dataset: `dataset check` looks at them too."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from eval_pipeline.evaluation import dataset_check
from eval_pipeline.evaluation.project import Project
from eval_pipeline.intake import datasets, label_files
from eval_pipeline.intake.sheets import Imported
from eval_pipeline.quality.rot import rotten_ids
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import EVALUATIONS, GATE_DECISIONS, SCORES

METRIC = "answer_accuracy"


@pytest.fixture
def own(finished, tmp_path: Path) -> tuple[Project, str]:
    folder, printed = finished
    shutil.copytree(folder, tmp_path / "p")
    return Project.find(tmp_path / "p", {}), printed["evaluation_id"]


def checked(project: Project) -> dict[str, set[str]]:
    found = dataset_check.check(project, "helpdesk", project.dataset_folder("helpdesk"), "latest", date(2026, 6, 1))
    return {one.rule: set(one.item_ids) for one in found}


def test_the_bundled_project_after_a_run_is_clean(own: tuple[Project, str]) -> None:
    assert checked(own[0]) == {}


def test_items_that_never_move_and_a_set_with_no_room_left_are_found(own: tuple[Project, str]) -> None:
    project, evaluation_id = own
    warehouse = Warehouse(project.warehouse)
    row, scores = warehouse.read(EVALUATIONS, evaluation_id), warehouse.read(SCORES, evaluation_id)
    scores = scores.filter(pl.col("metric") == METRIC)
    live = set(scores["item_id"].sort()[:3])
    for number, system in enumerate(("s1", "s2", "s3"), 1):
        name = f"2999010{number}T000000-aaaaaaaa"
        # All right but three of 134 items, which move; mean about .99: headroom .01 under twice .02.
        values = pl.when(pl.col("item_id").is_in(list(live))).then(number / 4).otherwise(1.0).alias("value")
        warehouse.write(SCORES, name, scores.with_columns(values, pl.lit(name).alias("evaluation_id")))
        fresh = [
            pl.lit(name).alias("evaluation_id"),
            pl.lit(system).alias("system"),
            pl.lit(value=False).alias("is_replay"),
        ]
        warehouse.write(EVALUATIONS, name, row.with_columns(fresh))
    warehouse.drop(EVALUATIONS, evaluation_id)
    rule = {"evaluation_id": name, "policy": "pr", "rule": "regression (window)", "metric": METRIC, "verdict": "PASS", "evidence": "-",
            "item_ids": [], "numbers": json.dumps({"detectable": 0.02}), "decided_at": datetime(2026, 6, 1, tzinfo=UTC)}  # fmt: skip
    warehouse.write(GATE_DECISIONS, name, GATE_DECISIONS.frame([rule]))
    found = checked(project)
    assert set(found) == {"dead_items", "saturation"}
    assert found["dead_items"] == set(scores["item_id"]) - live


def test_labels_that_people_give_otherwise_a_year_later_are_found_and_a_correction_is_not(
    own: tuple[Project, str],
) -> None:
    project, _ = own
    folder = project.dataset_folder("helpdesk")
    [texts] = [
        part.head(60) for (metric,), part in datasets.labels(folder, "helpdesk").group_by("metric") if metric == METRIC
    ]

    def give(day: str, turned: int) -> None:
        rows = [
            {"item_id": item_id, "metric": METRIC, "content_sha256": sha, "texts": json.loads(text), "annotator": "kim", "provenance": "human",
             "score": 4 * value, "value": value, "labelled_at": day}
            for number, (item_id, sha, text) in enumerate(texts.select("item_id", "content_sha256", "texts").iter_rows())
            for value in [float(number % 2 == (number >= turned))]
        ]  # fmt: skip
        label_files.save(folder, Imported(rows, 0, []), "kim")

    give("2025-06-01T10:00:00+00:00", 60)
    give("2025-06-01T11:00:00+00:00", 0)  # all turned round within the hour: corrections
    assert checked(project) == {}
    give("2025-06-10T10:00:00+00:00", 30)  # nine days later: people who disagree, not people who changed
    assert checked(project) == {}
    give("2026-06-01T10:00:00+00:00", 40)
    found = checked(project)
    assert set(found) == {"label_drift"} and found["label_drift"] == set(texts["item_id"][:40])
    assert datasets.replaced_labels(folder, "helpdesk").height == 120


def test_a_finding_about_the_set_calls_no_row_rotten(own: tuple[Project, str]) -> None:
    project, _ = own
    items = datasets.load(project.dataset_folder("helpdesk")).items
    found = dataset_check.rot.check_items(items, minimum_sizes={"faq": 10_000})
    assert [one.rule for one in found] == ["stratum_minimum"] and rotten_ids(found) == set()
