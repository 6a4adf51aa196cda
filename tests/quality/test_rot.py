"""Planted rot is found with its rows, and a clean set raises nothing."""

from __future__ import annotations

import json
import random
import time
from datetime import date
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.intake import datasets
from eval_pipeline.quality import history, near_duplicates, rot
from eval_pipeline.quality.near_duplicates import grams, groups, jaccard, normalised

FOLDER = Path(__file__).parents[2] / "datasets" / "helpdesk"


@pytest.fixture(scope="module")
def clean() -> pl.DataFrame:
    return datasets.load(FOLDER).items


def items(*rows) -> pl.DataFrame:
    return datasets.items_frame("d", [{"item_id": f"q{n}", **row} for n, row in enumerate(rows)])


def found(findings, rule):
    return [set(one.item_ids) for one in findings if one.rule == rule]


def test_the_bundled_set_is_clean(clean: pl.DataFrame) -> None:
    assert rot.check_items(clean, previous=clean, needs=("reference",)) == []


def test_false_alarms_over_200_resamples_of_the_bundled_set_stay_under_their_level(clean: pl.DataFrame) -> None:
    # Two halves of one set: nothing rotted. PSI's limit is a 95 % limit, so 5 % of alarms would be its level; two halves
    # without replacement differ less than two samples, never more. 200 draws: sd sqrt(.05 * .95 / 200) = .015, 3 sd = .046.
    alarms = 0
    for seed in range(200):
        shuffled = clean.sample(fraction=1, shuffle=True, seed=seed)
        alarms += bool(rot.check_items(shuffled[68:], previous=shuffled[:68]))
    assert alarms / 200 <= 0.05 + 0.046


def test_duplicates_by_case_space_and_punctuation_are_found_and_a_shared_cluster_declares_them() -> None:
    rows = [
        {"user_input": "How do I reset it?"},
        {"user_input": "how do I  reset it"},
        {"user_input": "Something else"},
    ]
    assert found(rot.check_items(items(*rows)), "duplicates") == [{"q0", "q1"}]
    declared = items(*({**row, "cluster_id": "c"} for row in rows))
    assert rot.check_items(declared) == []


def test_korean_near_duplicates_with_other_particles_are_found() -> None:
    rows = [
        {"user_input": "노트북을 교환하려면 며칠 안에 신청해야 하나요?"},
        {"user_input": "노트북은 교환하려면 며칠 안에 신청해야 하나요"},
        {"user_input": "보증 기간이 지난 휴대전화를 서비스 센터에서 수리하면 부품 비용은 전부 고객이 부담합니까?"},
        {"user_input": "보증 기간이 지난 휴대전화를 서비스 센터에서 수리하면 부품 비용은 전부 고객이 부담하나요?"},
        {"user_input": "배송지를 바꾸려면 어떻게 하나요?"},
    ]
    findings = rot.check_items(items(*rows))
    # q2 and q3 have 28 five-grams each and differ in the last three: 25 / (28 + 28 - 25) = .81.
    assert found(findings, "near_duplicates") == [{"q0", "q1"}, {"q2", "q3"}]
    assert found(findings, "duplicates") == []


def test_one_question_with_two_references_is_a_conflict() -> None:
    rows = [{"user_input": "Refund period?", "reference": "7 days", "cluster_id": "c"}, {"user_input": "refund period", "reference": "14 days", "cluster_id": "c"},
            {"user_input": "Opening hours?", "reference": "9 to 5"}]  # fmt: skip
    findings = rot.check_items(items(*rows))
    assert found(findings, "conflicting_references") == [{"q0", "q1"}]
    assert [one.severity for one in findings] == ["error"]


def test_a_reference_that_changed_under_its_question_is_named() -> None:
    before = items({"user_input": "a question?", "reference": "x"}, {"user_input": "other words!", "reference": "y"})
    after = items({"user_input": "a question?", "reference": "z"}, {"user_input": "new words here", "reference": "w"})
    assert found(rot.check_items(after, previous=before), "changed_references") == [{"q0"}]


