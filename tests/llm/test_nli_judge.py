"""A local NLI model as the judge of claims, on a small model made here."""

import asyncio
import builtins
import hashlib
import json
import shutil

import pytest
from small_onnx import write_nli

from eval_pipeline import Faithfulness, OverlapJudge
from eval_pipeline.asking import Asker
from eval_pipeline.chat import ChatRequest
from eval_pipeline.errors import ExtraMissing, JudgeMisconfigured
from eval_pipeline.evaluation.judges import build_judge, refuse_unanswerable
from eval_pipeline.evaluation.project import Project
from eval_pipeline.llm.nli_judge import NliJudge
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.declaration import Question
from eval_pipeline.stages.judging import judge_key
from eval_pipeline.vocabulary import Language, Outcome

WORDS = [
    "leave",
    "lasts",
    "ninety",
    "days",
    "five",
    "is",
    "paid",
    "휴가는",
    "90일이다",
    "5일이다",
    ".",
    *map(chr, range(97, 117)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_nli(tmp_path_factory.mktemp("models") / "small-nli", WORDS)


def asked(judge, claim, premise, template="claim_in_text.1"):
    question = Question(template, {"claim": claim, "premise": premise}, (0, 1))
    return asyncio.run(Asker(judge).ask(question, Language.EN)).verdict


@pytest.mark.parametrize(
    ("claim", "grade"),
    [("leave lasts ninety days", 1), ("leave lasts five days", 0), ("leave is paid", 1), ("휴가는 90일이다", 1), ("휴가는 5일이다", 0)],
)  # fmt: skip
def test_a_claim_is_supported_when_the_premise_entails_it(folder, claim, grade):
    found = asked(NliJudge(folder), claim, "leave lasts ninety days . leave is paid . 휴가는 90일이다")
    assert (found.outcome, found.grade, found.value) == (Outcome.GRADED, grade, float(grade))
    assert found.reason.startswith("entailment 0.")


def test_a_long_premise_is_read_in_overlapping_windows_and_the_best_one_counts(folder):
    judge = NliJudge(folder)
    # 16 positions less 3 special tokens and 4 of the claim leave windows of 9 words, each seeing 4 of the one before.
    far = "a b c d e f g h i j k l m leave lasts ninety days n o p q r s t"
    assert asked(judge, "leave lasts ninety days", far).grade == 1
    apart = "leave lasts a b c d e f g h i j k l m ninety days"
    assert asked(judge, "leave lasts ninety days", apart).grade == 0


def test_a_claim_that_fills_the_window_is_too_long_and_no_grade(folder):
    found = asked(NliJudge(folder), " ".join("abcdefghijklmnopqrst"), "a b c")
    assert (found.outcome, found.grade) == (Outcome.TOO_LONG, None)


def test_a_question_about_anything_else_is_refused_never_guessed(folder):
    request = ChatRequest("answer_accuracy.1", [], {"response": "a", "reference": "a"}, (0, 2, 4))
    reply = asyncio.run(NliJudge(folder).reply(request))
    assert (reply.failure, reply.text) == (Outcome.REFUSED, "")
    assert "answer_accuracy.1" in reply.detail


def test_faithfulness_by_the_lesson_s_own_way(folder):
    fields = {"user_input": "How long?", "retrieved_contexts": ["leave lasts ninety days .", "leave is paid ."]}
    scorer = Faithfulness(judge=NliJudge(folder, claims=OverlapJudge()))
    assert scorer.score(response="leave lasts ninety days. leave is paid.", **fields).value == 1.0
    assert scorer.score(response="leave lasts five days. leave is paid.", **fields).value == 0.5


def test_the_judge_key_moves_with_the_model_file(folder, tmp_path):
    identity = NliJudge(folder).identity
    assert identity.revision == hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
    other = write_nli(tmp_path / "small-nli", WORDS, labels=("neutral", "contradiction", "entailment"))
    assert identity.model == NliJudge(other).identity.model == "small-nli"
    keys = {judge_key(NliJudge(one).identity, declare("faithfulness")) for one in (folder, other)}
    assert len(keys) == 2


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "config.json"])
def test_a_missing_file_is_named(folder, tmp_path, file):
    copy = write_nli(tmp_path / "nli", WORDS)
    (copy / file).unlink()
    with pytest.raises(JudgeMisconfigured, match=file.replace(".", r"\.")):
        NliJudge(copy)


def test_a_model_without_an_entailment_label_is_refused(tmp_path):
    nameless = write_nli(tmp_path / "nli", WORDS, labels=("LABEL_0", "LABEL_1", "not_entailment"))
    with pytest.raises(JudgeMisconfigured, match="LABEL_0"):
        NliJudge(nameless)


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_file_that_is_no_model_is_an_error_of_the_judge(tmp_path, file):
    copy = write_nli(tmp_path / "nli", WORDS)
    (copy / file).write_bytes(b"no model")
    with pytest.raises(JudgeMisconfigured, match=file.replace(".", r"\.")):
        asked(NliJudge(copy), "a", "a b")


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_a_missing_package_says_which_extra_to_install(folder, monkeypatch, library):
    whole = builtins.__import__

    def without(name, *arguments, **options):
        if name == library:
            raise ImportError(name)
        return whole(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ExtraMissing, match=r"eval-pipeline\[nli\]"):
        asked(NliJudge(folder), "a", "a b")


def configured(project, metrics):
    path = project / "evaluation.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "  embedded: {provider: embedded}", "  embedded: {provider: embedded}\n  claims: {provider: nli, path: models/nli}"
    )  # fmt: skip
    text = text[: text.index("metrics:\n")] + f"metrics:\n{metrics}\n" + text[text.index("\ncalibration:") :]
    path.write_text(text.replace("    faithfulness: {floor: 0.70}\n", ""), encoding="utf-8")
    write_nli(project / "models" / "nli", WORDS, window=512)
    return Project.find(project, {})


def test_a_run_is_refused_where_the_judge_would_be_asked_what_it_cannot_answer(project):
    with_accuracy = configured(project, "  answer_accuracy: {judge: claims}\n  faithfulness: {judge: claims}")
    with pytest.raises(JudgeMisconfigured, match=r"answer_accuracy asks answer_accuracy\.1"):
        refuse_unanswerable(with_accuracy, "embedded", with_accuracy.metrics())
    with pytest.raises(JudgeMisconfigured, match=r"cannot make the claims.*faithfulness: \{judge: claims\}"):
        refuse_unanswerable(with_accuracy, "claims", with_accuracy.metrics(("faithfulness",)))
    refuse_unanswerable(with_accuracy, "embedded", with_accuracy.metrics(("faithfulness",)))


@pytest.mark.slow
def test_a_run_asks_the_nli_judge_for_its_metric_and_another_for_the_claims(project, run_cli):
    found = configured(project, "  answer_accuracy: {}\n  faithfulness: {judge: claims, gate: false}")
    assert build_judge("claims", found.config.judges["claims"], found).identity.model == "nli"
    shutil.rmtree(project / "datasets" / "helpdesk" / "labels")
    done = run_cli("run", "--limit", "10", "--metric", "faithfulness", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    (row,) = [one for one in json.loads(done.stdout)["summaries"] if one["stratum"] == "all"]
    assert row["scored_count"] + row["no_claims_count"] == 10
    assert row["invalid_count"] == 0
