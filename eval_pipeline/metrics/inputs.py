"""What happens before any question is asked: one policy for every metric; the first rule that matches wins."""

from __future__ import annotations

from eval_pipeline.metrics.declaration import Metric, Sample, Score
from eval_pipeline.vocabulary import NoClaimsPolicy, NoResponsePolicy, Outcome, PartSource, ScoreStatus


def screen(
    metric: Metric,
    sample: Sample,
    no_response: NoResponsePolicy = NoResponsePolicy.ZERO,
    no_claims: NoClaimsPolicy = NoClaimsPolicy.EXCLUDE,
) -> Score | None:
    """The score that the inputs alone settle, or null when the judge must be asked."""
    if sample.is_failed and {"response", "retrieved_contexts"} & set(metric.needs):
        value = 0.0 if no_response == NoResponsePolicy.ZERO else None
        return Score(ScoreStatus.NO_RESPONSE, value, value, value, reason="no_response")
    if any(_is_absent(sample, name) for name in metric.needs):
        return Score(ScoreStatus.NOT_APPLICABLE)
    if "response" in metric.needs and not (sample.response or "").strip():
        return _zero("empty_response")
    if "retrieved_contexts" in metric.needs:
        contexts = sample.retrieved_contexts or ()
        if not any(context.strip() for context in contexts):
            return _zero("empty_contexts")
        if "user_input" in metric.needs and metric.name == "context_relevance":
            if "\n".join(contexts).strip() == (sample.user_input or "").strip():
                return _zero("context_is_question")
    return _without_claims(metric, sample, no_claims)


def _is_absent(sample: Sample, name: str) -> bool:
    """No field, or a blank question or reference: nothing to judge by. A blank response is the system's own doing."""
    value = getattr(sample, name)
    return value is None or (name in {"user_input", "reference"} and not value.strip())


def _zero(reason: str) -> Score:
    return Score(ScoreStatus.SCORED, 0.0, 0.0, 0.0, reason=reason)


def _without_claims(metric: Metric, sample: Sample, no_claims: NoClaimsPolicy) -> Score | None:
    """Settles a sample whose needed text was decomposed and holds no claims, or whose decomposition failed."""
    for source in metric.decomposes:
        outcome = sample.claim_outcomes.get(source)
        if outcome is None:
            continue
        if outcome not in {Outcome.GRADED, Outcome.NOT_ASKED}:
            return Score(ScoreStatus.INVALID, lower=0.0, upper=1.0, reason="not_decomposed", outcomes=(outcome,))
        if outcome == Outcome.GRADED and not sample.claims.get(source) and source == _judged(metric):
            value = {NoClaimsPolicy.EXCLUDE: None, NoClaimsPolicy.ZERO: 0.0, NoClaimsPolicy.ONE: 1.0}[no_claims]
            return Score(ScoreStatus.NO_CLAIMS, reason="no_claims") if value is None else Score(
                ScoreStatus.SCORED, value, value, value, reason="no_claims"
            )  # fmt: skip
    return None


def _judged(metric: Metric) -> PartSource:
    """The text whose lack of claims leaves nothing to judge: the response, unless only the reference is decomposed."""
    return PartSource.RESPONSE if PartSource.RESPONSE in metric.decomposes else metric.decomposes[0]
