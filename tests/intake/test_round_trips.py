"""Every format in and out keeps every text; what cannot be kept is refused with its place."""

from __future__ import annotations

import gzip
import json
import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_pipeline.errors import DatasetInvalid, MessageRequired, NotWritable, TagExists, UnknownName
from eval_pipeline.intake import adding, datasets
from eval_pipeline.intake.exporting import export
from eval_pipeline.intake.formats import read_rows
from eval_pipeline.intake.schemas import map_rows

NOW = datetime(2026, 6, 1, tzinfo=UTC)
HOSTILE = [
    "2007-06-29", "007", "NA", "None", "null", "NaN", "true", "1e5", "a|b", 'say "hi", then', "two\nlines", "three\r\nlines",
    "tab\there", "🙂👩‍👩‍👧", unicodedata.normalize("NFC", "한글 조사는"), "zero\u200bwidth\u202ebidi", "=1+1", "- 항목", "@here",
    "'=quoted", "＝1", "'－항목", "\u00a0=1", "''", "_x000D_", "#N/A", " leading and trailing ", "\ufeffmark", "[1] not a list", "\\n", "\u2028line", "<script>alert(1)</script>",
]  # fmt: skip
FORMATS = ["jsonl", "json", "csv", "tsv", "parquet", "xlsx"]

texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=40).map(
        lambda s: unicodedata.normalize("NFC", s)
    ),
)
questions = texts.filter(lambda text: text.strip() != "")
items = st.fixed_dictionaries(
    {"user_input": questions},
    optional={
        "reference": texts, "stratum": texts, "cluster_id": texts, "source": texts,
        "reference_contexts": st.lists(texts, max_size=3), "language": st.sampled_from(["ko", "en"]),
        "metadata": st.dictionaries(st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1), st.lists(st.lists(texts, max_size=2), max_size=2)).map(
            lambda value: json.dumps(value, ensure_ascii=False, sort_keys=True) if value else None
        ),
    },
)  # fmt: skip


def with_ids(rows):
    return [{"item_id": f"q{number}", **row} for number, row in enumerate(rows)]


def frame(rows, name="d"):
    return datasets.items_frame(name, rows)


