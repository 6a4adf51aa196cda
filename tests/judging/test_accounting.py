"""Whatever part of the judge's replies breaks, every item is accounted for, and nothing unusable becomes a number."""

import asyncio
import random

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.asking import Asker
from eval_pipeline.chat import ChatReply
from eval_pipeline.errors import BudgetReached
from eval_pipeline.llm.scripted_chat import ScriptedChat
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.declaration import Sample
from eval_pipeline.stages import aggregation, decomposition, judging, scoring
from eval_pipeline.stages.sampling import CLAIMS_METRIC, with_claims
from eval_pipeline.tables import GOLDEN_ITEMS, VERDICTS
from eval_pipeline.verdict_rows import Origin
from eval_pipeline.vocabulary import Language, Outcome

NAMES = ("answer_accuracy", "context_relevance", "response_groundedness", "faithfulness")
BROKEN = ["", "no idea", '{"grade": 3}', '{"grade": 9}', "1 or 2", '{"grade": NaN}', Outcome.REFUSED, Outcome.TRUNCATED,
          Outcome.TIMEOUT, Outcome.PROVIDER_ERROR, "stop"]  # fmt: skip


def samples():
    """Twelve items: plain, failed, without contexts, blank, without reference, in two strata."""
    plain = Sample(
        user_input="How many days?",
        response="There are 90 days.",
        reference="90 days.",
        retrieved_contexts=("Leave is 90 days.",),
    )
    kinds = [
        {},
        {"is_failed": True, "response": None},
        {"retrieved_contexts": ()},
        {"response": "  "},
        {"reference": None},
        {"retrieved_contexts": None},
    ]
    return [
        Sample(
            **{f: getattr(plain, f) for f in ("user_input", "response", "reference", "retrieved_contexts")}
            | kinds[n % 6]
            | {"item_id": f"i{n}"}
        )
        for n in range(12)
    ]


def items(whole):
    return GOLDEN_ITEMS.frame(
        {
            "dataset": "d",
            "dataset_version": "v",
            "item_id": s.item_id,
            "user_input": "q",
            "stratum": "ab"[n % 2],
            "language": "en",
            "content_sha256": s.item_id,
        }
        for n, s in enumerate(whole)
    )


def evaluate(answer):
    """All four metrics over the samples with a scripted judge; scores and summaries."""
    whole = samples()
    metrics = {name: declare(name) for name in NAMES}
    origins = {name: Origin("e", name, "j", "m", "k") for name in (*NAMES, CLAIMS_METRIC)}

    async def run():
        asker = Asker(ScriptedChat(answer))
        claims, own = await decomposition.decompose(
            whole, decomposition.sources(list(metrics.values())), asker, origins[CLAIMS_METRIC]
        )
        claimed = with_claims(whole, claims, own)
        parts = [part async for part in judging.judge(claimed, metrics, dict.fromkeys(NAMES, asker), origins)]
        return claimed, pl.concat([VERDICTS.frame(), own, *parts])

    claimed, verdicts = asyncio.run(run())
    scores = scoring.score(claimed, items(whole), verdicts, metrics, {}, dict.fromkeys(NAMES, "k"), "e")
    return scores, aggregation.summarise(scores, evaluation_id="e"), verdicts


def reply(request, word):
    if word == "stop":
        raise BudgetReached(limit="max_calls 1", spent="1 call")
    if isinstance(word, Outcome):
        return ChatReply("", word)
    if word is not None:
        return word
    return (
        '{"claims": ["There are 90 days.", "Leave exists."]}'
        if request.template_id == "claims"
        else f'{{"grade": {request.grades[-1]}}}'
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 1), st.lists(st.sampled_from(BROKEN), min_size=1, max_size=4))
def test_the_identity_holds_whichever_replies_break(seed, share, words):
    draw = random.Random(seed)
    scores, summaries, _ = evaluate(
        lambda request: reply(request, draw.choice(words) if draw.random() < share else None)
    )
    assert aggregation.accounting_violations(summaries) == []
    assert scores.height == 12 * len(NAMES)
    assert set(summaries["stratum"]) == {"all", "a", "b"}
    unscored = scores.filter(pl.col("status").is_in(["invalid", "not_asked", "not_applicable", "no_claims"]))
    assert unscored["value"].null_count() == unscored.height
    known = scores.drop_nulls(["value", "lower", "upper"])
    assert ((known["lower"] <= known["value"] + 1e-12) & (known["value"] <= known["upper"] + 1e-12)).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_losing_replies_never_raises_a_lower_bound(seed):
    draw = random.Random(seed)
    _, whole, _ = evaluate(lambda request: reply(request, None))
    _, broken, _ = evaluate(
        lambda request: reply(request, draw.choice(["", Outcome.REFUSED]) if draw.random() < 0.3 else None)
    )
    both = whole.join(broken, on=["metric", "stratum"]).drop_nulls(["mean_lower_bound", "mean_lower_bound_right"])
    # A reply that loses claims changes what is asked, so faithfulness is not comparable question by question.
    dual = both.filter(pl.col("metric") != "faithfulness")
    assert (dual["mean_lower_bound_right"] <= dual["mean_lower_bound"] + 1e-12).all()


def test_a_judge_that_never_answers_scores_nothing_but_what_the_inputs_settle():
    scores, _, _ = evaluate(lambda request: "no idea")
    judged = scores.filter(pl.col("reason").is_null())
    assert judged["value"].null_count() == judged.height
    assert set(scores.drop_nulls("value")["value"]) == {0.0}


def test_an_unusable_reply_is_asked_again_and_told_what_was_wrong():
    def answer(request):
        if request.template_id == "answer_accuracy.1" and request.attempt == 0:
            return '{"grade": 3}'
        return reply(request, None)

    judge = ScriptedChat(answer)
    metric = declare("answer_accuracy")
    asked = asyncio.run(Asker(judge).ask(metric.questions(samples()[0])[0], Language.EN))
    assert [str(outcome) for outcome in asked.outcomes] == ["off_scale", "graded"]
    assert "0, 2, 4" in judge.requests[1].messages[-1]["content"]


def test_the_attempts_are_bounded_and_a_refusal_is_not_asked_again():
    judge = ScriptedChat(lambda request: "no idea")
    question = declare("answer_accuracy").questions(samples()[0])[0]
    asyncio.run(Asker(judge, attempts=3).ask(question, Language.EN))
    assert len(judge.requests) == 3
    refusing = ScriptedChat(lambda request: ChatReply("", Outcome.REFUSED))
    asyncio.run(Asker(refusing, attempts=3).ask(question, Language.EN))
    assert len(refusing.requests) == 1


def test_either_order_of_one_lost_judge_gives_the_same_score():
    def losing(side):
        return lambda request: reply(request, "" if request.template_id.endswith(side) else None)

    first, second = (evaluate(losing(side))[0].filter(pl.col("status") == "scored_single") for side in (".1", ".2"))
    shown = ["metric", "item_id", "value", "lower", "upper"]
    assert first.height > 0
    assert first.select(shown).equals(second.select(shown))
    dual = first.filter(pl.col("metric") != "faithfulness")
    assert set(dual["lost_side"]) == {1}
