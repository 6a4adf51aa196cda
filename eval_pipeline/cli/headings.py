"""Headings of the tables that people read: short words for column names, in both languages. JSON and SQL keep the names."""

from __future__ import annotations

from eval_pipeline.cli.console import t
from eval_pipeline.korean import in_korean
from eval_pipeline.vocabulary import CALIBRATION_KO, PROVENANCE_KO

_HEADINGS = {
    "metric": t("metric", "지표"), "judge": t("judge", "심판"), "judge_model": t("model", "모델"), "system": t("system", "시스템"),
    "system_release": t("release", "릴리스"), "dataset": t("dataset", "데이터셋"), "dataset_tag": t("tag", "태그"),
    "dataset_version": t("version", "버전"), "evaluation_id": t("evaluation", "평가"), "item_count": t("items", "항목"),
    "call_count": t("calls", "호출"), "cost_usd": t("cost $", "비용 $"), "cost_per_1k_usd": t("$ per 1k", "천 건당 $"),
    "is_partial": t("partial", "부분"), "partial_reason": t("why", "이유"), "reason": t("why", "이유"),
    "label_provenance": t("labels by", "라벨 출처"), "pair_count": t("pairs", "쌍"), "dropped_count": t("dropped", "제외"),
    "spearman_rho": "rho", "rho_lower": t("lower", "하한"), "rho_upper": t("upper", "상한"), "lower": t("lower", "하한"),
    "upper": t("upper", "상한"), "bias": t("bias", "편향"), "decision": t("decision", "결정"), "is_provisional": t("provisional", "잠정"),
    "labels_needed": t("needed", "필요"), "label_count": t("labels", "라벨"), "human_count": t("by people", "사람 라벨"),
    "text_count": t("texts", "텍스트"), "annotators": t("people", "주석자"), "shared_count": t("shared", "공통"),
    "human_agreement": t("agreement", "일치도"), "disagreement_count": t("to settle", "판정 필요"),
    "handed_out_count": t("handed out", "나눠 줌"), "waiting_count": t("waiting", "대기"), "difference": t("difference", "차이"),
    "better_count": t("better", "상승"), "worse_count": t("worse", "하락"), "is_same_judge": t("same judge", "같은 심판"),
    "newly_failed": t("newly failed", "새로 실패"), "mean_shift": t("mean shift", "평균 이동"), "cvar10_shift": t("worst 10% shift", "하위 10% 이동"),
    "equivalent": t("equivalent", "동등"), "quadratic_weighted_kappa": t("kappa", "카파"), "rho_old": t("rho old", "이전 rho"),
    "rho_new": t("rho new", "새 rho"), "is_configured": t("configured", "설정됨"), "version_count": t("versions", "버전 수"),
    "tag": t("tag", "태그"), "version": t("version", "버전"), "created_at": t("at", "시각"), "items": t("items", "항목"),
    "message": t("why", "이유"), "item_id": t("item", "항목"), "stratum": t("stratum", "층"), "language": t("language", "언어"),
    "user_input": t("question", "질문"), "reference": t("reference", "기준 답변"), "model": t("model", "모델"),
    "questions": t("questions", "질문"), "from_ledger": t("from ledger", "원장에서"), "calls": t("calls", "호출"),
    "calls_at_most": t("at most", "최대 호출"), "input_tokens": t("tokens in", "입력 토큰"), "output_tokens": t("tokens out", "출력 토큰"),
    "reply_count": t("replies", "답변"), "byte_count": t("bytes", "바이트"), "oldest": t("oldest", "가장 오래된 것"),
    "newest": t("newest", "가장 새로운 것"), "status": t("status", "상태"), "changes": t("changes", "변경"), "labels": t("labels", "라벨"),
}  # fmt: skip


_CODES = {"decision", "status", "label_provenance", "labels", "reason"}
"""Columns whose cells are words of the program, not names."""


def cell(column: str, value: object) -> object:
    """A value as people read it: yes and no, and the program's own words in their language."""
    if isinstance(value, bool):
        return t("yes", "예") if value else t("no", "아니요")
    if column in _CODES and isinstance(value, str):
        return t(value, (CALIBRATION_KO | PROVENANCE_KO).get(value) or in_korean(value))
    return value


def heading(column: str) -> str:
    """The heading of a column; one without a word of its own keeps its name."""
    return _HEADINGS.get(column, column)
