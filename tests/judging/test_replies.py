"""What counts as an answer, and nothing else does."""

import json
import math
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.chat import TokenAlternatives
from eval_pipeline.replies import expected_grade, parse_claims, parse_generated_question, parse_grade
from eval_pipeline.vocabulary import Outcome

SCALE = (0, 2, 4)
ONE_TO_TEN = tuple(range(1, 11))


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ('{"grade": 4}', 4),
        ('{"grade": 4.0}', 4),
        ('{"grade": "4"}', 4),
        ('{"grade": "４"}', 4),
        ('{"rating": 2, "reason": "half"}', 2),
        ('{"score": 0}', 0),
        ('{"grade": 4,}', 4),
        ("｛＂grade＂：４｝", 4),
        ('```json\n{"grade": 2}\n```', 2),
        ('```JSON {"grade": 2}```', 2),
        ('<think>It could be {"grade": 0}.</think>\n{"grade": 4}', 4),
        ('It could be 0.</think>{"grade": 4}', 4),
        ('{"grade": 4, "reason": "holds a <think> tag"}', 4),
        ('{"grade": 4, "reason": "그는 ＂네＂라고 했다"}', 4),
        ("4", 4),
        ("-0", 0),
        ("**4**", 4),
        ("2]", 2),
        ("Rating: 4", 4),
        ("**Final Rating:** 4", 4),
        ("등급: 2", 2),
        ("점수는 4점입니다.", 4),
        ("4점 만점에 2점", 2),
        ("2/4", 2),
        ("2 (on the 0-4 scale)", 2),
        ("Both name 1879, so 2 of 2 facts agree.\n\nFinal grade: 4", 4),
        ("Draft grade: 2\nSecond thoughts.\nGrade: 4", 4),
        ("The facts agree.\n4", 4),
    ],
)
def test_a_grade_is_read(text, grade):
    assert (parse_grade(text, SCALE).outcome, parse_grade(text, SCALE).grade) == (Outcome.GRADED, grade)


@pytest.mark.parametrize(
    "text",
    ['{"grade": 3}', '{"grade": 4.5}', '{"grade": true}', '{"grade": NaN}', '{"grade": "nan"}', '{"grade": -Infinity}',
     '{"grade": 99999999999999999999999}', "3", "40", "-2", "4.5", "NaN", "true", "Rating: 15"],
)  # fmt: skip
def test_one_number_that_is_not_allowed_is_off_the_scale(text):
    assert parse_grade(text, SCALE).outcome == Outcome.OFF_SCALE
    assert parse_grade(text, SCALE).grade is None


@pytest.mark.parametrize(
    "text",
    ["four", "n/a", "The rating is 4.", "Rating 4: both say March 14, 1879", "0 - not relevant, article from 2021", ".4",
     "2*2", "4_2", "1e0", "4/10", "4 (on the 0-10 scale)", "10점 만점에 4점", "4\nor\n2", "2 then 4", "٤", "{}", "null",
     '{"grade": null}', '{"grade": [4]}', '{"grade": "four"}', '{"grade": 0, "grade": 4}', '{"grade": 4, "score": 4}',
     '{"grade": 4} {"grade": 2}', '```\n{"grade": 4}\n```\n```\n{"grade": 2}\n```', '{"answer": {"grade": 4}}',
     '{"grade": 4, "reason": "cut', '<think>{"grade": 4}', "\u200b", '{"a":' * 5000, "4 / " + "9" * 5000],
)  # fmt: skip
def test_no_verdict_or_several_that_differ_are_not_guessed_at(text):
    assert parse_grade(text, SCALE).outcome == Outcome.UNPARSEABLE


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"])
def test_white_space_is_an_empty_reply(text):
    assert parse_grade(text, SCALE).outcome == Outcome.EMPTY
    assert parse_claims(text) == (Outcome.EMPTY, ())
    assert parse_generated_question(text) == (Outcome.EMPTY, None, None)


def test_the_reason_comes_along_and_may_say_any_number():
    found = parse_grade('{"reason": "grade: 0? No, 2007 agrees.", "grade": 4}', SCALE)
    assert (found.grade, found.reason) == (4, "grade: 0? No, 2007 agrees.")


@pytest.mark.parametrize(
    "text",
    ["*" * 200_000, "(" * 200_000, "> " * 100_000 + "4", "<think>" * 40_000, "</think>" * 40_000, "```" + " " * 200_000,
     "```" + "a" * 200_000, "4 (" + " " * 200_000 + "x", "4 (" + "0 " * 70 + "x", "4 (" + "on the " * 22 + "x",
     "Rating:" * 30_000, "4\n" * 100_000, '{"grade": 4,' + " " * 200_000 + "}", '{"grade"' * 40_000, "," + " " * 200_000],
    ids=lambda text: repr(text[:8]),
)  # fmt: skip
def test_a_hostile_reply_of_200_000_letters_is_read_at_once(text):
    began = time.perf_counter()
    parse_grade(text, SCALE)
    parse_claims(text)
    parse_generated_question(text)
    expected_grade([TokenAlternatives("4", (("4", -0.1),))], SCALE, text)
    # Milliseconds to 0.4 s here; with one competing repetition in a pattern it was minutes.
    assert time.perf_counter() - began < 8


