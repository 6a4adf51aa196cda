"""`compare`: two evaluations paired by item, over a change of judge where asked."""

from __future__ import annotations

from typing import Any

from eval_pipeline.cli.console import emit, out, say, t
from eval_pipeline.cli.querying import table
from eval_pipeline.evaluation import reading as stored
from eval_pipeline.evaluation.project import Project

COLUMNS = ("metric", "shared_count", "difference", "lower", "upper", "better_count", "worse_count", "is_same_judge",
           "newly_failed")  # fmt: skip


def compare(project: Project, old: str, new: str, as_json: bool) -> None:
    """Two evaluations, paired by unchanged items."""
    from eval_pipeline.evaluation.bridge import paired

    rows = paired(project, stored.select(project, old), stored.select(project, new))
    if as_json:
        emit(rows)
    else:
        _print(rows)


def over_judges(project: Project, old: str, new: str, dry_run: bool, as_json: bool) -> None:
    """The same, with the older responses judged again where another judge judged them."""
    from eval_pipeline.cli.progress import Bar
    from eval_pipeline.evaluation import bridge
    from eval_pipeline.stages.comparison import overall

    before, after = stored.select(project, old), stored.select(project, new)
    with Bar() as bar:
        found = bridge.build(project, before, after, bar)
        foreseen = found.estimate() if found else []
        if not as_json:
            say(_foreseen(foreseen))
        if dry_run:
            if as_json:
                emit(foreseen)
            return
        rows = bridge.paired(project, before, after, found.scores() if found else None)
    judge = stored.row(project, after)
    whole = overall(rows)
    if as_json:
        by = {"judge": judge["judge"], "judge_model": judge["judge_model"]}
        emit({"overall": whole | by, "foreseen": foreseen, "metrics": rows})
        return
    say(_overall(whole, f"{judge['judge']} ({judge['judge_model']})"))
    _print(rows)


def _print(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        say(sentence(row))
    shown: list[tuple[object, ...]] = [
        tuple(", ".join(row[c][:8]) if c == "newly_failed" else row[c] for c in COLUMNS) for row in rows
    ]
    out().print(table(list(COLUMNS), shown))


def sentence(row: dict[str, Any]) -> str:
    """What happened to one metric, in a sentence."""
    if row["difference"] is None:
        return t(f"{row['metric']}: nothing to compare.", f"{row['metric']}: 비교할 것이 없습니다.")
    if not row["is_same_judge"]:
        return t(f"{row['metric']}: two judges, so the difference says nothing of the system; `--bridge` judges again.",
                 f"{row['metric']}: 심판이 달라 이 차이는 시스템의 변화가 아닙니다. `--bridge`로 다시 판정하세요.")  # fmt: skip
    if row["upper"] < 0:
        word, word_ko = "got worse", "나빠졌습니다"
    elif row["lower"] > 0:
        word, word_ko = "got better", "좋아졌습니다"
    else:
        word, word_ko = "shows no clear change", "뚜렷한 변화가 없습니다"
    return t(f"{row['metric']} {word}: {row['difference']:+.3f} over {row['shared_count']} items.",
             f"{row['metric']}: {word_ko}({row['difference']:+.3f}, 항목 {row['shared_count']}개).")  # fmt: skip


def _foreseen(rows: list[dict[str, Any]]) -> str:
    from eval_pipeline.report.figures import money

    if not rows:
        return t(
            "The same judge judged both; nothing is judged again.", "두 평가의 심판이 같아 다시 판정하지 않습니다."
        )
    least, most, held = (sum(row[name] for row in rows) for name in ("calls", "calls_at_most", "from_ledger"))
    calls = f"{least:,}" if least == most else f"{least:,}–{most:,}"
    costs = [row["cost_usd"] for row in rows if row["calls_at_most"]]  # no call costs nothing at any price
    cost = money(None if None in costs else sum(costs), t("cost unknown", "비용 미상"))
    return t(f"Judging the older responses again: {calls} calls, {cost}; {held:,} questions are in the ledger.",
             f"이전 응답을 다시 판정: 호출 {calls}회, {cost}. 질문 {held:,}건은 원장에 있습니다.")  # fmt: skip


def _overall(found: dict[str, Any], judge: str) -> str:
    better, worse, count = ", ".join(found["better"]), ", ".join(found["worse"]), found["metric_count"]
    said, said_ko = {
        "worse": (f"got worse ({worse})", f"나빠졌습니다({worse})"),
        "better": (f"got better ({better})", f"좋아졌습니다({better})"),
        "mixed": (f"better in {better}, worse in {worse}", f"{better}은(는) 좋아지고 {worse}은(는) 나빠졌습니다"),
        "no_clear_change": ("no clear change", "뚜렷한 변화가 없습니다"),
        "nothing_shared": ("nothing to compare under one judge", "한 심판으로 비교할 것이 없습니다"),
    }[found["change"]]
    return t(f"Overall: {said}, by judge {judge} on both sides, {count} metrics tested together at 5%.",
             f"종합: {said_ko}. 양쪽 모두 심판 {judge}, 지표 {count}개를 함께 5%로 검정했습니다.")  # fmt: skip
