"""The evaluation plan: what is measured, by whom, why that may be trusted, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from eval_pipeline.config import EvaluationConfig
from eval_pipeline.vocabulary import CALIBRATION_KO, PROVENANCE_KO, Language, Policy

TEXTS = {
    "en": {
        "title": "# Evaluation plan", "metrics": "## 1. Metrics", "judge": "## 2. Judge", "calibration": "## 3. Calibration",
        "dataset": "## 4. Dataset versions", "gate": "## 5. Gate", "refused": "## Refused, and why",
        "bar": "Bar: the one-sided 95 % lower limit of Spearman's rho above {bar}, on at least {n} human labels (100 certify a good judge, 200 a decent one).",
        "nothing": "not evaluated yet", "floor": "floor {value}", "tail": "worst 10 % at least {value}", "margin": "margin {value}",
        "reported": "reported, not gated", "window": "Regression against the last {window} compatible evaluations and the pinned baseline `{baseline}`.",
        "strata": "strata: {strata}", "versioning": "A version is the sha256 of its content, a tag names it and never moves, and every change needs a message.",
        "untested": "`{metric}` by `{judge}`: untested on {n} human labels; at least {need} are needed before it may gate.",
        "self": "Self-evaluation: a judge that is a model inside the system. Systems that do not name their models: {systems}.",
        "aggregate": "Aggregate-only reporting: every mean is shown with its bounds, its worst 10 % and the worst items.",
        "upgrade": "A judge upgrade without a parallel baseline: `judges compare`, then `judges accept`.",
        "floating": "`{judge}` names an alias that moves ({model}).", "none": "none", "undefined": "undefined",
        "calibrated": "- {metric}: {decision}, rho {rho}, lower {lower}, n {n} ({labels})",
        "policy": "- `{policy}`: alpha {alpha}, {fail_on}; calibration {needed}",
    },
    "ko": {
        "title": "# 평가 계획", "metrics": "## 1. 지표", "judge": "## 2. 심판", "calibration": "## 3. 보정", "dataset": "## 4. 데이터셋 버전",
        "gate": "## 5. 게이트", "refused": "## 거부하는 것과 이유",
        "bar": "기준: 사람 라벨 {n}개 이상에서 스피어만 rho의 단측 95 % 하한이 {bar}보다 클 것(좋은 심판은 100개, 무난한 심판은 200개가 필요).",
        "nothing": "아직 평가하지 않음", "floor": "최저 기준 {value}", "tail": "하위 10 % {value} 이상", "margin": "허용 폭 {value}",
        "reported": "보고만 하고 게이트에는 쓰지 않음", "window": "최근 {window}회의 호환 평가와 고정 기준선 `{baseline}` 대비 하락 검정.",
        "strata": "층: {strata}", "versioning": "버전은 내용의 sha256이고, 태그는 그 이름이며 움직이지 않습니다. 변경에는 이유가 필요합니다.",
        "untested": "`{judge}`의 `{metric}`: 사람 라벨 {n}개로 미검증. 게이트에 쓰려면 {need}개 이상이 필요합니다.",
        "self": "자기 평가: 시스템 안의 모델이 심판인 경우. 모델을 밝히지 않은 시스템: {systems}.",
        "aggregate": "평균만 보고하기: 모든 평균에 범위, 하위 10 %, 가장 나쁜 항목을 함께 보입니다.",
        "upgrade": "병렬 기준선 없는 심판 교체: `judges compare` 후 `judges accept`.",
        "floating": "`{judge}`은(는) 움직이는 별칭({model})을 씁니다.", "none": "없음", "undefined": "정의되지 않음",
        "calibrated": "- {metric}: {decision}, rho {rho}, 하한 {lower}, n {n} (라벨: {labels})",
        "policy": "- `{policy}`: alpha {alpha}, 불합격으로 끝나는 결정 {fail_on}; 필요한 보정 {needed}",
    },
}  # fmt: skip


def plan_text(config: EvaluationConfig, calibrations: pl.DataFrame | None, language: Language) -> str:
    """The plan as Markdown.

    Args:
        calibrations: `calibrations` rows of the newest evaluation, or null when there is none.
    """
    words = TEXTS[language.value]
    parts = [
        words["title"],
        "",
        words["metrics"],
        *_metrics(config, words),
        "",
        words["judge"],
        *_judges(config),
        "",
        words["calibration"],
    ]
    parts += [words["bar"].format(bar=config.calibration.bar, n=config.calibration.minimum_labels)]
    parts += _calibrated(calibrations, words, language) or [f"- {words['nothing']}"]
    parts += [
        "",
        words["dataset"],
        words["versioning"],
        *_datasets(config, words),
        "",
        words["gate"],
        *_gate(config, words, language),
    ]
    return "\n".join([*parts, "", words["refused"], *_refusals(config, calibrations, words), ""])


def _calibrated(calibrations: pl.DataFrame | None, words: dict[str, str], language: Language) -> list[str]:
    if calibrations is None:
        return []
    return [
        words["calibrated"].format(
            metric=row["metric"], decision=_told(row["decision"], CALIBRATION_KO, language), rho=_number(row["spearman_rho"], words),
            lower=_number(row["rho_lower"], words), n=row["pair_count"],
            labels=_told(row["label_provenance"], PROVENANCE_KO, language),
        )
        for row in calibrations.filter(pl.col("stratum") == "all").to_dicts()
    ]  # fmt: skip


def _told(word: str, korean: Mapping[str, str], language: Language) -> str:
    return korean.get(word, word) if language == Language.KO else word


def _number(value: float | None, words: dict[str, str]) -> str:
    return words["undefined"] if value is None else f"{value:.3f}"


def _metrics(config: EvaluationConfig, words: dict[str, str]) -> list[str]:
    lines = []
    for name, metric in config.metrics.items():
        demands = config.gate.metrics.get(name)
        texts = [] if metric.gate else [words["reported"]]
        if demands is not None and metric.gate:
            wanted = (("floor", demands.floor), ("tail", demands.cvar10_floor), ("margin", demands.margin))
            texts += [words[key].format(value=value) for key, value in wanted if value is not None]
        lines.append(f"- `{name}`" + (f": {'; '.join(texts)}" if texts else ""))
    return lines


def _judges(config: EvaluationConfig) -> list[str]:
    default = config.default_judge or next(iter(config.judges))
    return [
        f"- `{name}`{' *' if name == default else ''}: {judge.provider}, {judge.model}{', ' + judge.revision if judge.revision else ''}"
        for name, judge in config.judges.items()
    ]


def _datasets(config: EvaluationConfig, words: dict[str, str]) -> list[str]:
    lines = []
    for name, dataset in config.datasets.items():
        strata = ", ".join(
            f"{stratum} ≥{one.minimum} ({one.weight if one.weight is not None else '–'})"
            for stratum, one in dataset.strata.items()
        )
        lines.append(f"- `{name}@{dataset.tag}`: {words['strata'].format(strata=strata or words['none'])}")
    return lines


def _gate(config: EvaluationConfig, words: dict[str, str], language: Language) -> list[str]:
    lines = [words["window"].format(window=config.gate.window, baseline=config.gate.baseline)]
    for policy in Policy:
        one = config.gate.policy(policy)
        needed = _told(one.require_calibration, CALIBRATION_KO, language)
        lines.append(
            words["policy"].format(policy=policy, alpha=one.alpha, fail_on=", ".join(one.fail_on), needed=needed)
        )
    return lines


def _refusals(config: EvaluationConfig, calibrations: pl.DataFrame | None, words: dict[str, str]) -> list[str]:
    need = config.calibration.minimum_labels
    counts: dict[str, int] = {}
    if calibrations is not None:
        rows = calibrations.filter((pl.col("stratum") == "all") & (pl.col("label_provenance") == "human"))
        counts = dict(rows.select("metric", "pair_count").iter_rows())
    judge = config.default_judge or next(iter(config.judges))
    lines = [
        "- " + words["untested"].format(metric=name, judge=metric.judge or judge, n=counts.get(name, 0), need=need)
        for name, metric in config.metrics.items()
        if counts.get(name, 0) < need
    ]
    unnamed = ", ".join(name for name, system in config.systems.items() if not system.models) or words["none"]
    lines += ["- " + words["self"].format(systems=unnamed), "- " + words["aggregate"], "- " + words["upgrade"]]
    return lines + [
        "- " + words["floating"].format(judge=name, model=one.model)
        for name, one in config.judges.items()
        if one.allow_floating
    ]
