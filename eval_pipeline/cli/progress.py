"""A progress bar with rate and time left, on the error console; nothing when that is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from eval_pipeline.cli.console import err, t

STEPS = {
    "responses": ("Responses", "응답 수집"),
    "claims": ("Claims", "주장 분해"),
    "verdicts": ("Judging", "판정"),
    "calibrations": ("Calibration", "보정"),
    "import": ("Import", "가져오기"),
}


class Bar:
    """Draws `evaluation.progress.Progress` with rich."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(), TimeRemainingColumn(), console=err(), transient=True, disable=not sys.stderr.isatty(),
        )  # fmt: skip
        self._task: TaskID | None = None

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, step: str, total: int) -> None:
        """Starts a line for one step."""
        self._task = self._bar.add_task(t(*STEPS.get(step, (step, step))), total=total, rate="")

    def advance(self, count: int = 1) -> None:
        """So many units more."""
        if self._task is None:
            return
        self._bar.advance(self._task, count)
        speed = self._bar.tasks[-1].speed
        if speed:
            self._bar.update(self._task, rate=f"{speed:,.0f}/s")


def imported(bar: Bar) -> Callable[[int, int], None]:
    """A callback (rows done, rows in all) that draws an import."""
    seen = 0

    def progress(done: int, total: int) -> None:
        nonlocal seen
        if not seen:
            bar.begin("import", total)
        bar.advance(done - seen)
        seen = done

    return progress
