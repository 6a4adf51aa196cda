"""The words every layer shares. Only enumerations of fixed strings belong here, no behaviour.

Each value is what is written to tables, JSON and SQL, so renaming one is a migration.
"""

from __future__ import annotations

from enum import StrEnum


class Language(StrEnum):
    """A language in which prompts, messages and reports exist."""

    KO = "ko"
    EN = "en"


class Outcome(StrEnum):
    """What became of one question put to a judge. Only `GRADED` carries a usable answer."""

    GRADED = "graded"
    OFF_SCALE = "off_scale"
    UNPARSEABLE = "unparseable"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    TOO_LONG = "too_long"
    PROVIDER_ERROR = "provider_error"
    TIMEOUT = "timeout"
    NOT_ASKED = "not_asked"
    SKIPPED = "skipped"


class ScoreStatus(StrEnum):
    """Why a score has a value or has none."""

    SCORED_BOTH = "scored_both"
    SCORED_SINGLE = "scored_single"
    SCORED = "scored"
    NO_RESPONSE = "no_response"
    INVALID = "invalid"
    NO_CLAIMS = "no_claims"
    NOT_APPLICABLE = "not_applicable"
    NOT_ASKED = "not_asked"


SCORED_STATUSES = (ScoreStatus.SCORED_BOTH, ScoreStatus.SCORED_SINGLE, ScoreStatus.SCORED)


class Expects(StrEnum):
    """What kind of reply answers a question."""

    GRADE = "grade"
    CLAIMS = "claims"
    STEPS = "steps"
    GENERATED_QUESTION = "generated_question"
    SIMILARITY = "similarity"


class PartSource(StrEnum):
    """Which text of an item a question, claim or verdict is about."""

    RESPONSE = "response"
    REFERENCE = "reference"
    CONTEXT = "context"


class GradeMethod(StrEnum):
    """How a verdict's value came out of the judge's reply."""

    SINGLE = "single"
    LOG_PROBABILITY = "log_probability"
    N_SAMPLE = "n_sample"
    EMBEDDING = "embedding"
    ENTAILMENT = "entailment"


class Provenance(StrEnum):
    """Where a label comes from. Only `HUMAN` counts towards certifying a judge."""

    HUMAN = "human"
    CONSTRUCTED = "constructed"
    MODEL = "model"


PROVENANCE_KO = {"human": "사람", "constructed": "구성", "model": "모델", "mixed": "혼합", "none": "없음"}
"""Provenance of a set of labels in Korean; a set may also be mixed, or empty."""


CALIBRATION_KO = {
    "pass": "통과",
    "fail": "불합격",
    "inconclusive": "결론 없음",
    "untested": "미검증",
    "provisional": "잠정",
}
"""What the labels say of a judge, in Korean."""

RULES_KO = {
    "responses": "응답", "invalid": "무효 등급", "calibration": "보정", "floor": "최저 기준", "worst 10%": "하위 10%",
    "worst 10% change": "하위 10% 변화", "regression": "하락", "complete": "완전성", "dataset": "데이터셋",
    "self-evaluation": "자기 평가", "catastrophic": "치명적 비율", "canary": "카나리", "judge": "심판", "reported": "보고", "decision": "결정",
    "window": "최근 평가", "pin": "고정 기준선",
}  # fmt: skip
"""Names of the gate's rules, and of what they compare with, in Korean."""


class CalibrationDecision(StrEnum):
    """What the labels say of a judge."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    UNTESTED = "untested"


class Decision(StrEnum):
    """What the gate says of an evaluation; also the verdict of a single rule (with `NOT_EVALUATED`)."""

    PASS = "PASS"
    PASS_UNPROVEN = "PASS_UNPROVEN"
    INCONCLUSIVE = "INCONCLUSIVE"
    FAIL = "FAIL"
    BLOCKED = "BLOCKED"
    NOT_EVALUATED = "NOT_EVALUATED"


class Policy(StrEnum):
    """The occasion on which the gate decides."""

    PR = "pr"
    NIGHTLY = "nightly"
    RELEASE = "release"


class NoResponsePolicy(StrEnum):
    """What a failed response counts in a metric's mean."""

    ZERO = "zero"
    EXCLUDE = "exclude"


class NoClaimsPolicy(StrEnum):
    """What a response without claims scores."""

    EXCLUDE = "exclude"
    ZERO = "zero"
    ONE = "one"
