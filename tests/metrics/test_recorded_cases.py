"""Rows recorded from two other libraries: the same judge replies, and what should come of them.

`recommended` of a row is what to do where the library is wrong. Where this product does otherwise, `OTHERWISE` says why.
The rows' wire formats differ from ours (one reply about all claims), so a script answers each of our questions with what
the row's judge said of that claim or context; what it did not say is an unreadable reply.
"""

import json
import math
import os
import re
from pathlib import Path

import pytest

from eval_pipeline import api
from eval_pipeline.chat import ChatReply, ModelIdentity, TokenAlternatives
from eval_pipeline.llm.scripted_chat import ScriptedChat
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.combination import dual
from eval_pipeline.metrics.declaration import Sample, Verdict
from eval_pipeline.replies import parse_grade
from eval_pipeline.vocabulary import Outcome, ScoreStatus

FOLDER = Path(os.environ.get("EVAL_CASES_DIR", Path(__file__).parents[3] / "shared" / "cases"))
RAGAS, DEEPEVAL = FOLDER / "ragas_cases.json", FOLDER / "deepeval_cases.json"
pytestmark = [
    pytest.mark.cases,
    pytest.mark.skipif(
        not (RAGAS.is_file() and DEEPEVAL.is_file()), reason=f"{FOLDER} is absent; EVAL_CASES_DIR names it"
    ),
]
SCORERS = {cls.metric_name: cls for cls in api.Scorer.__subclasses__()}
UNREADABLE = "no verdict"

OTHERWISE = {
    "cr_col_context_inside_question": (1.0, "only a context equal to the question is known to be useless unasked"),
    "ac_leg_all_lists_empty": (None, "claims that nobody judged are not false claims"),
    "ac_col_response_without_statements": (
        None,
        "without claims there is no share of them; no_claims: zero makes it 0",
    ),
    "geval-08-strict-float": (None, "0.9 on a scale of 0 and 1 is not rounded"),
    "geval-25-logprob-nondecimal": (0.8294117647058824, "both spellings of 9 count: (8*.5 + 9*.3 + 7*.05) / .85 / 10"),
    "geval-33-logprob-bad-json": (0.8, "a labelled number and nothing else is a grade"),
    "faith-01-mixed": (None, "a claim is supported or not; borderline is no grade"),
    "faith-02-penalize": (None, "a claim is supported or not; borderline is no grade"),
    "faith-11-idk": (None, "a claim is supported or not; idk is no grade"),
    "faith-07-more-verdicts": (1.0, "each claim has its own question, so there is no verdict beyond the claims"),
    "bias-02-none": (None, "bias is one grade of the whole response here, not a share of opinions"),
}
ANOTHER_FORMULA = {
    "crel-01": "share of statements; relevance is graded over all contexts as one block here",
    "hall-01": "share of contexts; one grade of the whole response here",
    "bias-01": "share of opinions; one grade of the whole response here",
    "task-01": "a free number of the judge's own; a declared scale here",
    "task-04-string": "a free number of the judge's own; a declared scale here",
}
# What a recommendation in words comes to. With one judge lost the other's grade counts.
IN_WORDS = {
    "aa_col_two_json_objects": 0.5, "aa_col_http_500_always": 0.5, "aa_leg_year_in_prose": 1.0, "aa_leg_40": 1.0,
    "aa_leg_j2_raises": 1.0, "cr_leg_10": 0.5, "cr_leg_minus_1": 0.5, "rg_leg_substring_No_in_November": 0.0,
    "rg_leg_single_letter": 0.0, "faith_extra_verdicts": 1.0, "task-05-empty-output": 0.0,
}  # fmt: skip


def rows(path, key):
    return json.loads(path.read_text(encoding="utf-8"))[key] if path.is_file() else []


def wanted(row, theirs):
    if row["id"] in OTHERWISE:
        return OTHERWISE[row["id"]][0]
    if row["id"] in IN_WORDS:
        return IN_WORDS[row["id"]]
    advice = row["recommended"]
    if advice is None or advice == "same as deepeval":
        return theirs
    if isinstance(advice, str):
        number = re.match(r"[0-9]+\.[0-9]+", advice)
        return float(number[0]) if number else None
    return advice


def reply(output):
    """A recorded output as a reply: text, text with its finish reason, HTTP status, exception, or text with tokens."""
    if isinstance(output, dict):
        tokens = [
            TokenAlternatives(token, tuple((one, math.log(p)) for one, p in likely.items()))
            for token, likely in output["tokens"]
        ]
        return ChatReply(output["content"], logprobs=tuple(tokens))
    if isinstance(output, list):
        return ChatReply("", failure=Outcome.TRUNCATED)
    if isinstance(output, int) or output == "__RAISE__":
        return ChatReply("", failure=Outcome.PROVIDER_ERROR)
    return output


