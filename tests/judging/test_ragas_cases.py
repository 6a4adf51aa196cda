"""What recorded judge replies cost and leave behind: attempts, the lost side, JSON in replies, means and calibration.

Their values are in `tests/metrics/test_recorded_cases.py`.
"""

import json
import os
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from eval_pipeline import api
from eval_pipeline.chat import ChatReply
from eval_pipeline.llm.scripted_chat import ScriptedChat
from eval_pipeline.metrics import declare
from eval_pipeline.replies import CODE_FIELDS, parse_grade
from eval_pipeline.stages.aggregation import summarise
from eval_pipeline.stages.calibration.pairs import calibrate_pairs
from eval_pipeline.tables import SCORES
from eval_pipeline.vocabulary import Outcome, ScoreStatus

FOLDER = Path(os.environ.get("EVAL_CASES_DIR", Path(__file__).parents[3] / "shared" / "cases"))
PATH = FOLDER / "ragas_cases.json"
CASES = json.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {}
pytestmark = [
    pytest.mark.cases,
    pytest.mark.skipif(not CASES, reason=f"{PATH} is absent; EVAL_CASES_DIR names its folder"),
]
SCORERS = {cls.metric_name: cls for cls in api.Scorer.__subclasses__()}
ATTEMPTS = 3
NO_CALL = {
    "aa_leg_empty_response": "a blank response is 0 unasked",
    "cr_col_context_equals_question": "a context that is the question is worth 0 unasked",
    "cr_col_blank_contexts": "blank contexts are worth 0 unasked",
    "cr_col_context_is_str": "one string is no list of contexts",
    "rg_col_blank_response": "a blank response is 0 unasked",
    "rg_col_empty_response": "a blank response is 0 unasked",
    "rg_col_blank_context": "blank contexts are worth 0 unasked",
    "aa_col_empty_reference": "a blank reference is an absent one",
}
# Attempts where they differ from: 3 for an unusable reply, 1 for anything else.
EXCEPTIONS = {
    "aa_col_invalid_then_valid": ((2, 1), "the second reply is usable"),
    "aa_col_http_429_then_ok": ((1, 1), "a 429 is the transport's to repeat, no attempt of the question"),
}


def dual_rows():
    return [row for row in CASES.get("metric_cases", []) if row["group"] == "dual_judge"]


def reply(output):
    if isinstance(output, list):
        return ChatReply("", failure=Outcome.TRUNCATED)
    if isinstance(output, int) or output == "__RAISE__":
        return ChatReply("", failure=Outcome.PROVIDER_ERROR)
    return output


def judge(row):
    """Answers by template and attempt, the last output repeated; transport errors that pass are the transport's."""
    outputs = {f".{n}": [one for one in row[f"judge{n}_outputs"] if one != 429] for n in (1, 2)}

    def answer(request):
        said = outputs[request.template_id[-2:]]
        return reply(said[min(request.attempt, len(said) - 1)])

    return ScriptedChat(answer)


def attempts_due(row, number):
    """Three where the first reply is text without an allowed grade; a cut reply or an error is not asked for again."""
    first = reply(row[f"judge{number}_outputs"][0])
    if not isinstance(first, str):
        return 1
    # A dual metric asks for a grade code: a field named `score` is none.
    return ATTEMPTS if parse_grade(first, declare(row["metric"]).label_scale, CODE_FIELDS).grade is None else 1


@pytest.mark.parametrize("row", dual_rows(), ids=lambda row: row["id"])
def test_each_side_is_asked_as_often_as_its_replies_deserve(row):
    chat = judge(row)
    scorer = SCORERS[row["metric"]](judge=chat, attempts=ATTEMPTS)
    if isinstance(row["inputs"].get("retrieved_contexts"), str):
        with pytest.raises(TypeError, match="list of strings"):
            scorer.score(**row["inputs"])
        found = None
    else:
        found = scorer.score(**row["inputs"])
    asked = Counter(request.template_id[-1] for request in chat.requests)
    if row["id"] in NO_CALL:
        assert not asked, NO_CALL[row["id"]]
        return
    due = EXCEPTIONS[row["id"]][0] if row["id"] in EXCEPTIONS else (attempts_due(row, 1), attempts_due(row, 2))
    assert (asked["1"], asked["2"]) == due
    assert len(found.verdicts) == 2
    assert sum(len(one.replies) for one in found.verdicts) == sum(due)


