"""What the batch verbs do."""

from __future__ import annotations

from eval_pipeline.cli.console import emit, out, say, t
from eval_pipeline.cli.querying import table
from eval_pipeline.evaluation import batches
from eval_pipeline.evaluation.project import Project


def poll(project: Project, as_json: bool) -> None:
    """Brings in what has ended."""
    rows = batches.collect(project)
    if as_json:
        emit(rows)
        return
    for row in rows:
        if not row["is_configured"]:
            say(
                t(
                    f"{row['judge']}: {row['open_count']} batches open, of no judge in evaluation.yaml. Put the judge back to bring in what was asked.",
                    f"{row['judge']}: 열린 배치 {row['open_count']}개의 심판이 evaluation.yaml에 없습니다. 물은 것을 거두려면 그 심판을 되돌려 놓으세요.",
                )
            )
            continue
        failed = sum(row["failed"].values())
        say(
            t(
                f"{row['judge']}: {row['reply_count']} replies, {failed} failed, {row['unanswered_count']} unanswered, {row['open_count']} batches still open",
                f"{row['judge']}: 응답 {row['reply_count']}개, 실패 {failed}개, 무응답 {row['unanswered_count']}개, 아직 열린 배치 {row['open_count']}개",
            )
        )
        for reason, count in row["failed"].items():
            say(f"  {count} x {reason}")
    configured = [row for row in rows if row["is_configured"]]
    if not rows:
        say(t("No batch is open.", "열린 배치가 없습니다."))
    elif configured and not any(row["open_count"] for row in configured):
        say(t("Go on with: eval-pipeline run --resume", "이어서 실행: eval-pipeline run --resume"))


def status(project: Project, as_json: bool) -> None:
    """What is on record, without asking the provider."""
    rows = batches.status(project)
    if as_json:
        emit(rows)
    elif rows:
        out().print(table(list(rows[0]), [tuple(row.values()) for row in rows]))
    else:
        say(t("No batch was ever submitted.", "제출한 배치가 없습니다."))
