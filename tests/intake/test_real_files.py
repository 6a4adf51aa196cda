"""Real labelled files import with their labels, check and compare."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval_pipeline.intake import adding, datasets
from eval_pipeline.quality import rot
from eval_pipeline.stages import versioning

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("EVAL_DATA_DIR") or ROOT / "../shared/data")
NOW = datetime(2026, 6, 1, tzinfo=UTC)
ANSWERS = {"case_id": "item_id", "prompt": "user_input", "reference_answer": "reference", "agent_output": "response"}
LABELLED = {
    "openqa301_answer_accuracy.jsonl": (1490, 1490), "evouna_triviaqa_answer_accuracy.jsonl": (1938, 1938),
    "nomiracl_ko_context_relevance.jsonl": (250, 250), "factscore_claims.jsonl": (157, 0), "bc038_cases.jsonl.gz": (70, 0),
}  # fmt: skip

pytestmark = [pytest.mark.data, pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no folder {FOLDER.name} of real data")]


@pytest.mark.parametrize("name", LABELLED)
def test_a_real_file_imports_with_its_labels_and_checks_and_diffs_cleanly(tmp_path: Path, name: str) -> None:
    folder, (item_count, label_count) = tmp_path / "d", LABELLED[name]
    mapping = ANSWERS if name.startswith("bc038") else {}
    done = adding.add(folder, FOLDER / name, "v1", "as published", None, NOW, mapping)
    assert (done["item_count"], done["label_count"]) == (item_count, label_count)
    labels = datasets.labels(folder, "d")
    assert labels.height == label_count
    assert set(labels["provenance"]) <= {"human"}
    items = datasets.load(folder).items
    assert versioning.diff(items, items) == []
    assert datasets.moved(folder, "latest") == []
    # The 70 cases are 35 tasks, each with a right and a wrong answer, and no column says that the two belong together.
    errors = [found for found in rot.check_items(items) if found.severity == "error"]
    assert [found.rule for found in errors] == ["duplicates"] * (35 if name.startswith("bc038") else 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", LABELLED)
def test_a_real_file_at_the_command_line(project: Path, run_cli, name: str) -> None:
    mapping = (
        [part for theirs, ours in ANSWERS.items() for part in ("--map", f"{ours}={theirs}")]
        if name.startswith("bc038")
        else []
    )
    for tag in ("v1", "v2"):
        done = run_cli(
            "dataset",
            "add",
            "real",
            FOLDER / name,
            "--tag",
            tag,
            "--message",
            "as published",
            *mapping,
            "--json",
            cwd=project,
        )
        assert done.returncode == 0, done.stderr
    said, (item_count, label_count) = json.loads(done.stdout), LABELLED[name]
    assert (said["item_count"], said["label_count"]) == (item_count, label_count)
    labels = project / "datasets" / "real" / "labels" / "v2.jsonl"
    assert [row["provenance"] for _, row in (datasets.read_lines(labels) if label_count else ())] == [
        "human"
    ] * label_count
    found = json.loads(run_cli("dataset", "check", "real", "--json", cwd=project).stdout)
    assert {one["rule"] for one in found if one["severity"] == "error"} == (
        {"duplicates"} if name.startswith("bc038") else set()
    )
    assert json.loads(run_cli("dataset", "diff", "real", "v1", "v2", "--json", cwd=project).stdout) == {
        "added": [],
        "removed": [],
        "changed": [],
    }


def test_judges_replies_are_no_dataset_and_are_refused_in_a_sentence(project: Path, run_cli) -> None:
    done = run_cli(
        "dataset",
        "add",
        "real",
        FOLDER / "bc038_recorded_judges.jsonl.gz",
        "--tag",
        "v1",
        "--message",
        "m",
        cwd=project,
    )
    assert done.returncode == 2 and "--map user_input=FIELD" in done.stderr and "Traceback" not in done.stderr


def test_scores_of_a_metric_that_does_not_exist_are_counted_kept_and_not_taken_for_another(tmp_path: Path) -> None:
    adding.add(tmp_path / "d", FOLDER / "factscore_claims.jsonl", "v1", "m", None, NOW, {})
    first = datasets.load(tmp_path / "d").items.row(0, named=True)
    assert {"human_score", "metric"} <= set(json.loads(first["metadata"]))
    done = adding.preview(FOLDER / "factscore_claims.jsonl", {})
    assert done["unlabelled"] == {"there is no metric claim_decomposition": 157}
    assert adding.preview(FOLDER / "factscore_claims.jsonl", {}, metric="faithfulness")["label_count"] == 157
