"""What a metric is: the declaration each metric file makes, and the values that flow in and out of it.

A metric is pure. It says which questions to ask about a sample and turns the verdicts into a score; asking, retrying,
caching and storing happen elsewhere. No particular metric belongs here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline.vocabulary import Expects, GradeMethod, Language, Outcome, PartSource, ScoreStatus


@dataclass(frozen=True, slots=True)
class Sample:
    """One item with one system's response: all that a metric may look at. Absent fields are null.

    Attributes:
        claims: atomic claims by source, from decomposition. A source that is missing was not decomposed successfully;
            an empty tuple means the text holds no claims.
        claim_outcomes: outcome of decomposing each source, where it was asked.
        rival_response: the other system's response, for pairwise comparison.
        is_failed: the system gave no response (error, timeout).
        item_id: for seeded per-item draws; never shown to a judge.
    """

    item_id: str = ""
    user_input: str | None = None
    response: str | None = None
    reference: str | None = None
    retrieved_contexts: tuple[str, ...] | None = None
    reference_contexts: tuple[str, ...] | None = None
    language: Language = Language.EN
    claims: Mapping[PartSource, tuple[str, ...]] = field(default_factory=dict)
    claim_outcomes: Mapping[PartSource, Outcome] = field(default_factory=dict)
    rival_response: str | None = None
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to ask of a judge (or of an embedding model, when `expects` is similarity).

    Attributes:
        template_id: prompt folder, such as `answer_accuracy.1`; `similarity` for embeddings.
        inputs: texts for the template's variables. For similarity: exactly `left` and `right`.
        grades: allowed grades, ascending; empty unless `expects` is grade.
        settings: trusted texts of the configuration (criteria, rubric), rendered outside the fence.
        method: how the value is to be read from the reply.
    """

    template_id: str
    inputs: Mapping[str, str]
    grades: tuple[int, ...] = ()
    expects: Expects = Expects.GRADE
    part_source: PartSource = PartSource.RESPONSE
    part_index: int = 0
    sample_index: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    method: GradeMethod = GradeMethod.SINGLE


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one question.

    Attributes:
        grade: raw allowed grade; null unless the outcome is graded and a grade was asked for.
        value: grade mapped linearly to [0, 1] by the scale's ends (or its expectation under log-probabilities; for
            similarity the cosine in [-1, 1]); null when there is none.
        texts: what was generated, for claims (one each) and a generated question (exactly one).
        is_noncommittal: for a generated question: the judge found the answer evasive; else null.
        method: how the value was in fact obtained.
        reason: the judge's feedback when it gave any; for similarity the embedding model's name.
    """

    question: Question
    outcome: Outcome
    grade: int | None = None
    value: float | None = None
    texts: tuple[str, ...] = ()
    is_noncommittal: bool | None = None
    method: GradeMethod = GradeMethod.SINGLE
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """One metric's value for one response.

    Attributes:
        value: in [0, 1], or null; null means unknown or undefined, never zero.
        lower, upper: the value if every missing grade were the worst / the best; null where the score lies outside
            mean and bounds (`no_claims`, `not_applicable`).
        reason: why, in a word (`empty_response`, ...), or null.
        grade_1, grade_2: raw grades of the two templates (dual metrics), null when lost.
        disagreement: absolute difference of the two normalised grades; null unless both are valid.
        part_count, valid_part_count: claims or contexts in all, and with a valid grade.
        components: further numbers by name, such as precision and recall; null where undefined.
        outcomes: the outcomes other than graded among the questions behind it.
    """

    status: ScoreStatus
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    reason: str | None = None
    grade_1: int | None = None
    grade_2: int | None = None
    disagreement: float | None = None
    part_count: int | None = None
    valid_part_count: int | None = None
    components: Mapping[str, float | None] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """The declaration of one metric. Every metric is higher-is-better in [0, 1].

    Attributes:
        name: the name users write.
        version: rises with every change that can move a score.
        summary: one sentence on what it asks, by language.
        needs: names of the `Sample` fields it cannot do without.
        template_ids: every prompt it may use, `similarity` excluded.
        questions: what to ask first about a sample that passed the input policy.
        score: turns all verdicts into the score; called with the verdicts of both rounds.
        follow_up: what to ask after the first round (questions about generated texts), or null.
        decomposes: texts whose claims it needs.
        label_scale: grades people label on; null for a share in [0, 1].
        needs_embedding: whether it asks similarity questions.
        settings: trusted texts of the configuration that its prompts carry; another text is another judge.
        options: what the configuration sets beyond the defaults; another value gives another series of scores.
    """

    name: str
    version: int
    summary: Mapping[Language, str]
    needs: tuple[str, ...]
    questions: Callable[[Sample], Sequence[Question]]
    score: Callable[[Sample, Sequence[Verdict]], Score]
    template_ids: tuple[str, ...] = ()
    follow_up: Callable[[Sample, Sequence[Verdict]], Sequence[Question]] | None = None
    decomposes: tuple[PartSource, ...] = ()
    label_scale: tuple[int, ...] | None = None
    needs_embedding: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
