"""Declaring metrics, and what metrics make of lost, missing and hostile verdicts."""

import asyncio
import re
from itertools import product

import pytest

from eval_pipeline import prompts
from eval_pipeline.asking import Asker
from eval_pipeline.errors import ConfigurationInvalid, UnknownName
from eval_pipeline.fencing import boundary, render
from eval_pipeline.llm.scripted_chat import ScriptedChat
from eval_pipeline.metrics import available, declare
from eval_pipeline.metrics.declaration import Sample, Verdict
from eval_pipeline.metrics.g_eval import PRESETS
from eval_pipeline.metrics.inputs import screen
from eval_pipeline.metrics.pairwise_preference import mine_first, order_summary
from eval_pipeline.vocabulary import Expects, Language, Outcome, PartSource, ScoreStatus

SAMPLE = Sample(
    item_id="i1", user_input="q?", response="r", reference="x", retrieved_contexts=("a", "b", "c"), rival_response="s",
    claims={PartSource.RESPONSE: ("one", "two"), PartSource.REFERENCE: ("three",)},
)  # fmt: skip


def answered(question, share):
    """A graded verdict at a share of its scale."""
    if question.expects == Expects.GENERATED_QUESTION:
        return Verdict(question, Outcome.GRADED, texts=("q",), is_noncommittal=False)
    if question.expects == Expects.SIMILARITY:
        return Verdict(question, Outcome.GRADED, value=share)
    grade = question.grades[round(share * (len(question.grades) - 1))]
    worst, best = question.grades[0], question.grades[-1]
    return Verdict(question, Outcome.GRADED, grade, (grade - worst) / (best - worst))


@pytest.mark.parametrize("name", [*available(), *PRESETS])
def test_no_verdicts_at_all_are_no_score_unless_nothing_was_asked(name):
    metric = declare(name)
    found = metric.score(SAMPLE, [])
    if metric.template_ids:
        assert (found.value, found.status, found.lower, found.upper) == (None, ScoreStatus.INVALID, 0.0, 1.0)


@pytest.mark.parametrize("name", available())
def test_no_claims_never_divide_by_zero(name):
    assert declare(name).score(Sample(response="r", reference="x", retrieved_contexts=()), []) is not None


@pytest.mark.parametrize("name", available())
def test_bounds_hold_whatever_the_lost_grades_would_have_been(name):
    metric = declare(name)
    if not metric.template_ids or metric.follow_up is not None:
        return
    questions = list(metric.questions(SAMPLE))[:4]
    rest = [answered(one, 1.0) for one in list(metric.questions(SAMPLE))[4:]]
    for shares in product([0.0, 1.0], repeat=len(questions)):
        whole = [answered(question, share) for question, share in zip(questions, shares, strict=True)] + rest
        truth = metric.score(SAMPLE, whole).value
        for kept in product([True, False], repeat=len(questions)):
            seen = [one for one, keep in zip(whole, [*kept, *(True for _ in rest)], strict=True) if keep]
            lost = [Verdict(one.question, Outcome.REFUSED) for one in whole if one not in seen]
            for verdicts in (seen + lost, seen):
                found = metric.score(SAMPLE, verdicts)
                assert found.lower - 1e-12 <= truth <= found.upper + 1e-12, (shares, kept)
                assert found.value is None or found.lower - 1e-12 <= found.value <= found.upper + 1e-12


@pytest.mark.parametrize("blank", ["", " ", "\n\u3000"])
def test_a_blank_reference_is_no_reference_but_a_blank_response_is_a_zero(blank):
    metric = declare("answer_accuracy")
    assert screen(metric, Sample(user_input="q", response="r", reference=blank)).status == ScoreStatus.NOT_APPLICABLE
    found = screen(metric, Sample(user_input="q", response=blank, reference="x"))
    assert (found.value, found.reason) == (0.0, "empty_response")


def test_one_word_inside_the_context_is_judged_not_waved_through():
    metric = declare("response_groundedness")
    assert screen(metric, Sample(response="No", retrieved_contexts=("November is cold.",))) is None


def pair(first, second, item_id="i"):
    """Score of a pair whose judge gives these grades in the first and second order; null is a lost one."""
    sample = Sample(item_id=item_id, user_input="q", response="r", rival_response="s")
    metric = declare("pairwise_preference")
    verdicts = [
        Verdict(question, Outcome.REFUSED if grade is None else Outcome.GRADED, grade)
        for question, grade in zip(metric.questions(sample), (first, second), strict=True)
    ]
    return metric.score(sample, verdicts)


def test_a_lost_order_leaves_a_tie_or_what_the_other_said():
    assert pair(1, None).lower == pair(1, None).upper == 0.5
    won = 2 if mine_first(Sample(item_id="i"), 0, 0) else 0
    assert (pair(won, None).lower, pair(won, None).upper, pair(won, None).value) == (0.5, 1.0, None)
    assert (pair(2 - won, None).lower, pair(2 - won, None).upper) == (0.0, 0.5)
    assert (pair(None, None).lower, pair(None, None).upper) == (0.0, 1.0)


