"""What the operate verbs do."""

from __future__ import annotations

import json
import os
import re
import sys
from datetime import timedelta
from pathlib import Path

from eval_pipeline.cli.console import emit, out, say, t
from eval_pipeline.cli.querying import table
from eval_pipeline.errors import UnknownName
from eval_pipeline.evaluation.project import Project


def _ledger(project: Project):  # noqa: ANN202
    from eval_pipeline.llm.ledger import Ledger

    return Ledger(project.ledger_url)


def ledger_stats(project: Project, as_json: bool) -> None:
    """Replies, bytes, oldest and newest by model."""
    rows = _ledger(project).stats()
    if as_json:
        emit(rows)
    elif rows:
        out().print(table(list(rows[0]), [tuple(row.values()) for row in rows]))
    else:
        say(t("The ledger is empty.", "원장이 비어 있습니다."))


def ledger_export(project: Project, target: Path) -> None:
    """Every reply, one a line."""
    count = 0
    with target.open("w", encoding="utf-8") as file:
        for row in _ledger(project).export():
            file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            count += 1
    say(t(f"{count} replies -> {target}", f"응답 {count}개 -> {target}"))


def ledger_prune(project: Project, older_than: str) -> None:
    """Deletes replies older than so many days."""
    days = re.fullmatch(r"(\d+)d", older_than)
    if days is None:
        raise UnknownName(kind="age", name=older_than, known=("90d",))
    count = _ledger(project).prune(timedelta(days=int(days.group(1))))
    say(
        t(
            f"{count} replies deleted; asking them again will be paid for.",
            f"응답 {count}개를 지웠습니다. 다시 물으면 비용이 듭니다.",
        )
    )


def dev(project: Project, host: str, port: int) -> None:
    """Replaces this process by `dagster dev` on the project."""
    home = project.root / "dagster_home"
    home.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("DAGSTER_HOME", str(home))
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "yes")
    os.environ["EVAL_PROJECT"] = str(project.root)
    dagster = str(Path(sys.executable).with_name("dagster"))
    os.chdir(project.root)
    os.execv(dagster, [dagster, "dev", "-w", "workspace.yaml", "-h", host, "-p", str(port)])  # noqa: S606
