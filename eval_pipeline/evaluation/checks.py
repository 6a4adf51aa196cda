"""What the asset checks say of one evaluation: passed or not, the rows that show it, and what to do. Dagster is not here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from eval_pipeline.evaluation import canary
from eval_pipeline.evaluation.judges import paid
from eval_pipeline.intake import datasets
from eval_pipeline.stages.aggregation import accounting_violations
from eval_pipeline.stats.agreement import dual_agreement
from eval_pipeline.tables import CALIBRATIONS, GATE_DECISIONS, SCORES, SUMMARIES, VERDICTS
from eval_pipeline.vocabulary import CalibrationDecision, Expects, Language, ScoreStatus

if TYPE_CHECKING:
    from eval_pipeline.evaluation.steps import Evaluation

ALL = "all"


@dataclass(frozen=True, slots=True)
class Checked:
    """One check's result.

    Attributes:
        rows: what is wrong, or what was measured when nothing is.
        advice: what to do, in English and Korean; said only when it did not pass.
        numbers: what was measured, by name.
    """

    passed: bool
    rows: pl.DataFrame
    advice: tuple[str, str]
    numbers: Mapping[str, Any]

    def advice_in(self, language: Language) -> str:
        return "-" if self.passed else self.advice[language == Language.KO]


def _judge(rows: list[dict[str, Any]], advice: tuple[str, str], **numbers: Any) -> Checked:
    """Of rows with `is_bad`: the bad ones, or all when none is."""
    bad = [row for row in rows if row["is_bad"]]
    shown = [{name: value for name, value in row.items() if name != "is_bad"} for row in bad or rows]
    return Checked(
        not bad, pl.DataFrame(shown, infer_schema_length=None), advice, {"bad_row_count": len(bad)} | numbers
    )


def accounting_identity(evaluation: Evaluation) -> Checked:
    """Items = scored + no response + invalid + no claims + not applicable + not asked, per metric and stratum."""
    found = [{"violation": str(line), "is_bad": True} for line in accounting_violations(evaluation.read(SUMMARIES))]
    return _judge(found, ("This is a defect of the pipeline: keep the warehouse and report it.",
                          "파이프라인의 결함입니다. 웨어하우스를 보관하고 알려 주세요."))  # fmt: skip


def invalid_grade_rate(evaluation: Evaluation) -> Checked:
    """Unusable replies against the gate's cap; the items behind a share over it."""
    cap = evaluation.project.config.gate.max_invalid_share
    shares = dict(_whole(evaluation).select("metric", "invalid_share").iter_rows())
    over = [name for name, share in shares.items() if share is not None and share > cap]
    lost = evaluation.read(SCORES).filter(
        pl.col("metric").is_in(over) & (pl.col("status") == ScoreStatus.INVALID.value)
    )
    rows = lost.select("metric", "item_id", "stratum", "outcomes").to_dicts()
    return _judge(
        [row | {"is_bad": True} for row in rows],
        (f"Over {cap:.1%}. Look at the replies (eval-pipeline query \"from invalid_grades\"), then mend the judge, its prompt or its token limit; run --retry-invalid asks again.",
         f"{cap:.1%}를 넘었습니다. 답을 보고(eval-pipeline query \"from invalid_grades\") 심판·프롬프트·토큰 한도를 고치세요. run --retry-invalid로 다시 묻습니다."),
        cap=cap, **{f"invalid_share {name}": share for name, share in shares.items()},
    )  # fmt: skip


def bottom_decile(evaluation: Evaluation) -> Checked:
    """The worst 10 % against the metric's `cvar10_floor`; without a floor they are only shown."""
    rows = []
    for row in _whole(evaluation).iter_rows(named=True):
        demands = evaluation.project.config.gate.metrics.get(row["metric"])
        floor = demands.cvar10_floor if demands else None
        value = row["cvar10"]
        rows.append({"metric": row["metric"], "worst_10_percent": value, "floor": floor,
                     "item_ids": row["worst_item_ids"][:20], "is_bad": floor is not None and (value is None or value < floor)})  # fmt: skip
    return _judge(rows, ("Read the worst items: eval-pipeline show ITEM.",
                         "가장 나쁜 항목을 읽어 보세요: eval-pipeline show 항목."))  # fmt: skip