@pytest.mark.parametrize("row", dual_rows(), ids=lambda row: row["id"])
def test_what_was_lost_shows_in_status_bounds_and_outcomes(row):
    if row["id"] in NO_CALL:
        pytest.skip(NO_CALL[row["id"]])
    found = SCORERS[row["metric"]](judge=judge(row)).score(**row["inputs"])
    lost = [one.verdict.outcome for one in found.verdicts if one.verdict.outcome != Outcome.GRADED]
    status = (ScoreStatus.SCORED_BOTH, ScoreStatus.SCORED_SINGLE, ScoreStatus.INVALID)[len(lost)]
    bounds = {
        ScoreStatus.SCORED_BOTH: (found.value, found.value),
        ScoreStatus.SCORED_SINGLE: ((found.value or 0) / 2, ((found.value or 0) + 1) / 2),
        ScoreStatus.INVALID: (0.0, 1.0),
    }[status]
    assert (found.status, (found.lower, found.upper)) == (status, bounds)
    assert found.score.outcomes == tuple(dict.fromkeys(lost))
    assert (found.value is None) == (len(lost) == 2)


# Their extractor takes the first bracketed thing. Here a reply is one object, bare or fenced, and no more.
READ_WHOLE = {'{"key": "value"}', '```json\n{"a":1}\n```'}


@pytest.mark.parametrize("row", CASES.get("json_extraction_cases", []), ids=lambda row: row["text"])
def test_json_is_read_whole_or_not_at_all(row):
    text = row["text"]
    for name in ("key", "a", "inner"):
        text = text.replace(f'"{name}"', '"grade"')
    text = text.replace('"value"', "1")
    found = parse_grade(text, (0, 1, 2))
    assert found.grade == (1 if row["text"] in READ_WHOLE else None)
    assert found.outcome == (Outcome.GRADED if row["text"] in READ_WHOLE else Outcome.UNPARSEABLE)


@pytest.mark.parametrize("row", CASES.get("aggregate_cases", []), ids=lambda row: str(row["ragas_headline"]))
def test_a_mean_comes_with_what_it_does_not_cover(row):
    values, due = row["scores_null_is_nan"], row["recommended"]
    scored = [value is not None for value in values]
    of_all = SCORES.frame(
        {
            "evaluation_id": "e", "metric": "answer_accuracy", "item_id": f"i{n}", "cluster_id": None, "stratum": "s",
            "status": (ScoreStatus.SCORED if is_scored else ScoreStatus.INVALID).value, "value": value,
            "lower": value if is_scored else 0.0, "upper": value if is_scored else 1.0, "components": "{}",
            "outcomes": [], "content_sha256": "0",
        }
        for n, (value, is_scored) in enumerate(zip(values, scored, strict=True))
    )  # fmt: skip
    summary = summarise(of_all, evaluation_id="e").filter(pl.col("stratum") == "all").row(0, named=True)
    assert summary["mean"] == pytest.approx(due["mean"])
    assert (summary["item_count"], summary["scored_count"]) == (len(values), sum(scored))
    assert summary["invalid_count"] == len(values) - sum(scored)
    if "bottom_10pct_mean" in due:
        assert summary["cvar10"] == pytest.approx(due["bottom_10pct_mean"])


@pytest.mark.parametrize("row", CASES.get("calibration_cases", []), ids=lambda row: f"{row['gold']}-{row['pred']}")
def test_a_pair_with_a_gap_is_dropped_as_a_pair(row):
    result = calibrate_pairs(row["gold"], row["pred"]).result
    due = row["recommended"]
    assert result.pair_count == due.get("n_pairs", len(row["gold"]))
    assert result.dropped_count == due.get("n_dropped", 0)
    assert result.decision != "pass"
    rho = result.spearman_rho.value
    assert rho is None if due["spearman"] is None else rho == pytest.approx(due["spearman"])


def test_every_named_row_is_there():
    assert {*NO_CALL, *EXCEPTIONS} <= {row["id"] for row in dual_rows()}
