"""The bundled help-desk dataset is complete, on scale, and its planted faults are what it says they are."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from eval_pipeline.intake import datasets
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.texts import content_sha256

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "datasets" / "helpdesk"
SYSTEMS = ("aurora", "borealis")
STRATA = {"faq", "numbers", "multihop", "refusal", "variation", "tables"}
FAULTS = {
    "wrong_number", "swapped_entity", "negation", "partial_answer", "unsupported_addition",
    "off_topic", "evasive", "irrelevant_context", "empty_context", "empty_response",
}  # fmt: skip
SCALES = {"answer_accuracy": {0, 2, 4}, "context_relevance": {0, 1, 2}, "response_groundedness": {0, 1, 2}}
HANGUL = re.compile("[가-힣]")


def read(name: str) -> list[dict]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def items() -> list[dict]:
    return read("items.jsonl")


@pytest.fixture(scope="module")
def responses() -> dict[tuple[str, str], dict]:
    return {(system, row["item_id"]): row for system in SYSTEMS for row in read(f"responses/{system}.jsonl")}


@pytest.fixture(scope="module")
def faults() -> list[dict]:
    return read("faults.jsonl")


@pytest.fixture(scope="module")
def labels() -> dict[tuple[str, str, str], dict]:
    rows = [row | {"system": row["note"].removeprefix("system ")} for row in read("labels/constructed.jsonl")]
    keyed = {(row["system"], row["item_id"], row["metric"]): row for row in rows}
    assert len(keyed) == len(rows), "a response is labelled twice for one metric"
    return keyed


def test_every_item_has_the_fields_in_order_and_no_id_or_question_occurs_twice(items: list[dict]) -> None:
    keys = [
        "item_id",
        "user_input",
        "reference",
        "reference_contexts",
        "stratum",
        "cluster_id",
        "language",
        "source",
        "updated_at",
    ]
    assert all(list(item) == keys for item in items)
    assert len({item["item_id"] for item in items}) == len(items) >= 130
    squeezed = {re.sub(r"\W", "", item["user_input"]).casefold() for item in items}
    assert len(squeezed) == len(items)
    for item in items:
        assert item["reference"].strip()
        assert item["reference_contexts"] and all(text.strip() for text in item["reference_contexts"])
        assert date.fromisoformat(item["updated_at"]) <= date(2026, 6, 1)


def test_every_stratum_has_twenty_items_and_about_half_the_items_are_korean(items: list[dict]) -> None:
    counts = Counter(item["stratum"] for item in items)
    assert set(counts) == STRATA
    assert min(counts.values()) >= 20
    korean = sum(item["language"] == "ko" for item in items)
    assert 0.45 <= korean / len(items) <= 0.55
    assert all((item["language"] == "ko") == bool(HANGUL.search(item["user_input"])) for item in items)


def test_the_texts_are_in_normal_form_c(items: list[dict]) -> None:
    for path in FOLDER.rglob("*.jsonl"):
        text = path.read_text(encoding="utf-8")
        assert text == unicodedata.normalize("NFC", text), path.name


def test_both_systems_answer_every_item_and_a_failed_request_has_no_text(
    items: list[dict], responses: dict[tuple[str, str], dict]
) -> None:
    assert len(responses) == len(SYSTEMS) * len(items)
    for row in responses.values():
        assert list(row) == ["item_id", "response", "retrieved_contexts", "latency_seconds", "error"]
        assert isinstance(row["retrieved_contexts"], list) and row["latency_seconds"] > 0
        assert (row["error"] is None) == isinstance(row["response"], str)


def test_each_kind_of_fault_is_planted_three_times_and_twenty_are_hallucinations(
    faults: list[dict], responses: dict[tuple[str, str], dict]
) -> None:
    counts = Counter(fault["fault"] for fault in faults)
    assert set(counts) == FAULTS
    assert min(counts.values()) >= 3
    assert sum(fault["is_hallucination"] for fault in faults) >= 20
    assert len({(fault["system"], fault["item_id"]) for fault in faults}) == len(faults)
    assert all((fault["system"], fault["item_id"]) in responses and fault["note"] for fault in faults)


def test_empty_responses_and_contexts_are_exactly_the_planted_ones(
    faults: list[dict], responses: dict[tuple[str, str], dict]
) -> None:
    planted = {kind: {(f["system"], f["item_id"]) for f in faults if f["fault"] == kind} for kind in FAULTS}
    answered = {key: row for key, row in responses.items() if row["error"] is None}
    assert {key for key, row in answered.items() if not row["response"].strip()} == planted["empty_response"]
    assert {key for key, row in answered.items() if not row["retrieved_contexts"]} == planted["empty_context"]


def test_irrelevant_contexts_share_no_passage_with_the_reference(
    items: list[dict], faults: list[dict], responses: dict[tuple[str, str], dict]
) -> None:
    wanted = {item["item_id"]: set(item["reference_contexts"]) for item in items}
    for fault in (fault for fault in faults if fault["fault"] == "irrelevant_context"):
        retrieved = responses[fault["system"], fault["item_id"]]["retrieved_contexts"]
        assert retrieved and not wanted[fault["item_id"]] & set(retrieved)


def test_labels_are_complete_on_scale_and_say_that_they_are_constructed(
    responses: dict[tuple[str, str], dict], labels: dict[tuple[str, str, str], dict]
) -> None:
    answered = {key for key, row in responses.items() if row["error"] is None}
    for metric, scale in SCALES.items():
        scored = {(system, item_id): row for (system, item_id, name), row in labels.items() if name == metric}
        assert set(scored) == answered
        assert {row["score"] for row in scored.values()} == scale
    for row in labels.values():
        assert set(row["texts"]) == set(declare(row["metric"]).needs)
        assert row["content_sha256"] == content_sha256(row["texts"])
        assert (row["annotator"], row["provenance"]) == ("construction", "constructed")


def test_faithfulness_is_labelled_for_every_response_that_makes_a_claim(
    items: list[dict],
    faults: list[dict],
    responses: dict[tuple[str, str], dict],
    labels: dict[tuple[str, str, str], dict],
) -> None:
    fault_of = {(fault["system"], fault["item_id"]): fault["fault"] for fault in faults}
    refusals = {item["item_id"] for item in items if item["stratum"] == "refusal"}
    silent = {key for key, kind in fault_of.items() if kind == "evasive"}
    silent |= {
        (system, item_id) for system, item_id in responses if item_id in refusals and (system, item_id) not in fault_of
    }
    scored = {
        (system, item_id): row["score"] for (system, item_id, name), row in labels.items() if name == "faithfulness"
    }
    assert set(scored) == {key for key, row in responses.items() if row["error"] is None} - silent
    assert all(0 <= score <= 1 for score in scored.values())


def test_every_hallucination_costs_groundedness_and_every_faultless_answer_is_right(
    faults: list[dict], labels: dict[tuple[str, str, str], dict]
) -> None:
    fault_of = {(fault["system"], fault["item_id"]): fault for fault in faults}
    for (system, item_id, metric), row in labels.items():
        fault = fault_of.get((system, item_id))
        if metric == "answer_accuracy" and fault is None:
            assert row["score"] == 4, item_id
        if metric == "response_groundedness" and fault is not None and fault["is_hallucination"]:
            assert row["score"] < 2, item_id


def test_aurora_is_the_good_system_and_borealis_the_worse_one(
    items: list[dict], labels: dict[tuple[str, str, str], dict]
) -> None:
    right = Counter(
        system for (system, _, metric), row in labels.items() if metric == "answer_accuracy" and row["score"] == 4
    )
    assert 0.80 <= right["aurora"] / len(items) <= 0.85
    assert 0.60 <= right["borealis"] / len(items) <= 0.65


def test_the_opening_example_of_the_lesson_is_there_with_full_marks(
    items: list[dict], responses: dict[tuple[str, str], dict], labels: dict[tuple[str, str, str], dict]
) -> None:
    [item] = [item for item in items if "first iPhone" in item["user_input"]]
    assert item["reference"] == "June 29, 2007."
    assert responses["aurora", item["item_id"]]["response"] == "June 29th, 2007."
    assert labels["aurora", item["item_id"], "answer_accuracy"]["score"] == 4


def test_a_response_that_orders_the_judge_about_is_labelled_zero(
    responses: dict[tuple[str, str], dict], labels: dict[tuple[str, str, str], dict]
) -> None:
    hostile = [key for key, row in responses.items() if "ignore the above" in (row["response"] or "").lower()]
    assert hostile
    assert all(labels[system, item_id, "answer_accuracy"]["score"] == 0 for system, item_id in hostile)


def test_the_package_carries_the_same_files_as_the_repository() -> None:
    sample = ROOT / "eval_pipeline" / "sample"
    assert (sample / "items.jsonl").read_bytes() == (FOLDER / "items.jsonl").read_bytes()


def test_it_is_a_dataset_of_the_product_with_an_unmoved_tag_and_readable_labels() -> None:
    version = datasets.load(FOLDER, "v1")
    assert version.items.height == 135
    assert datasets.moved(FOLDER, "v1") == []
    labels = datasets.labels(FOLDER, "helpdesk")
    assert set(labels["provenance"]) == {"constructed"}