def judge_agreement(evaluation: Evaluation) -> Checked:
    """The two templates of a metric: weighted kappa, or AC2 where one grade prevails and kappa is low by construction."""
    minimum, rows = evaluation.project.config.checks.judge_agreement.minimum, []
    graded = evaluation.read(VERDICTS).filter(
        (pl.col("expects") == Expects.GRADE.value) & pl.col("grade").is_not_null()
    )
    for name, metric in evaluation.metrics().items():
        own = graded.filter(pl.col("metric") == name)
        first, second = (own.filter(pl.col("template_id").str.ends_with(f".{number}")) for number in (1, 2))
        if len(metric.template_ids) < 2 or first.is_empty() or second.is_empty():
            continue
        place = ["item_id", "part_source", "part_index", "sample_index"]
        pairs = first.select(*place, "grade").join(second.select(*place, pl.col("grade").alias("other")), on=place)
        found = dual_agreement(pairs["grade"].to_numpy().astype(float), pairs["other"].to_numpy().astype(float),
                               levels=sorted({*own["grade"]}))  # fmt: skip
        value = found.ac2.value if found.warnings else found.kappa.value
        apart = pairs.filter(pl.col("grade") != pl.col("other"))["item_id"].unique().sort().to_list()
        rows.append({"metric": name, "n": pairs.height, "agreement": value, "by": "ac2" if found.warnings else "kappa",
                     "exact": found.exact.value, "item_ids": apart[:20], "is_bad": value is None or value < minimum})  # fmt: skip
    return _judge(rows, (f"The two templates agree less than {minimum:.2f}, or give one grade only: read the items (eval-pipeline show ITEM) and label some (label export); the judge may be too weak for the metric.",
                         f"두 템플릿의 일치도가 {minimum:.2f}보다 낮거나 한 가지 등급만 나왔습니다. 항목을 읽고(eval-pipeline show 항목) 라벨을 붙여 보세요(label export). 심판이 이 지표에 약할 수 있습니다."),
                  minimum=minimum)  # fmt: skip


def canary_drift(evaluation: Evaluation) -> Checked:
    """Frozen questions asked anew, against the first replies by the same judge key."""
    row = {"evaluation_id": evaluation.evaluation_id, "dataset": evaluation.dataset, "started_at": evaluation.started_at,
           "judge_keys": json.dumps(evaluation.judge_keys())}  # fmt: skip
    found = canary.compared(evaluation.warehouse, row, evaluation.project.config.gate.window)
    rows = [
        {"metric": one.metric, "n": one.shift.n, "of": one.item_count, "reference": one.reference_id, "shift": one.shift.value, "p": one.shift.p,
         "item_ids": list(one.moved_ids[:20]), "is_bad": one.is_moved or one.shift.value is None}
        for one in found
    ]  # fmt: skip
    reasons = {f"not asked: {name}": reason for name in evaluation.metrics()
               if (reason := canary.skipped(evaluation, name)) is not None}  # fmt: skip
    return _judge(
        rows,
        ("The judge answers the same questions otherwise under the same name, or no longer. Give it a new `revision` in evaluation.yaml: that makes it another judge, to be calibrated, compared (judges compare OLD NEW) and accepted (judges accept). Under 50 items nothing is shown: add items, or set canary_size: 0.",
         "심판이 같은 이름으로 같은 질문에 다르게 답하거나 답하지 못합니다. evaluation.yaml에서 새 `revision`을 주세요. 다른 심판이 되므로 보정하고 비교(judges compare 이전 새것)한 뒤 승인(judges accept)합니다. 항목이 50개보다 적으면 알 수 없습니다: 항목을 더하거나 canary_size: 0으로 끄세요."),
        **reasons,
    )  # fmt: skip


def calibration_freshness(evaluation: Evaluation) -> Checked:
    """Each judge key is tested against people, by labels that are not too old."""
    oldest = evaluation.project.config.checks.calibration_freshness.maximum_label_age_days
    labels = datasets.labels(evaluation.project.dataset_folder(evaluation.dataset), evaluation.dataset)
    rows = []
    for name, key in evaluation.judge_keys().items():
        if key is None:
            continue
        own = evaluation.read(CALIBRATIONS, key).filter((pl.col("metric") == name) & (pl.col("stratum") == ALL))
        last = own.sort("calibrated_at").tail(1).to_dicts()
        decision = last[0]["decision"] if last else CalibrationDecision.UNTESTED.value
        times = labels.filter((pl.col("metric") == name) & (pl.col("provenance") == "human"))[
            "labelled_at"
        ].drop_nulls()
        age = _age(max(times, default=None), evaluation.started_at)
        stale = decision in {CalibrationDecision.UNTESTED, CalibrationDecision.FAIL} or age is None or age > oldest
        rows.append({"metric": name, "judge": evaluation.judge_of(name), "decision": decision, "pair_count": last[0]["pair_count"] if last else 0,
                     "newest_label_days": age, "judge_key": key[:12], "is_bad": stale})  # fmt: skip
    return _judge(
        rows,
        (f"Label at least 50 texts by people (label export --metric M --n 60, label import), or look at older ones again (label export --again) when the newest are over {oldest} days old; then eval-pipeline calibrate.",
         f"사람이 50개 이상 라벨을 붙이세요(label export --metric M --n 60, label import). 최근 라벨이 {oldest}일보다 오래됐으면 다시 봅니다(label export --again). 그다음 eval-pipeline calibrate."),
        maximum_label_age_days=oldest,
    )  # fmt: skip


