"""Versions: a tag names one content, the log says what changed, and every edit of a tagged version is found."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from eval_pipeline.errors import DatasetInvalid, DatasetNotFound
from eval_pipeline.evaluation import dataset_check
from eval_pipeline.evaluation.project import Project
from eval_pipeline.intake import adding, datasets
from eval_pipeline.quality import rot

NOW = datetime(2026, 6, 1, tzinfo=UTC)
FIRST = [
    {"item_id": "b", "user_input": "Where is it?", "reference": "Here.", "stratum": "faq"},
    {"item_id": "a", "user_input": "언제 오나요?", "reference": "내일."},
]
SECOND = [FIRST[0] | {"reference": "There."}, {"item_id": "c", "user_input": "Why?", "source": "note 1"}]


def add(folder: Path, rows: list[dict], tag: str) -> dict:
    file = folder.parent / f"{tag}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return adding.add(folder, file, tag, f"why {tag}", "me", NOW, {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "d"
    add(folder, FIRST, "v1")
    add(folder, SECOND, "v2")
    return folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_log_says_who_when_why_and_what_changed(folder: Path) -> None:
    first, second = datasets.log(folder)
    assert (second["tag"], second["message"], second["author"], second["item_count"]) == ("v2", "why v2", "me", 2)
    assert second["parent_version"] == first["dataset_version"] and first["parent_version"] is None
    assert second["changes"] == [
        {"item_id": "a", "change": "removed", "fields": None}, {"item_id": "b", "change": "changed", "fields": ["reference"]},
        {"item_id": "c", "change": "added", "fields": None},
    ]  # fmt: skip
    assert second["stratum_counts"] == {"default": 1, "faq": 1}
    assert datasets.version_rows(folder).height == 2 and datasets.change_rows(folder).height == 5


def test_the_head_is_one_item_a_line_in_id_order_with_literal_hangul(folder: Path) -> None:
    kept = next((folder / "versions").glob(f"{datasets.log(folder)[0]['dataset_version'][:16]}*"))
    lines = kept.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["item_id"] for line in lines] == ["a", "b"]
    assert "언제 오나요?" in lines[0]


def test_the_order_of_lines_makes_no_other_version(tmp_path: Path) -> None:
    one, other = add(tmp_path / "x", FIRST, "v1"), add(tmp_path / "y", FIRST[::-1], "v1")
    assert one["dataset_version"] == other["dataset_version"]


def test_a_version_is_found_by_tag_hash_and_latest(folder: Path) -> None:
    sha = datasets.log(folder)[0]["dataset_version"]
    assert datasets.load(folder, "v1").items.equals(datasets.load(folder, sha[:12]).items)
    assert datasets.load(folder).tag == "v2"
    for unknown in ("v3", "../v1", sha[:6], ""):
        with pytest.raises(DatasetNotFound):
            datasets.load(folder, unknown)


@pytest.mark.parametrize(("old", "new", "item", "field"), [
    ("There.", "There!", "b", "reference"), ("Why?", "Why¿", "c", "user_input"), ("note 1", "note 2", "c", "source"), ('"faq"', '"fag"', "b", "stratum"),
])  # fmt: skip
def test_one_character_of_the_head_is_found_with_dataset_tag_item_and_field(
    folder: Path, old: str, new: str, item: str, field: str
) -> None:
    assert datasets.moved(folder, "v2") == []
    edit(folder / "items.jsonl", old, new)
    assert datasets.moved(folder, "v2") == [f"d@v2: item '{item}' changed ({field}) since it was tagged"]
    assert datasets.moved(folder, "v1") == []
    assert [one.item_ids for one in dataset_check.moved(folder, "latest")] == [(item,)]


def test_one_character_of_an_older_version_is_found_too(folder: Path) -> None:
    kept = folder / "versions" / f"{datasets.log(folder)[0]['dataset_version'][:16]}.jsonl"
    edit(kept, "Where is it?", "Where is it!")
    assert datasets.moved(folder, "v2") == []
    # b changed in v2 anyway, so which of its fields was edited cannot be told from the log.
    assert datasets.moved(folder, "latest") == ["d@v1: content since it was tagged"]


def test_an_older_version_names_the_item_when_it_did_not_change_since(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    add(folder, FIRST, "v1")
    add(folder, [*FIRST, {"item_id": "c", "user_input": "Why?"}], "v2")
    edit(folder / "versions" / f"{datasets.log(folder)[0]['dataset_version'][:16]}.jsonl", "Here.", "Hers.")
    assert datasets.moved(folder, "v1") == ["d@v1: item 'b' changed (reference) since it was tagged"]


def test_a_removed_line_and_a_merge_conflict_are_found(folder: Path) -> None:
    path = folder / "items.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(lines[0], encoding="utf-8")
    assert datasets.moved(folder, "v2") == ["d@v2: item 'c' removed (whole row) since it was tagged"]
    path.write_text("<<<<<<< HEAD\n" + "".join(lines), encoding="utf-8")
    with pytest.raises(DatasetInvalid, match=r"items\.jsonl:1: not JSON"):
        datasets.load(folder)


def test_a_head_that_git_merged_becomes_a_version_with_its_changes(folder: Path) -> None:
    edit(folder / "items.jsonl", "Why?", "Why not?")
    done = adding.add(folder, folder / "items.jsonl", "v3", "merged", None, NOW, {})
    assert done["tag"] == "v3"
    assert datasets.log(folder)[-1]["changes"] == [{"item_id": "c", "change": "changed", "fields": ["user_input"]}]
    assert datasets.moved(folder, "latest") == []


def test_a_check_of_the_bundled_project_finds_nothing_and_an_edit_is_an_error(project: Path) -> None:
    found = Project.find(project, {})
    folder = found.dataset_folder("helpdesk")
    assert dataset_check.check(found, "helpdesk", folder, "v1", date(2026, 6, 1)) == []
    edit(folder / "items.jsonl", '"June 29, 2007."', '"June 28, 2007."')
    [one, *rest] = dataset_check.check(found, "helpdesk", folder, "v1", date(2026, 6, 1))
    assert (one.rule, one.severity) == ("content_is_as_tagged", "error") and one.item_ids and "reference" in one.message
    assert rest == []


def test_a_source_file_that_changed_makes_its_items_suspect(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("old", encoding="utf-8")
    row = {
        "item_id": "a",
        "user_input": "Why?",
        "source": "note.md",
        "source_sha256": "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4",
    }
    add(tmp_path / "d", [row], "v1")  # sha256 of "old", by sha256sum
    items = datasets.load(tmp_path / "d").items
    assert rot.check_items(items, source_sha256=datasets.source_hashes(tmp_path, items)) == []
    (tmp_path / "note.md").write_text("new", encoding="utf-8")
    [one] = rot.check_items(items, source_sha256=datasets.source_hashes(tmp_path, items))
    assert (one.rule, one.item_ids) == ("changed_source", ("a",))
