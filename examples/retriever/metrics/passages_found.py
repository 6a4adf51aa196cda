"""Passages found: share of the reference passages among the retrieved ones. No judge, so there is none to calibrate."""

from collections.abc import Sequence

from eval_pipeline.metrics.declaration import Metric, Sample, Score, Verdict
from eval_pipeline.vocabulary import Language, ScoreStatus


def score(sample: Sample, _: Sequence[Verdict]) -> Score:
    wanted, shown = set(sample.reference_contexts or ()), set(sample.retrieved_contexts or ())
    if not wanted:
        return Score(ScoreStatus.NOT_APPLICABLE)
    share = len(wanted & shown) / len(wanted)
    return Score(ScoreStatus.SCORED, share, share, share)


def declare() -> Metric:
    return Metric(
        name="passages_found",
        version=1,
        summary={Language.EN: "Were the right passages found?", Language.KO: "맞는 문맥을 찾았는가?"},
        needs=("retrieved_contexts", "reference_contexts"),
        questions=lambda _: [],
        score=score,
    )