def _age(labelled_at: str | None, now: datetime) -> int | None:
    """Days since an ISO time; null when there is none or it is not one."""
    try:
        then = datetime.fromisoformat(labelled_at or "")
    except ValueError:
        return None
    return max(0, (now - (then if then.tzinfo else then.replace(tzinfo=now.tzinfo))).days)


def label_provenance(evaluation: Evaluation) -> Checked:
    """Where the labels of each judged metric come from; only people's certify."""
    labels = datasets.labels(evaluation.project.dataset_folder(evaluation.dataset), evaluation.dataset)
    counts = {(m, p): n for m, p, n in labels.group_by("metric", "provenance").len().iter_rows()}
    rows = []
    for name, key in evaluation.judge_keys().items():
        if key is not None:
            kinds = {kind: counts.get((name, kind), 0) for kind in ("human", "constructed", "model")}
            rows.append({"metric": name, **kinds, "is_bad": not kinds["human"]})
    return _judge(rows, ("Constructed labels and labels by a model certify no judge: label export --metric M --n 60.",
                         "구성된 라벨과 모델이 만든 라벨은 심판을 인증하지 못합니다: label export --metric M --n 60."))  # fmt: skip


def cost_against_budget(evaluation: Evaluation) -> Checked:
    """What was paid against the limits; an unknown cost under a cost limit does not pass."""
    spent, limits = paid(evaluation.project, evaluation.payers()), evaluation.limits()
    unknown = limits.max_cost_usd is not None and spent.cost_usd is None
    over = limits.max_cost_usd is not None and (spent.cost_usd or 0.0) > limits.max_cost_usd
    row = {"calls": spent.call_count, "max_calls": limits.max_calls, "cost_usd": spent.cost_usd, "max_cost_usd": limits.max_cost_usd,
           "stopped": evaluation.partial_reason() if evaluation.is_stopped() else None,
           "is_bad": unknown or over or evaluation.is_stopped()}  # fmt: skip
    return _judge([row], ("Raise `limits` or go on with `eval-pipeline run --resume` (what was answered is not paid again); an unknown price: add it to the price table.",
                          "`limits`를 올리거나 `eval-pipeline run --resume`으로 이어 가세요(받은 답은 다시 내지 않습니다). 가격을 모르면 가격표에 더하세요."))  # fmt: skip


def gate_decision(evaluation: Evaluation) -> Checked:
    """The gate's decision under the run's policy, with the rules that made it."""
    rules = evaluation.read(GATE_DECISIONS)
    words = "evidence_ko" if evaluation.project.config.language == Language.KO else "evidence"
    policy = evaluation.project.config.gate.policy(evaluation.options.policy)
    said = rules.filter(pl.col("rule") == "decision")["verdict"][0]
    fails = said in {decision.value for decision in policy.fail_on}
    rows = [
        {"rule": row["rule"], "metric": row["metric"], "verdict": row["verdict"], "evidence": row[words],
         "item_ids": row["item_ids"][:20], "is_bad": fails and row["verdict"] in {"FAIL", "BLOCKED", "INCONCLUSIVE"}}
        for row in rules.filter(pl.col("rule") != "decision").iter_rows(named=True)
    ]  # fmt: skip
    return _judge(rows, (f"eval-pipeline report --evaluation {evaluation.evaluation_id}; eval-pipeline show ITEM.",
                         f"eval-pipeline report --evaluation {evaluation.evaluation_id}; eval-pipeline show 항목."), decision=said)  # fmt: skip


def _whole(evaluation: Evaluation) -> pl.DataFrame:
    return evaluation.read(SUMMARIES).filter(pl.col("stratum") == ALL)
