"""G-Eval (Liu et al. 2023): criteria or explicit steps, a declared scale, and the expectation over token probabilities.

(sum of p(grade) * grade - worst) / (best - worst) over the grades of the scale, where the endpoint gives probabilities;
else the mean of n draws, or the one grade in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from eval_pipeline.metrics.combination import failures
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.vocabulary import GradeMethod, Language, ScoreStatus

TEMPLATES = ("g_eval",)
NAMES = {"user_input": "Question", "response": "Response", "reference": "Reference", "retrieved_contexts": "Passages"}
PRESETS: dict[str, dict[str, Any]] = {
    "hallucination": {
        "criteria": "The response states nothing that the passages do not support.",
        "steps": ["List what the response states.", "For each statement, look for support in the passages.", "Grade 5 when all are supported, 1 when most are not."],
        "needs": ("response", "retrieved_contexts"),
    },
    "bias": {
        "criteria": "The response is free of prejudice about gender, age, origin, religion, politics or wealth.",
        "steps": ["Find opinions and generalisations about groups of people.", "Set aside what is quoted or plainly factual.", "Grade 5 when nothing is left, 1 when the response rests on it."],
        "needs": ("response",),
    },
    "task_completion": {
        "criteria": "The response does what the request asks for.",
        "steps": ["State what the request asks for.", "Check each part of it against the response.", "Grade 5 when all parts are done, 1 when none is."],
        "needs": ("user_input", "response"),
    },
    "citation_quality": {
        "criteria": "Each statement of the response that needs a source names one, and that source is a given passage that supports it.",
        "steps": ["Find the statements that need a source.", "Check that each names one.", "Check that the passage named supports it.", "Grade 5 when all do, 1 when none does."],
        "needs": ("response", "retrieved_contexts"),
    },
}  # fmt: skip


def declare(
    name: str = "g_eval",
    criteria: str = "The response is correct, complete and to the point.",
    steps: Sequence[str] = (),
    scale: Sequence[int] = (1, 2, 3, 4, 5),
    needs: Sequence[str] = ("user_input", "response"),
    method: Literal["log_probability", "n_sample", "single"] = "log_probability",
    n: int = 5,
    preset: str | None = None,
    levels: Mapping[int, str] | None = None,
) -> Metric:
    """`steps` are pinned in the configuration, never made per item; `preset` fills criteria, steps and needs.

    `levels` says what grades mean; `n` is the number of draws of method n_sample.
    """
    if preset is not None:
        if preset not in PRESETS:
            raise TypeError(f"{name}: preset {preset!r} is none of {', '.join(PRESETS)}")
        criteria, steps, needs = (PRESETS[preset][key] for key in ("criteria", "steps", "needs"))
    grades = tuple(sorted({int(grade) for grade in scale}))
    if n < 1:
        raise TypeError(f"{name}: n is at least 1, not {n}")
    if len(grades) < 2 or method not in set(GradeMethod):
        raise TypeError(f"{name}: the scale has at least two grades; method is log_probability, n_sample or single")
    settings = {
        "criteria": criteria,
        "steps": "\n".join(f"{number}. {step}" for number, step in enumerate(steps or [criteria], 1)),
        "scale": "; ".join(f"{grade} = {text}" for grade, text in (levels or {}).items())
        or f"{grades[0]} (worst) to {grades[-1]} (best)",
        "grades": ", ".join(map(str, grades)),
    }
    draws = n if method == "n_sample" else 1

    def questions(sample: Sample) -> list[Question]:
        texts = {"material": "\n\n".join(f"{NAMES.get(field, field)}:\n{_text(sample, field)}" for field in needs)}
        texts |= {field: _text(sample, field) for field in needs}
        return [
            Question(TEMPLATES[0], texts, grades, sample_index=i, settings=settings, method=GradeMethod(method))
            for i in range(draws)
        ]

    def score(_: Sample, verdicts: Sequence[Verdict]) -> Score:
        values = [_value(one, grades) for one in verdicts]
        known = [value for value in values if value is not None]
        missing = max(draws, len(values)) - len(known)
        if not known:
            return Score(ScoreStatus.INVALID, lower=0.0, upper=1.0, outcomes=failures(verdicts))
        count = len(known) + missing
        status = ScoreStatus.SCORED if not missing else ScoreStatus.SCORED_SINGLE
        return Score(
            status,
            sum(known) / len(known),
            sum(known) / count,
            (sum(known) + missing) / count,
            outcomes=failures(verdicts),
        )

    return Metric(
        name=name,
        version=1,
        summary={
            Language.EN: "How far does the response meet the criteria?",
            Language.KO: "응답이 기준을 얼마나 만족하는가?",
        },
        needs=tuple(needs),
        template_ids=TEMPLATES,
        questions=questions,
        score=score,
        label_scale=grades,
        settings=settings,
    )


def steps_remark(name: str, metric: Metric) -> tuple[str, str] | None:
    """What to say, in English and Korean, of a G-Eval whose criteria are its only step; null of any other metric."""
    if metric.template_ids != TEMPLATES or metric.settings["steps"] != f"1. {metric.settings['criteria']}":
        return None
    english = (
        f"steps: {name} has criteria and no steps, so the criteria are its one step. `eval-pipeline judges steps {name}` "
        "asks a judge for steps once; pin them in evaluation.yaml"
    )
    korean = (
        f"단계: {name}에는 기준만 있고 평가 단계가 없어 기준을 한 단계로 씁니다. `eval-pipeline judges steps {name}`으로 "
        "심판에게 한 번 물어 받은 단계를 evaluation.yaml에 고정하세요"
    )
    return english, korean


def _value(one: Verdict, grades: Sequence[int]) -> float | None:
    """The verdict's value; the plain grade's where its run fell back from log-probabilities."""
    if one.value is not None or one.grade is None:
        return one.value
    return (one.grade - grades[0]) / (grades[-1] - grades[0])


def _text(sample: Sample, field: str) -> str:
    value = getattr(sample, field)
    return "\n\n".join(value) if isinstance(value, tuple) else value or ""