@pytest.mark.parametrize("suffix", FORMATS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(rows=st.lists(items, min_size=1, max_size=4))
def test_what_is_exported_reads_back_as_the_same_version(tmp_path: Path, suffix: str, rows) -> None:
    before = frame(with_ids(rows))
    target = tmp_path / f"out.{suffix}"
    export(before, target)
    after = frame(map_rows(target.name, read_rows(target), {}).rows)
    assert after["dataset_version"][0] == before["dataset_version"][0]
    assert after.drop("dataset_version").rows() == before.drop("dataset_version").rows()


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_hostile_corpus_survives_every_format_in_every_field(tmp_path: Path, suffix: str) -> None:
    before = frame(
        with_ids([{"user_input": t, "reference": t, "reference_contexts": [t, ""], "stratum": t} for t in HOSTILE])
    )
    target = tmp_path / f"out.{suffix}"
    assert export(before, target) == len(HOSTILE)
    after = frame(map_rows(target.name, read_rows(target), {}).rows)
    assert after["user_input"].to_list() == before["user_input"].to_list()
    assert after["content_sha256"].to_list() == before["content_sha256"].to_list()


@pytest.mark.parametrize("suffix", FORMATS[:-1])
def test_a_field_of_a_megabyte_survives(tmp_path: Path, suffix: str) -> None:
    before = frame(with_ids([{"user_input": "q", "reference": "가a,\n" * 260_000}]))
    export(before, tmp_path / f"out.{suffix}")
    assert (
        frame(map_rows(f"out.{suffix}", read_rows(tmp_path / f"out.{suffix}"), {}).rows)["reference"][0]
        == "가a,\n" * 260_000
    )


def test_a_spreadsheet_that_cannot_hold_a_text_says_which(tmp_path: Path) -> None:
    before = frame(with_ids([{"user_input": "q", "reference": "x" * 32_768}]))
    with pytest.raises(NotWritable, match="q0: reference has 32768 characters"):
        export(before, tmp_path / "out.xlsx")


def test_a_csv_that_leaves_the_house_is_harmless_in_a_spreadsheet(tmp_path: Path) -> None:
    export(frame(with_ids([{"user_input": "=cmd|' /C calc'!A0", "reference": "- 항목"}])), tmp_path / "out.csv")
    cells = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[1].split(",")
    assert all(not cell.strip('"').startswith(("=", "+", "-", "@")) for cell in cells)


def test_a_foreign_csv_keeps_its_apostrophes(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("item_id,user_input,reference\nq1,'=is this kept?,'-5\n", encoding="utf-8")
    [row] = map_rows("f.csv", read_rows(tmp_path / "f.csv"), {}).rows
    assert (row["user_input"], row["reference"]) == ("'=is this kept?", "'-5")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp949"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings_and_line_ends_are_read(tmp_path: Path, encoding: str, newline: str) -> None:
    text = newline.join(["item_id,user_input,reference", "q1,환불은 며칠 안에 되나요?,7일", ""])
    (tmp_path / "f.csv").write_bytes(text.encode(encoding))
    assert read_rows(tmp_path / "f.csv") == [
        (2, {"item_id": "q1", "user_input": "환불은 며칠 안에 되나요?", "reference": "7일"})
    ]


def test_decomposed_hangul_is_composed_and_the_hash_of_the_raw_text_is_kept(tmp_path: Path) -> None:
    raw = unicodedata.normalize("NFD", "한글은?")
    (tmp_path / "f.jsonl").write_text(json.dumps({"item_id": "q1", "user_input": raw}), encoding="utf-8")
    [row] = map_rows("f.jsonl", read_rows(tmp_path / "f.jsonl"), {}).rows
    assert row["user_input"] == "한글은?"
    assert list(json.loads(row["metadata"])["raw_sha256"]) == ["user_input"]


def test_gzip_is_read(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl.gz").write_bytes(gzip.compress(b'{"item_id": "q1", "user_input": "why?"}\n'))
    assert read_rows(tmp_path / "f.jsonl.gz") == [(1, {"item_id": "q1", "user_input": "why?"})]


@pytest.mark.parametrize(("line", "what"), [
    ('{"user_input": NaN}', "NaN is not JSON"), ('{"user_input": "a", "user_input": "b"}', "a field occurs twice"),
    ('{"user_input": "\\ud800"}', "surrogate"), ('{"x": 1e999}', "too large"), ('["a"]', "a list, not an object"), ("{", "not JSON"),
])  # fmt: skip
def test_what_json_would_lose_is_an_error_with_its_line(tmp_path: Path, line: str, what: str) -> None:
    (tmp_path / "f.jsonl").write_text('{"user_input": "fine"}\n\n' + line + "\n", encoding="utf-8")
    with pytest.raises(DatasetInvalid, match=rf"f\.jsonl:3: .*{what}"):
        read_rows(tmp_path / "f.jsonl")


def test_all_bad_rows_are_named_with_line_and_field_and_nothing_is_written(tmp_path: Path) -> None:
    rows = [
        {"item_id": f"q{n}", "user_input": " " if n % 2 else "fine", "reference": 5 if n % 3 == 0 else "x"}
        for n in range(300)
    ]
    (tmp_path / "f.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(DatasetInvalid) as caught:
        adding.add(tmp_path / "d", tmp_path / "f.jsonl", "v1", "m", None, NOW, {})
    # 100 rows have a number as reference; of the 150 blank questions the 50 divisible by 3 are among those rows.
    assert caught.value.facts["count"] == 200
    assert "f.jsonl:1: reference: int where text belongs" in str(caught.value)
    assert "f.jsonl:300: user_input: there is no question" in str(caught.value)
    assert not (tmp_path / "d").exists()


def test_a_ragged_row_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("item_id,user_input\nq1,why,too,many\nq2\n", encoding="utf-8")
    with pytest.raises(DatasetInvalid, match=r"f\.csv:2: 4 cells where the header has 2\n.*f\.csv:3: 1 cells"):
        read_rows(tmp_path / "f.csv")


@pytest.mark.parametrize("suffix", ["xlsx", "parquet", "arrow", "json", "jsonl.gz"])
def test_a_file_that_is_not_what_its_name_says_is_no_traceback(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"f.{suffix}").write_bytes(b"not really")
    with pytest.raises(Exception, match=r"f\.") as caught:
        read_rows(tmp_path / f"f.{suffix}")
    assert type(caught.value).__module__ == "eval_pipeline.errors"


def test_an_ambiguous_contexts_cell_asks_how_to_read_it(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text('user_input,retrieved_contexts,response\nq,"a|b",r\n', encoding="utf-8")
    rows = read_rows(tmp_path / "f.csv")
    with pytest.raises(DatasetInvalid, match="--contexts-as"):
        map_rows("f.csv", rows, {})
    assert map_rows("f.csv", rows, {}, "text").rows[0]["retrieved_contexts"] == ["a|b"]


@pytest.mark.parametrize("name", ["../out", "a/b", "..", ".hidden", "", "a\\b", "/etc", "a\x00b"])
def test_a_dataset_name_cannot_leave_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownName):
        adding.folder_of(tmp_path, name)


def test_a_version_needs_a_message_and_a_tag_does_not_move(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('{"item_id": "q1", "user_input": "why?"}\n', encoding="utf-8")
    with pytest.raises(MessageRequired):
        adding.add(tmp_path / "d", tmp_path / "f.jsonl", "v1", "  ", None, NOW, {})
    adding.add(tmp_path / "d", tmp_path / "f.jsonl", "v1", "first", None, NOW, {})
    (tmp_path / "f.jsonl").write_text('{"item_id": "q1", "user_input": "why not?"}\n', encoding="utf-8")
    with pytest.raises(TagExists):
        adding.add(tmp_path / "d", tmp_path / "f.jsonl", "v1", "again", None, NOW, {})


def test_the_same_items_with_other_answers_and_scores_are_no_new_version(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    for name, answer, score in (("one", "so", 4), ("two", "else", 0)):
        row = {"item_id": "q1", "user_input": "why?", "reference": "so", "response": answer, "human_score": score}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
        adding.add(folder, tmp_path / f"{name}.jsonl", "v1", name, None, NOW, {}, metric="answer_accuracy")
    assert [entry["message"] for entry in datasets.log(folder)] == ["one"]
    assert sorted(path.stem for path in (folder / "responses").iterdir()) == ["one", "two"]
    assert sorted(datasets.labels(folder, "d")["score"]) == [0, 4]
