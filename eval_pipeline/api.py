"""One scorer class per metric: `await AnswerAccuracy(judge=...).ascore(user_input=..., response=..., reference=...)`.

The same questions, parser and scores as the pipeline's; no warehouse and, unless the judge has one, no ledger.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from eval_pipeline.asking import Asked, Asker
from eval_pipeline.chat import ChatModel, EmbeddingModel
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score
from eval_pipeline.metrics.inputs import screen
from eval_pipeline.stages import decomposition, scoring
from eval_pipeline.stages.versioning import detect_language
from eval_pipeline.vocabulary import Language, Outcome, PartSource, ScoreStatus

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MetricResult:
    """What a scorer returns.

    Attributes:
        value: in [0, 1], or null: unknown, never zero.
        status: why there is a value or none.
        lower, upper: the value if every missing grade were the worst / the best.
        score: the whole score, raw grades and components included.
        verdicts: every question asked, with raw replies.
    """

    value: float | None
    status: ScoreStatus
    lower: float | None
    upper: float | None
    score: Score
    verdicts: tuple[Asked, ...]

    @property
    def reason(self) -> str | None:
        """Why, in a word, where the status alone does not say."""
        return self.score.reason


class Scorer:
    """One metric with its judge. Subclasses name the metric; keyword options are those of the metric's file.

    Args:
        judge: any `ChatModel`; not needed by metrics without questions.
        embedding: for metrics that compare texts by similarity; default the embedded n-gram model.
        language: language of the prompts; null detects it from the texts.
        attempts: replies per question in all, unusable ones included.
    """

    metric_name: ClassVar[str]

    def __init__(
        self,
        judge: ChatModel | None = None,
        *,
        embedding: EmbeddingModel | None = None,
        language: Language | None = None,
        attempts: int = 3,
        **options: Any,
    ) -> None:
        self.metric: Metric = declare(self.metric_name, options)
        if judge is None and self.metric.template_ids:
            raise TypeError(f"{type(self).__name__} needs a judge")
        if judge is not None and not isinstance(judge, ChatModel):
            raise TypeError(f"judge must be a ChatModel such as OpenAIChat, not {type(judge).__name__}")
        self.judge = judge
        self.embedding = embedding
        self.language = language
        self.attempts = attempts

    async def ascore(
        self,
        *,
        user_input: str | None = None,
        response: str | None = None,
        reference: str | None = None,
        retrieved_contexts: Sequence[str] | None = None,
        reference_contexts: Sequence[str] | None = None,
        rival_response: str | None = None,
        item_id: str = "",
    ) -> MetricResult:
        """Scores one response. Field names are those of ragas.

        Raises:
            TypeError: contexts given as one string instead of a list.
            Stopped: the provider ended it (bad key, quota).
        """
        for name, contexts in (("retrieved_contexts", retrieved_contexts), ("reference_contexts", reference_contexts)):
            if isinstance(contexts, str):
                raise TypeError(f"{name} must be a list of strings, not one string")
        sample = Sample(
            item_id=item_id,
            user_input=user_input,
            response=response,
            reference=reference,
            retrieved_contexts=None if retrieved_contexts is None else tuple(retrieved_contexts),
            reference_contexts=None if reference_contexts is None else tuple(reference_contexts),
            language=self.language or detect_language(" ".join(filter(None, (user_input, response, reference)))),
            rival_response=rival_response,
        )
        return await self._score(sample)

    def score(self, **fields: Any) -> MetricResult:
        """`ascore` for code that is not async; works inside a running event loop too (on a thread of its own)."""
        return _run(self.ascore(**fields))

    async def _score(self, sample: Sample) -> MetricResult:
        asked: list[Asked] = []
        if self.judge is not None and screen(self.metric, sample) is None:
            asker = Asker(self.judge, self._embedding(), self.attempts)
            sample, asked = await _decomposed(self.metric, sample, asker)
            if screen(self.metric, sample) is None:
                asked += await _ask_all(self.metric.questions(sample), sample, asker)
                if self.metric.follow_up is not None:
                    follow_up = self.metric.follow_up(sample, _verdicts(asked))
                    asked += await _ask_all(follow_up, sample, asker)
            if asker.stopped is not None:
                raise asker.stopped
        value = scoring.score_one(self.metric, sample, _verdicts(asked))
        return MetricResult(value.value, value.status, value.lower, value.upper, value, tuple(asked))

    def _embedding(self) -> EmbeddingModel | None:
        if self.embedding is None and self.metric.needs_embedding:
            from eval_pipeline.llm.ngram_embedding import NgramEmbedding

            self.embedding = NgramEmbedding()
        return self.embedding


def _verdicts(asked: Sequence[Asked]) -> list:  # pyright: ignore[reportMissingTypeArgument]
    return [one.verdict for one in asked if one.verdict.question.template_id != decomposition.TEMPLATE_ID]


async def _ask_all(questions: Sequence[Question], sample: Sample, asker: Asker) -> list[Asked]:
    return list(await asyncio.gather(*(asker.ask(question, sample.language) for question in questions)))


async def _decomposed(metric: Metric, sample: Sample, asker: Asker) -> tuple[Sample, list[Asked]]:
    """The sample with the claims its metric needs, and how they were got."""
    if not metric.decomposes:
        return sample, []
    from dataclasses import replace

    asked = await _ask_all(decomposition.questions(sample, metric.decomposes), sample, asker)
    outcomes: dict[PartSource, Outcome] = {one.verdict.question.part_source: one.verdict.outcome for one in asked}
    claims = {
        one.verdict.question.part_source: one.verdict.texts for one in asked if one.verdict.outcome == Outcome.GRADED
    }
    return replace(sample, claims=claims, claim_outcomes=outcomes), asked


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine from plain code; on a thread of its own when this one already runs a loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    done: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(asyncio.run(coroutine))
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread below
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


class AnswerAccuracy(Scorer):
    """Does the response agree with the reference? Two templates, grades 0/2/4."""

    metric_name = "answer_accuracy"


class ContextRelevance(Scorer):
    """Do the retrieved contexts bear on the question? Two templates, grades 0/1/2."""

    metric_name = "context_relevance"


class ResponseGroundedness(Scorer):
    """Is the response supported by the contexts? Two templates, grades 0/1/2."""

    metric_name = "response_groundedness"


class Faithfulness(Scorer):
    """Share of the response's claims that the contexts support."""

    metric_name = "faithfulness"


class FactualCorrectness(Scorer):
    """Claims shared by response and reference: precision, recall or F1."""

    metric_name = "factual_correctness"


class AnswerCorrectness(Scorer):
    """Weighted claim F-beta and similarity of response and reference."""

    metric_name = "answer_correctness"


class ContextRecall(Scorer):
    """Share of the reference's claims that the contexts support."""

    metric_name = "context_recall"


class ContextPrecision(Scorer):
    """Mean precision@k over the ranked contexts."""

    metric_name = "context_precision"


class AnswerRelevancy(Scorer):
    """Similarity of the question and questions generated from the answer."""

    metric_name = "answer_relevancy"


class RubricScore(Scorer):
    """A grade on a rubric's own declared scale."""

    metric_name = "rubric_score"


class GEval(Scorer):
    """Criteria or explicit steps, scored on a declared scale."""

    metric_name = "g_eval"


class PairwisePreference(Scorer):
    """This response against another, in both orders."""

    metric_name = "pairwise_preference"


class ExactMatch(Scorer):
    """Equal after normalisation. No judge."""

    metric_name = "exact_match"


class TokenF1(Scorer):
    """Token overlap, SQuAD style. No judge."""

    metric_name = "token_f1"