def test_a_moved_mix_of_strata_is_found_and_small_samples_are_not_accused() -> None:
    def mix(a: int, b: int) -> pl.DataFrame:
        return pl.DataFrame({"item_id": [f"q{n}" for n in range(a + b)], "stratum": ["{a}"] * a + ["{b}"] * b})

    [one] = list(rot.stratum_drift(mix(150, 150), mix(250, 50)))
    assert one.rule == "stratum_drift" and one.item_ids and "{a}' 50% -> 83%" in one.message
    # PSI (.773 - .5) ln(.773 / .5) + (.227 - .5) ln(.227 / .5) = .33 is "large" by the folk limit .25, but 5 + 5 against 8 + 2 is chance: the null limit is 3.84 * (1/10 + 1/10) = .77.
    assert list(rot.stratum_drift(mix(5, 5), mix(8, 2))) == []


def test_stale_items_and_items_whose_source_changed_are_named() -> None:
    rows = [{"user_input": "old one?", "updated_at": "2025-01-01", "source": "a.md", "metadata": json.dumps({"source_sha256": "1"})},
            {"user_input": "newer thing!", "updated_at": "2026-05-01", "source": "b.md", "metadata": json.dumps({"source_sha256": "2"})},
            {"user_input": "no date at all", "metadata": "[]"}]  # fmt: skip
    findings = rot.check_items(
        items(*rows), stale_after_days=180, today=date(2026, 6, 1), source_sha256={"a.md": "1", "b.md": "3"}
    )
    assert found(findings, "stale") == [{"q0"}]
    assert found(findings, "changed_source") == [{"q1"}]


@pytest.mark.parametrize(("text", "kind"), [
    ("write to kim.minsu@corp-mail.co.kr", "e-mail address"), ("제 번호는 010-1234-5678입니다", "mobile phone number"),
    ("주민번호 900101-1234567", "resident registration number"), ("card 4111 1111 1111 1111", "card number"),
])  # fmt: skip
def test_personal_data_is_hinted_at_without_being_repeated(text: str, kind: str) -> None:
    [one] = rot.check_items(items({"user_input": "plain question"}, {"user_input": "who?", "reference": text}))
    assert one.rule == "personal_data" and one.item_ids == ("q1",) and kind in one.message
    assert text not in one.message + one.message_ko


@pytest.mark.parametrize("text", ["help@example.com", "build 20260601-1234567890123456789012", "4111 1111 1111 1112", "0000000000000000",
                                  "990231-1234567", "version 1.2.3", "2026-06-01 10:20:30"])  # fmt: skip
def test_what_only_looks_like_personal_data_is_left_alone(text: str) -> None:
    assert rot.check_items(items({"user_input": text})) == []


def test_a_stratum_below_its_declared_size_and_a_missing_field_are_found() -> None:
    findings = rot.check_items(
        items({"user_input": "why so?", "stratum": "faq"}), minimum_sizes={"faq": 2, "numbers": 1}, needs=("reference",)
    )
    assert [(one.rule, one.item_ids) for one in findings] == [
        ("missing_field", ("q0",)),
        ("stratum_minimum", ("q0",)),
        ("stratum_minimum", ()),
    ]


def test_a_question_in_two_splits_is_an_error() -> None:
    dev, test = (
        items({"user_input": "How do I reset it?"}),
        items({"user_input": "how do i reset it"}, {"user_input": "other words"}),
    )
    [one] = rot.cross_split({"dev": dev, "test": test})
    assert one.item_ids == ("dev / q0", "test / q0") and one.severity == "error"


def history_of(values) -> pl.DataFrame:
    return pl.DataFrame([
        {"evaluation_id": f"e{run}", "system": f"s{run}", "metric": "m", "item_id": f"q{item}", "value": value}
        for run, row in enumerate(values) for item, value in enumerate(row)
    ])  # fmt: skip