@given(st.text())
def test_any_text_gets_an_outcome_and_only_a_graded_one_a_grade(text):
    found = parse_grade(text, SCALE)
    assert (found.grade in SCALE) == (found.outcome == Outcome.GRADED)
    assert parse_claims(text)[0] in {Outcome.GRADED, Outcome.EMPTY, Outcome.UNPARSEABLE}
    assert parse_generated_question(text)[0] in {Outcome.GRADED, Outcome.EMPTY, Outcome.UNPARSEABLE}


@given(st.text(alphabet='{}[]":,0123456789 grade\n`<>/thinkNa.-', max_size=60))
def test_nearly_right_replies_never_raise(text):
    found = parse_grade(text, SCALE)
    assert (found.grade in SCALE) == (found.outcome == Outcome.GRADED)
    expected_grade([TokenAlternatives(letter, ((letter, -0.1),)) for letter in text], SCALE, text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(json_values)
def test_a_json_grade_counts_only_when_it_is_an_allowed_number(value):
    found = parse_grade(json.dumps({"grade": value, "reason": "0 2 4"}), SCALE)
    if isinstance(value, int | float) and not isinstance(value, bool):
        assert found.grade == (value if value in SCALE else None)
        assert found.outcome == (Outcome.GRADED if value in SCALE else Outcome.OFF_SCALE)
    elif not isinstance(value, str):
        assert found.grade is None


@given(st.sampled_from(SCALE), st.text(), st.booleans())
def test_what_the_reason_says_does_not_change_the_grade(grade, reason, reason_first):
    fields = {"reason": reason, "grade": grade} if reason_first else {"grade": grade, "reason": reason}
    for text in (json.dumps(fields, ensure_ascii=False), f"```json\n{json.dumps(fields)}\n```"):
        if "```" not in reason:
            assert parse_grade(text, SCALE).grade == grade


HOSTILE = ["```", "```json\n", "``` ```4``` ```", '{"grade": 4}', '"grade": 4', "＂,＂grade＂: 4", "<think>", "</think>",
           "</think>Rating: 4", "\nGrade: 4\n", "\n4", "4", "4/4", "등급: 4", "\\", '"', "}", "{", "[", ",", " "]  # fmt: skip


@given(
    st.lists(st.sampled_from(HOSTILE) | st.text(max_size=3), max_size=8).map("".join),
    st.sampled_from(["{}", "```json\n{}\n```", "<think>Is it 2?</think>\n{}", "It was read.\n\n```json\n{}\n```"]),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.booleans(),
)
def test_whatever_the_reason_holds_the_grade_is_the_judges_or_none(reason, frame, indent, reason_first, ascii_only):
    fields = {"reason": reason, "grade": 0} if reason_first else {"grade": 0, "reason": reason}
    reply = frame.replace("{}", json.dumps(fields, indent=indent, ensure_ascii=ascii_only))
    found = parse_grade(reply, SCALE)
    assert found.grade in {0, None}
    if not frame.startswith("It"):
        assert (found.outcome, found.grade, found.reason) == (Outcome.GRADED, 0, reason or None)


@given(st.lists(st.sampled_from([one for one in HOSTILE if "4" not in one]) | st.text(), max_size=8).map("".join))
def test_a_reply_that_names_no_allowed_grade_is_never_graded(text):
    if set("024").isdisjoint(unicodedata.normalize("NFKC", text)):
        assert parse_grade(text, SCALE).grade is None


@pytest.mark.parametrize(
    "text",
    ['{\n "grade": 0\n}\n{\n "grade": 4\n}', '{"reason": "cut here\n4', '{\n "reason": "cut,\n "grade": 4\n}',
     '```json\n{\n"grade": 0\n}\n{\n"grade": 4\n}\n```', '```json\n{"reason": "cut\n4', "[\n0,\n2,\n4", "{\n'grade': 4\n}",
     '{"reason": "x</think>Rating: 4"'],
)  # fmt: skip
def test_lines_of_broken_json_are_no_verdict(text):
    assert parse_grade(text, SCALE).outcome == Outcome.UNPARSEABLE


@pytest.mark.parametrize(
    "text",
    ["The reference says\n```\n4\n```\nwhich the response misses.", "Answer: 4\nThe response says 5, so it is wrong.",
     'First:\n```json\n{"grade": 0}\n```\nOn reflection:\nGrade: 4', "Rating: 4\nRating: 8/10"],
)  # fmt: skip
def test_a_quoted_number_or_a_second_verdict_is_not_guessed_at(text):
    assert parse_grade(text, SCALE).outcome == Outcome.UNPARSEABLE


def test_a_field_given_twice_is_not_read_even_when_its_name_is_escaped():
    assert parse_grade('{"grade": 0, "gr\\u0061de": 4}', SCALE).outcome == Outcome.UNPARSEABLE
    assert parse_claims('{"claims": ["a"], "claims": []}') == (Outcome.UNPARSEABLE, ())


@given(st.lists(st.text(), max_size=6))
def test_claims_are_kept_letter_by_letter(claims):
    assert parse_claims(json.dumps({"claims": claims}, ensure_ascii=False)) == (
        Outcome.GRADED,
        tuple(claim.strip() for claim in claims if claim.strip()),
    )


def test_a_squared_number_in_a_claim_stays_squared():
    assert parse_claims('{"claims": ["면적은 10² ㎡이다"]}') == (Outcome.GRADED, ("면적은 10² ㎡이다",))


@pytest.mark.parametrize("text", ["- a\n- b", '["a"]', '{"claims": "a"}', '{"claims": [1]}', '{"statements": ["a"]}'])
def test_claims_in_another_form_are_not_read(text):
    assert parse_claims(text) == (Outcome.UNPARSEABLE, ())


def test_a_generated_question_carries_its_flag():
    assert parse_generated_question('{"question": " q? ", "is_noncommittal": false}') == (Outcome.GRADED, "q?", False)
    assert parse_generated_question('{"question": "q?", "noncommittal": 1}') == (Outcome.GRADED, "q?", True)
    assert parse_generated_question('{"question": "", "is_noncommittal": true}') == (Outcome.GRADED, "", True)


@pytest.mark.parametrize("text", ["q?", '{"question": "q"}', '{"question": "", "is_noncommittal": 0}', '{"question": "q", "is_noncommittal": "no"}'])  # fmt: skip
def test_a_question_without_its_flag_or_text_is_not_read(text):
    assert parse_generated_question(text) == (Outcome.UNPARSEABLE, None, None)


def tokens(*given):
    """Tokens with alternatives as probabilities: a string alone is certain."""
    return [
        TokenAlternatives(one, ((one, 0.0),)) if isinstance(one, str) else
        TokenAlternatives(one[0], tuple((token, math.log(p)) for token, p in one[1].items()))
        for one in given
    ]  # fmt: skip


def test_the_expectation_over_the_scale():
    found = tokens('{"', "grade", '":', " ", ("8", {"8": 0.6, "9": 0.3, "7": 0.1}), "}")
    # 8*.6 + 9*.3 + 7*.1 = 4.8 + 2.7 + .7 = 8.2
    assert expected_grade(found, ONE_TO_TEN, '{"grade": 8}') == pytest.approx(8.2)


def test_alternatives_off_the_scale_are_ignored_and_spellings_of_one_grade_merged():
    found = tokens("Grade:", (" 4", {" 4": 0.4, "4": 0.2, "2": 0.2, "3": 0.1, "four": 0.1}))
    # Off {0,2,4}: "3" and "four". 4 has .6, 2 has .2 of .8 in all: 4*.75 + 2*.25 = 3.5
    assert expected_grade(found, SCALE, "Grade: 4") == pytest.approx(3.5)


@pytest.mark.parametrize("reason_first", [True, False])
def test_a_digit_that_the_reason_repeats_is_not_the_grade(reason_first):
    reason = ['"reason": "', ("4", {"4": 0.5, "0": 0.5}), ' of 4"']
    grade = ['"grade": ', ("4", {"4": 0.75, "2": 0.25})]
    parts = [*reason, ", ", *grade] if reason_first else [*grade, ", ", *reason]
    found = tokens("{", *parts, "}")
    text = "".join(one.token for one in found)
    # 4*.75 + 2*.25 = 3.5; the reason's own digit would have made 2.0.
    assert expected_grade(found, SCALE, text) == pytest.approx(3.5)


def test_tokens_that_leave_out_parts_of_the_text_are_laid_along_it():
    found = tokens(("8", {"8": 0.75, "9": 0.25}), "r", ("8", {"8": 0.5, "1": 0.5}))
    assert expected_grade(found, ONE_TO_TEN, '{"score": 8, "reason": "r 8"}') == pytest.approx(8.25)


def test_a_grade_spelled_over_two_tokens_or_nearly_off_the_scale_has_no_expectation():
    assert expected_grade(tokens('{"grade": ', "1", "0", "}"), ONE_TO_TEN, '{"grade": 10}') is None
    assert expected_grade(tokens(("8", {"8": 0.009, "7": 0.008})), ONE_TO_TEN, '{"grade": 8}') is None
    assert expected_grade([], ONE_TO_TEN, '{"grade": 8}') is None
    assert expected_grade(tokens("no idea"), ONE_TO_TEN, "no idea") is None


@given(
    st.lists(st.tuples(st.sampled_from(["1", " 2", "3", "eleven", "11", ""]), st.floats(allow_nan=True)), max_size=6)
)
def test_an_expectation_lies_on_the_scale_or_is_null(alternatives):
    found = [TokenAlternatives("2", tuple(alternatives))]
    value = expected_grade(found, (1, 2, 3), "2")
    assert value is None or 1 <= value <= 3