def test_a_judge_bound_to_the_order_is_named_and_an_honest_one_is_not():
    first = order_summary([pair(2, 2, f"i{n}") for n in range(10)])
    assert (first.pair_count, first.flip_rate, first.first_won_share, first.is_order_bound) == (10, 1.0, 1.0, True)
    honest = order_summary([pair(2, 0, f"i{n}") for n in range(10)] + [pair(2, None)])
    assert (honest.pair_count, honest.flip_rate, honest.is_order_bound) == (10, 0.0, False)
    assert order_summary([]).flip_rate is None


def test_which_response_stands_first_is_even_over_items_and_fixed_by_the_seed():
    first = [mine_first(Sample(item_id=f"i{n}"), 7, 0) for n in range(1000)]
    assert first == [mine_first(Sample(item_id=f"i{n}"), 7, 0) for n in range(1000)]
    assert all(one != mine_first(Sample(item_id=f"i{n}"), 7, 1) for n, one in enumerate(first))
    assert 440 < sum(first) < 560  # sd of Binomial(1000, 1/2) is 15.8


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_declared_by_its_name(name):
    metric = declare(name)
    assert (metric.name, metric.template_ids) == (name, ("g_eval",))
    assert declare(name, {"method": "single"}).questions(SAMPLE)[0].method == "single"


@pytest.mark.parametrize(
    ("name", "options"),
    [("g_eval", {"scale": [5]}), ("g_eval", {"method": "guess"}), ("g_eval", {"method": "n_sample", "n": 0}),
     ("g_eval", {"preset": "kindness"}), ("rubric_score", {"rubric": {1: "only"}}), ("answer_relevancy", {"n": 0}),
     ("context_precision", {"against": "luck"}), ("factual_correctness", {"mode": "f2"}), ("answer_correctness", {"weights": [0, 0]})],
)  # fmt: skip
def test_an_option_that_can_give_no_score_is_refused_at_once(name, options):
    with pytest.raises(TypeError, match=r"scale|method|n is|preset|grades|against|mode|weights"):
        declare(name, options)


def test_a_needed_field_that_no_item_has_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="'response'"):
        declare("helpful", {"kind": "g_eval", "needs": ["respons"]})


@pytest.mark.parametrize("source", ["def declare(:", "1 / 0", "x = 1"])
def test_a_broken_metric_file_is_named(tmp_path, source):
    (tmp_path / "broken.py").write_text(source, encoding="utf-8")
    with pytest.raises(ConfigurationInvalid, match=r"broken\.py"):
        available([tmp_path])


def test_of_g_eval_a_grade_without_log_probabilities_says_so():
    (question,) = declare("g_eval").questions(SAMPLE)
    found = asyncio.run(Asker(ScriptedChat(lambda _: '{"grade": 4}')).ask(question, Language.EN))
    assert (found.verdict.method, found.verdict.value) == ("single", 0.75)


def test_every_prompt_has_both_languages_the_same_variables_and_a_line_in_its_changes():
    versions = {}
    for prompt in prompts.all_prompts():
        versions.setdefault((prompt.template_id, prompt.version), []).append(prompt)
    for (template_id, version), pair_ in versions.items():
        one, other = pair_
        assert {one.language, other.language} == set(Language)
        assert (set(one.variables), set(one.settings)) == (set(other.variables), set(other.settings))
        changes = (prompts.HOME / template_id / "CHANGES.md").read_text(encoding="utf-8")
        assert re.search(rf"\bv{version}\b", changes)


def test_every_prompt_asks_for_json_and_calls_the_fenced_texts_data():
    for prompt in prompts.all_prompts():
        assert "JSON" in prompt.system
        assert ("instruction" if prompt.language == Language.EN else "지시") in prompt.system
        assert not re.search(r"\{\{", prompt.system)


def test_what_metrics_send_fills_every_prompt_they_name():
    for name in available():
        metric = declare(name)
        asked = {question.template_id: question for question in metric.questions(SAMPLE)}
        assert set(metric.template_ids) == set(asked) - {"similarity"}
        for template_id, language in product(metric.template_ids, Language):
            question = asked[template_id]
            first = render(prompts.load(template_id, language), question.inputs, question.settings)
            assert first == render(prompts.load(template_id, language), question.inputs, question.settings)


def test_the_pin_of_a_prompt_that_is_gone_is_found(tmp_path, monkeypatch):
    (tmp_path / "pins.toml").write_text('["gone"]\n"v1.en" = "0"\n', encoding="utf-8")
    monkeypatch.setattr(prompts, "HOME", tmp_path)
    assert prompts.broken_pins() == ["gone/v1.en"]


def test_a_boundary_depends_on_every_text_and_is_in_none():
    texts = {"response": "r", "reference": "x"}
    mark = boundary("t", texts)
    assert re.fullmatch(r"[0-9a-f]{16}", mark)
    assert (
        len({mark, boundary("u", texts), boundary("t", texts | {"response": "s"}), boundary("t", {"response": "r"})})
        == 4
    )
    planted = texts | {"response": mark}
    assert boundary("t", planted) not in planted["response"]
    assert boundary("t", {"response": "\ud800"})
