"""From an evaluation to sheets for two people, back in, settled, and counted."""

from __future__ import annotations

import csv
import io
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval_pipeline.errors import UnknownName
from eval_pipeline.evaluation import labelling
from eval_pipeline.evaluation.project import Project
from eval_pipeline.vocabulary import Language

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def own(finished, tmp_path: Path) -> tuple[Project, str]:
    folder, printed = finished
    shutil.copytree(folder, tmp_path / "p")
    return Project.find(tmp_path / "p", {}), printed["evaluation_id"]


def fill(path: str, score: str) -> Path:
    rows = list(csv.DictReader(io.StringIO(Path(path).read_text(encoding="utf-8-sig"), newline="")))
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"score": score} for row in rows)
    return Path(path)


def test_two_people_label_and_a_third_settles(own: tuple[Project, str], tmp_path: Path) -> None:
    project, evaluation_id = own
    done = labelling.export(
        project, evaluation_id, "answer_accuracy", 12, ["kim", "lee"], 4, tmp_path / "s.csv", 1, Language.KO
    )
    assert (done["task_count"], done["arithmetic"]) == (12, "항목 12개 + 공통 4개 x 1명 = 라벨 16개")
    for annotator, score in (("kim", "4"), ("lee", "2")):
        got = labelling.import_labels(project, "helpdesk", fill(done["files"][annotator], score), annotator, NOW)
        assert (got["label_count"], got["blank_count"], got["problems"]) == (8, 0, [])
    [row] = [row for row in labelling.status(project, "helpdesk") if row["metric"] == "answer_accuracy"]
    assert (row["human_count"], row["shared_count"], row["disagreement_count"], row["waiting_count"]) == (16, 4, 4, 0)

    settle = labelling.export_adjudication(project, "helpdesk", "answer_accuracy", tmp_path / "a.csv", Language.EN)
    assert settle["task_count"] == 4
    labelling.import_labels(project, "helpdesk", fill(settle["files"]["adjudicated"], "4"), "adjudicated", NOW)
    assert (
        labelling.export_adjudication(project, "helpdesk", "answer_accuracy", tmp_path / "a.csv", Language.EN)[
            "task_count"
        ]
        == 0
    )

    again = labelling.export(
        project, evaluation_id, "answer_accuracy", 500, ["kim"], 0, tmp_path / "t.html", 1, Language.KO
    )
    assert again["task_count"] == again["offered_count"] == done["offered_count"] - 12


def test_a_name_that_no_file_may_have_is_refused_before_anything_is_written(
    own: tuple[Project, str], tmp_path: Path
) -> None:
    project, evaluation_id = own
    with pytest.raises(UnknownName):
        labelling.export(
            project, evaluation_id, "answer_accuracy", 5, ["kim", "../lee"], 0, tmp_path / "s.csv", 1, Language.KO
        )
    assert not list(tmp_path.glob("s*.csv"))