def in_order(outputs):
    """Attempts in order, the last repeated; a 429 is the transport's to repeat and never seen here."""
    seen = [one for one in outputs if one != 429]
    return lambda request: reply(seen[min(request.attempt, len(seen) - 1)])


def graded(value):
    return UNREADABLE if value is None else json.dumps({"grade": value})


def by_claim(claims, verdicts):
    """A judge that decomposes as told and grades each claim as told; a text alone means the same of every claim."""

    def answer(request):
        if request.template_id == "claims":
            given = claims[request.inputs["text"]]
            return given if isinstance(given, str) else json.dumps({"claims": given})
        if isinstance(verdicts, str):
            return verdicts
        return graded(verdicts.get(request.inputs["claim"]))

    return ScriptedChat(answer)


def named(verdicts, prefix):
    """Claims with a name each, in order, and what was said of each."""
    return {f"{prefix}{index}": verdict for index, verdict in enumerate(verdicts)}


class Table:
    """Embeddings looked up."""

    identity = ModelIdentity("table", "table")

    def __init__(self, vectors):
        self._vectors = vectors

    async def embed(self, texts):
        return [self._vectors[text] for text in texts]


def of_claims(row):
    inputs, abstract, outputs = row["inputs"], row["abstract"], row["judge_outputs"]
    if row["metric"] == "faithfulness":
        if abstract is None:
            made = json.loads(outputs[0])["statements"] if outputs[0].startswith("{") else outputs[0]
            return by_claim({inputs["response"]: made}, outputs[-1])
        said = dict(zip(abstract["claims"], abstract["verdicts"] or (), strict=False))
        return by_claim({inputs["response"]: abstract["claims"]}, said)
    if row["metric"] == "context_recall":
        said = named((abstract or {"attributed": [1, 1]})["attributed"], "g")
        return by_claim({inputs["reference"]: list(said)}, said)
    if row["metric"] == "factual_correctness":
        mine, theirs = (
            named(abstract[f"{side}_claims_supported"], side[:3] + "p") for side in ("response", "reference")
        )
    elif abstract is not None:
        mine = named([1] * abstract["tp"] + [0] * abstract["fp"], "r")
        theirs = named([1] * abstract["tp"] + [0] * abstract["fn"], "g")
    else:
        made = [json.loads(text)["statements"] for text in outputs[:2]]
        return by_claim(dict(zip((inputs["response"], inputs["reference"]), made, strict=True)), {})
    return by_claim({inputs["response"]: list(mine), inputs["reference"]: list(theirs)}, mine | theirs)


def ragas_judge(row):
    if "judge1_outputs" in row:
        one, two = in_order(row["judge1_outputs"]), in_order(row["judge2_outputs"])
        return ScriptedChat(lambda request: (one if request.template_id.endswith(".1") else two)(request))
    if row["metric"] == "answer_relevancy":
        asked, flags = (list(row["abstract"][name]) for name in ("questions", "noncommittal"))
        said = [json.dumps({"question": q, "is_noncommittal": bool(f)}) for q, f in zip(asked, flags, strict=True)]
        return ScriptedChat(lambda request: said[min(request.sample, len(said) - 1)])
    if row["metric"] == "context_precision":
        contexts = row["inputs"]["retrieved_contexts"]
        return ScriptedChat(
            lambda request: graded(row["abstract"]["verdicts"][contexts.index(request.inputs["context"])])
        )
    if row["metric"] == "rubric_score":
        return ScriptedChat(in_order(row["judge_outputs"]))
    return of_claims(row)


@pytest.mark.parametrize("row", rows(RAGAS, "metric_cases"), ids=lambda row: row["id"])
def test_a_row_of_ragas(row):
    fields = {name: row["inputs"].get(name, "?" if name == "user_input" else None) for name in
              ("user_input", "response", "reference", "retrieved_contexts")}  # fmt: skip
    if row["metric"] == "context_precision":
        fields["retrieved_contexts"] = [f"context {n}" for n in range(len(row["abstract"]["verdicts"]))]
        row["inputs"]["retrieved_contexts"] = fields["retrieved_contexts"]
    options = {name: value for name, value in row["params"].items() if name in {"weights", "beta", "mode"}}
    embedding = Table(row["embeddings"]) if row.get("embeddings") else None
    scorer = SCORERS[row["metric"]](judge=ragas_judge(row), embedding=embedding, **options)
    if isinstance(fields["retrieved_contexts"], str):
        with pytest.raises(TypeError, match="list of strings"):
            scorer.score(**fields)
        return
    found = scorer.score(**fields)
    expected = wanted(row, row["expected_ragas"]["score"])
    if row["metric"] == "rubric_score":
        expected = (expected - 1) / 4  # scale 1 to 5
    assert found.value == (None if expected is None else pytest.approx(expected, abs=1e-12))
    if "no_claims" in str(row["recommended"]):
        assert found.status == ScoreStatus.NO_CLAIMS
    if "500" in row["id"] or "raises" in row["id"]:
        assert Outcome.PROVIDER_ERROR in found.score.outcomes