def test_dead_items_are_named_and_a_live_set_is_not() -> None:
    # Of 4 items 3 (75 % > 60 %) never moved over three systems.
    [one] = history.check_history(history_of([[1, 1, 0, 0.2], [1, 1, 0, 0.4], [1, 1, 0, 0.6]]))
    assert one.rule == "dead_items" and set(one.item_ids) == {"q0", "q1", "q2"}
    assert history.check_history(history_of([[1, 0.5, 0, 0.2], [1, 1, 0.5, 0.4], [1, 1, 0, 0.6]])) == []


def test_an_item_on_which_better_systems_do_worse_is_doubtful() -> None:
    values = [[n / 8, n / 8, n / 8, 1 - n / 8] for n in range(8)]
    [one] = history.check_history(history_of(values))
    assert (one.rule, one.item_ids) == ("negative_discrimination", ("q3",))


def test_a_saturated_set_says_so() -> None:
    # Mean .97: headroom .03 is under 2 * .02.
    [one] = history.check_history(history_of([[0.95, 0.99], [0.96, 0.98]]), {"m": 0.02})
    assert one.rule == "saturation"


def test_labels_that_people_no_longer_give_ask_for_relabelling() -> None:
    old = pl.DataFrame(
        {
            "metric": ["m"] * 20,
            "content_sha256": [f"h{n}" for n in range(20)],
            "item_id": [f"q{n}" for n in range(20)],
            "value": [0.0, 1.0] * 10,
        }
    )
    assert history.label_drift(old, old) == []
    new = old.with_columns(
        pl.when(pl.int_range(pl.len()) < 10).then(1 - pl.col("value")).otherwise("value").alias("value")
    )
    [one] = history.label_drift(old, new)
    assert one.rule == "label_drift" and set(one.item_ids) == {f"q{n}" for n in range(10)}


def test_the_score_without_the_rotten_rows_stands_beside_the_score() -> None:
    scores = pl.DataFrame({"metric": ["m"] * 3, "item_id": ["a", "b", "c"], "value": [1.0, 0.0, None]})
    assert rot.score_without(scores, {"b"}).rows() == [("m", 0.5, 2, 1.0, 1)]


words = st.lists(
    st.sampled_from(["alpha", "beta", "서울은", "서울", "refund", "기간이", "x", "12"]), min_size=1, max_size=8
).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(texts=st.lists(words, max_size=12), threshold=st.sampled_from([0.5, 0.8, 1.0]))
def test_the_groups_are_those_of_comparing_every_pair(texts: list[str], threshold: float) -> None:
    own = [normalised(text) for text in texts]
    component = list(range(len(own)))
    for a, b in combinations(range(len(own)), 2):
        if jaccard(grams(own[a]), grams(own[b])) >= threshold:
            old, new = component[b], component[a]
            component = [new if c == old else c for c in component]
    expected = {}
    for index, c in enumerate(component):
        expected.setdefault(c, []).append(index)
    assert sorted(groups(own, threshold)) == sorted(g for g in expected.values() if len(g) > 1)


@pytest.mark.parametrize("shape", ["varied", "template"])
def test_ten_thousand_items_take_seconds(shape: str) -> None:
    draw = random.Random(3)
    vocabulary = [f"w{n}" for n in range(300)] + ["서울은", "환불을", "기간이", "계정", "주문"]
    texts = [f"What is the refund period of product number {n} when ordered in region {n % 50}?" if shape == "template"
             else " ".join(draw.choices(vocabulary, k=12)) for n in range(10_000)]  # fmt: skip
    started = time.perf_counter()
    near_duplicates.groups([normalised(text) for text in texts])
    assert time.perf_counter() - started < 30


def test_min_hash_finds_what_the_exact_search_finds() -> None:
    pytest.importorskip("datasketch")
    draw = random.Random(5)
    texts = [" ".join(draw.choices([f"word{n}" for n in range(200)], k=15)) for _ in range(400)]
    texts += [text + " x" for text in texts[:50]]
    own = [normalised(text) for text in texts]
    assert groups(own, exact_limit=1) == groups(own)
