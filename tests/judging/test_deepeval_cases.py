"""What became of each recorded reply of a single-grade judge: its outcome, how often it was asked for, what is stored.

Their values are in `tests/metrics/test_recorded_cases.py`.
"""

import json
import os
from pathlib import Path

import pytest

from eval_pipeline.api import GEval
from eval_pipeline.llm.scripted_chat import ScriptedChat
from eval_pipeline.vocabulary import Outcome, ScoreStatus

FOLDER = Path(os.environ.get("EVAL_CASES_DIR", Path(__file__).parents[3] / "shared" / "cases"))
PATH = FOLDER / "deepeval_cases.json"
CASES = json.loads(PATH.read_text(encoding="utf-8"))["cases"] if PATH.is_file() else []
pytestmark = [
    pytest.mark.cases,
    pytest.mark.skipif(not CASES, reason=f"{PATH} is absent; EVAL_CASES_DIR names its folder"),
]
# Outcome of a row's reply where it is not simply graded.
LOST = {
    "geval-05-rubric-1-5-below": Outcome.OFF_SCALE,
    "geval-08-strict-float": Outcome.OFF_SCALE,
    "geval-10-over-range": Outcome.OFF_SCALE,
    "geval-11-negative": Outcome.OFF_SCALE,
    "geval-14-nan-score": Outcome.OFF_SCALE,
    "geval-18-two-objects": Outcome.UNPARSEABLE,
    "geval-19-truncated": Outcome.UNPARSEABLE,
}


def rows():
    """G-Eval rows with a usable scale; the one-point rubric is refused at construction."""
    return [row for row in CASES if row["metric"] == "GEval" and row["id"] != "geval-22-one-point-rubric"]


def scored(row, *replies):
    """The row's last reply, after `replies`, from a judge asked on the row's own scale."""
    last = row["judge_outputs"][-1]
    said = [*replies, last["content"] if isinstance(last, dict) else last]
    rubric = sorted({edge for band in row["params"].get("rubric", []) for edge in band["score_range"]})
    scale = [0, 1] if row["params"].get("strict_mode") else rubric or list(range(11))
    chat = ScriptedChat(lambda request: said[min(request.attempt, len(said) - 1)])
    fields = {"user_input": row["inputs"]["input"], "response": row["inputs"]["actual_output"]}
    return GEval(judge=chat, scale=scale, method="single").score(**fields), chat


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_an_unusable_reply_is_asked_for_three_times_and_named(row):
    found, chat = scored(row)
    outcome = LOST.get(row["id"], Outcome.GRADED)
    is_lost = outcome != Outcome.GRADED
    assert found.verdicts[0].outcomes == (outcome,) * (3 if is_lost else 1)
    assert len(chat.requests) == len(found.verdicts[0].replies) == (3 if is_lost else 1)
    assert found.status == (ScoreStatus.INVALID if is_lost else ScoreStatus.SCORED)
    assert found.score.outcomes == ((outcome,) if is_lost else ())
    if is_lost:
        assert (found.value, found.lower, found.upper) == (None, 0.0, 1.0)
    else:
        assert 0 <= found.value <= 1


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
@pytest.mark.parametrize("first", ["", "no idea", '{"score": 99}'])
def test_a_lost_reply_before_it_changes_nothing_but_the_attempts(row, first):
    alone, _ = scored(row)
    after, chat = scored(row, first)
    assert (after.value, after.status) == (alone.value, alone.status)
    assert len(chat.requests) == (3 if row["id"] in LOST else 2)
    assert [request.attempt for request in chat.requests] == list(range(len(chat.requests)))


def test_every_named_row_is_there():
    assert set(LOST) <= {row["id"] for row in rows()}
