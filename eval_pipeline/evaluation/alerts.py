"""What people are told of nights they did not watch: which alerts are due, in words that say what to do. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from eval_pipeline.config import AlertConfig
from eval_pipeline.vocabulary import Language

GRACE = timedelta(minutes=30)
"""How late a night may start before it counts as missed."""
LONGEST = 1200
"""Characters of an alert; the report has the rest."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A finished run.

    Attributes:
        error: what failed it; null for a run that went through.
        row: the `evaluations` row it left; null when it got that far not.
        decision: the gate's verdict and its evidence in both languages; null when there is none.
        failed_checks: asset checks of severity error that did not pass.
    """

    run_id: str
    error: str | None = None
    row: Mapping[str, Any] | None = None
    decision: Mapping[str, Any] | None = None
    failed_checks: Sequence[str] = ()


def of_run(run: Ended, config: AlertConfig, language: Language) -> str | None:
    """The alert about one finished run, or null."""
    korean = language == Language.KO
    if run.error is not None:
        if "error" not in config.when:
            return None
        reason = " ".join(run.error.split())[:400]
        return _text(
            f"평가 실행이 실패했습니다({run.run_id[:8]}): {reason}\n이어 가기: eval-pipeline run --resume · 상태: eval-pipeline status"
            if korean
            else f"An evaluation run failed ({run.run_id[:8]}): {reason}\nGo on: eval-pipeline run --resume · what is stuck: eval-pipeline status"
        )
    verdict = run.decision["verdict"] if run.decision else None
    if verdict not in config.when and not (run.failed_checks and "error" in config.when):
        return None
    row = run.row or {}
    name = f"{row.get('dataset')}@{row.get('dataset_tag')} · {row.get('system')} {row.get('system_release')} · {row.get('judge')}"
    evidence = (run.decision or {}).get("evidence_ko" if korean else "evidence") or ""
    checks = ", ".join(run.failed_checks)
    items = list((run.decision or {}).get("item_ids") or ())
    item = items[0] if items else "항목" if korean else "ITEM"
    stopped = str(row.get("partial_reason") or "").startswith("stopped")
    resume = "eval-pipeline run --resume · " if stopped else ""
    said = f"{verdict} {name}\n{evidence[:600]}"
    if checks:
        said += f"\n{'실패한 검사' if korean else 'Failed checks'}: {checks}"
    following = f"{resume}eval-pipeline show {item} · eval-pipeline report --evaluation {row.get('evaluation_id')}"
    return _text(f"{said}\n{'다음' if korean else 'Next'}: {following}")


def of_missed(due_at: datetime, language: Language) -> str:
    """The alert about a night that did not start."""
    when = due_at.isoformat(timespec="minutes")
    if language == Language.KO:
        return f"예정된 평가({when})가 시작되지 않았습니다. Dagster 데몬이 도는지 보세요(eval-pipeline status).\n지금 실행: eval-pipeline run --gate nightly"
    return f"The evaluation due at {when} did not start. See whether the Dagster daemon runs (eval-pipeline status).\nRun it now: eval-pipeline run --gate nightly"


def is_missed(due_at: datetime, known_since: datetime | None, started: Iterable[datetime], now: datetime) -> bool:
    """Whether the night due at a time did not start.

    Args:
        due_at: the schedule's last time. known_since: from when on somebody watched; null: nobody did, nothing is missed.
        started: when runs and evaluations started, failed and running ones included.
    """
    if known_since is None or due_at <= known_since or now < due_at + GRACE:
        return False
    return not any(start >= due_at for start in started)


def _text(text: str) -> str:
    """At most so long, and nothing in it that Slack reads as a mention or a link."""
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