def deepeval_scorer(row):
    """The scorer, its judge and options that stand for a row."""
    outputs, inputs = row["judge_outputs"], row["inputs"]
    loaded = [json.loads(one) if isinstance(one, str) and one.endswith("}") and '"score"' not in one else {} for one in outputs]  # fmt: skip
    said = next((one["verdicts"] for one in loaded if "verdicts" in one), [])
    words = [_verdict_of(one["verdict"]) for one in said]
    if row["metric"] == "GEval":
        scale = sorted({edge for band in row["params"].get("rubric", []) for edge in band["score_range"]})
        strict = row["params"].get("strict_mode")
        has_tokens = isinstance(outputs[-1], dict) and not strict
        scale = [0, 1] if strict else scale or list(range(11))
        return (
            "g_eval",
            in_order(outputs[-1:]),
            {"scale": scale, "method": "log_probability" if has_tokens else "single"},
        )
    if row["metric"] == "FaithfulnessMetric":
        claims = next((one["claims"] for one in loaded if "claims" in one), outputs[-1])
        known = dict(zip(claims, words, strict=False)) if isinstance(claims, list) else {}
        return "faithfulness", by_claim({inputs["actual_output"]: claims}, known)._answer, {}
    if row["metric"] == "ContextualPrecisionMetric":
        known = dict(zip(inputs["retrieval_context"], words, strict=False))
        return "context_precision", lambda request: graded(known.get(request.inputs["context"])), {}
    if row["metric"] == "ContextualRecallMetric":
        return "context_recall", by_claim({inputs["expected_output"]: ["c"]}, {})._answer, {}
    if row["metric"] == "AnswerRelevancyMetric":
        return "answer_relevancy", in_order(outputs[:1]), {}
    preset = {"HallucinationMetric": "hallucination", "BiasMetric": "bias", "TaskCompletionMetric": "task_completion"}
    value = loaded[1].get("verdict", UNREADABLE) if len(loaded) > 1 else UNREADABLE
    return "g_eval", lambda _: graded(value), {"preset": preset[row["metric"]]}


def _verdict_of(word):
    """`Yes.` and `No, the year is wrong` as grades; anything else as it stands."""
    first = re.match(r"(yes|no)\b(?!/)", word, re.IGNORECASE) if isinstance(word, str) else None
    return int(first[1].lower() == "yes") if first else word


@pytest.mark.parametrize("row", rows(DEEPEVAL, "cases"), ids=lambda row: row["id"])
def test_a_row_of_deepeval(row):
    if row["id"] in ANOTHER_FORMULA:
        pytest.skip(ANOTHER_FORMULA[row["id"]])
    name, answer, options = deepeval_scorer(row)
    if "at construction" in str(row["recommended"]):
        with pytest.raises(TypeError, match="two grades"):
            declare(name, options)
        return
    inputs = row["inputs"]
    found = SCORERS[name](judge=ScriptedChat(answer), **options).score(
        user_input=inputs["input"], response=inputs["actual_output"], reference=inputs.get("expected_output"),
        retrieved_contexts=inputs.get("retrieval_context"),
    )  # fmt: skip
    expected = wanted(row, row["deepeval_score"])
    assert found.value == (
        None if expected is None else pytest.approx(expected, abs=1e-3 if expected == 0.833 else 1e-9)
    )


# Their scan for digits read 3 and 5 as grades, 10 and 2021 as 0; ours reads (of 0/2/4, of 0/1/2), null for none.
PLAIN_REPLIES = {
    "2": (2, 2), "0": (0, 0), "3": (None, None), "1": (None, 1), "5": (None, None), "4점": (4, None), "four": (None, None),
    '{"rating": 4}': (4, None), "2 (out of 2)": (None, 2), "10": (None, None), "2021": (None, None), "1/2": (None, 1),
}  # fmt: skip


@pytest.mark.parametrize("row", rows(RAGAS, "legacy_grade_parsing"), ids=lambda row: row["text"])
def test_a_plain_reply_is_read_whole(row):
    grades = tuple(parse_grade(row["text"], scale).grade for scale in ((0, 2, 4), (0, 1, 2)))
    assert grades == PLAIN_REPLIES[row["text"]]


@pytest.mark.parametrize("row", rows(RAGAS, "judge_averaging"), ids=str)
def test_two_judges_are_averaged(row):
    metric = declare("answer_accuracy")
    verdicts = [
        Verdict(question, Outcome.GRADED if value is not None else Outcome.REFUSED, value=value)
        for question, value in zip(metric.questions(Sample()), (row["judge1"], row["judge2"]), strict=True)
    ]
    assert dual(verdicts, metric.template_ids).value == row["collections"]


def test_every_named_row_is_there():
    known = {row["id"] for row in rows(RAGAS, "metric_cases") + rows(DEEPEVAL, "cases")}
    assert {*OTHERWISE, *ANOTHER_FORMULA, *IN_WORDS} <= known
