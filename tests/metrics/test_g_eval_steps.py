"""Steps of a G-Eval are made once and pinned; one that has criteria only says so and asks the same every time."""

import asyncio

import pytest
import yaml

from eval_pipeline.chat import ModelIdentity
from eval_pipeline.config import MetricConfig
from eval_pipeline.errors import JudgeMisconfigured
from eval_pipeline.evaluation.g_eval_steps import ask_for_steps
from eval_pipeline.llm.scripted_chat import ScriptedChat
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.declaration import Sample
from eval_pipeline.metrics.g_eval import PRESETS, steps_remark
from eval_pipeline.stages.judging import judge_key
from eval_pipeline.vocabulary import Language

CRITERIA = "The response greets the reader politely."
POLITE = {"kind": "g_eval", "criteria": CRITERIA, "needs": ["response"]}


@pytest.mark.parametrize(("language", "word"), [(Language.EN, "Scale"), (Language.KO, "척도")])
def test_a_judge_is_asked_for_steps_with_the_criteria_and_the_scale_only(language, word):
    judge = ScriptedChat(lambda _: '{"steps": ["Read the response.", "Look for a greeting."]}')
    found = asyncio.run(ask_for_steps(judge, declare("polite", POLITE), "judge", language))
    assert found == ("Read the response.", "Look for a greeting.")
    (request,) = judge.requests
    text = request.messages[1]["content"]
    assert CRITERIA in text
    assert word in text
    assert "1 (worst) to 5 (best)" in text
    assert request.schema["required"] == ["steps"]


@pytest.mark.parametrize("reply", ["no idea", '{"steps": []}', '{"claims": ["x"]}', '{"steps": "one"}'])
def test_no_steps_are_an_error_of_the_judge(reply):
    with pytest.raises(JudgeMisconfigured, match="no evaluation steps"):
        asyncio.run(ask_for_steps(ScriptedChat(lambda _: reply), declare("polite", POLITE), "judge", Language.EN))


def test_criteria_alone_are_one_step_the_same_every_time_and_named():
    first, second = (declare("polite", POLITE).questions(Sample(response="Hi."))[0] for _ in range(2))
    assert first == second
    assert first.settings["steps"] == f"1. {CRITERIA}"
    english, korean = steps_remark("polite", declare("polite", POLITE))
    assert "judges steps polite" in english
    assert "judges steps polite" in korean


@pytest.mark.parametrize("name", [*PRESETS, "answer_accuracy", "rubric_score"])
def test_whatever_has_steps_or_needs_none_is_not_named(name):
    assert steps_remark(name, declare(name)) is None
    assert steps_remark("polite", declare("polite", POLITE | {"steps": ["Look."]})) is None


def test_other_criteria_steps_or_rubric_are_another_judge():
    identity = ModelIdentity("e", "m")
    rubric = {"kind": "rubric_score", "rubric": {1: "bad", 2: "good"}}
    declared = [
        declare("polite", options)
        for options in (POLITE, POLITE | {"criteria": "Else."}, POLITE | {"steps": ["Look."]}, rubric, rubric | {"rubric": {1: "bad", 2: "fine"}})
    ]  # fmt: skip
    keys = [judge_key(identity, metric) for metric in declared]
    assert len(set(keys)) == 5
    assert keys[0] == judge_key(identity, declare("polite", POLITE))


def test_steps_are_asked_for_once_and_printed_to_paste(project, loopback, run_cli):
    path = project / "evaluation.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "  embedded: {provider: embedded}",
        f"  embedded: {{provider: embedded}}\n  mini: {{provider: openai, model: m-2026-01-01, base_url: '{loopback.base_url}'}}",
    )
    text = text.replace(
        "metrics:\n", f"metrics:\n  polite: {{kind: g_eval, criteria: {CRITERIA}, needs: [response]}}\n", 1
    )
    path.write_text(text, encoding="utf-8")
    refused = run_cli("judges", "steps", "polite", cwd=project)
    assert refused.returncode == 2
    assert "--judge" in refused.stderr
    first, second = (run_cli("judges", "steps", "polite", "--judge", "mini", cwd=project) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert loopback.counters()["requests"] == 1
    assert yaml.safe_load(first.stdout)["steps"][0] == "Read the response."
    assert "judges steps polite" in run_cli("check", cwd=project).stdout


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("answer_correctness", {"weights": [0.75, 0.25]}, {"weights": [0.5, 0.5]}),
        ("factual_correctness", {"mode": "recall"}, {"mode": "precision"}),
        ("factual_correctness", {"beta": 1.0}, {"beta": 2.0}),
    ],
)
def test_an_option_that_moves_scores_is_part_of_the_judge_key(name, one, other):
    identity = ModelIdentity("e", "m", "", {})
    assert judge_key(identity, declare(name, one)) != judge_key(identity, declare(name, other))
    assert judge_key(identity, declare(name, one)) == judge_key(identity, declare(name, one))


def test_what_items_without_claims_count_is_an_option_where_it_is_not_the_default():
    assert MetricConfig(no_claims="exclude").chosen_policies == {}
    assert MetricConfig(no_claims="zero", no_response="exclude").chosen_policies == {
        "no_response": "exclude",
        "no_claims": "zero",
    }
