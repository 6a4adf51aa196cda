"""Fifty labelled answers, G-Eval style grades for them, and how far the judge agrees: Spearman's rho with its limits.

python examples/g_eval_calibration.py

The labels in `data/labelled_answers.jsonl` were written together with the answers. They show the arithmetic; only labels
that people gave to real answers certify a judge. Put your own into the file and read the decision again.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from eval_pipeline import ChatModel, GEval, OverlapJudge
from eval_pipeline.stages.calibration.pairs import PairsReport, calibrate_pairs

DATA = Path(__file__).with_name("data") / "labelled_answers.jsonl"
CRITERIA = "The response is factually correct and agrees with the reference."
STEPS = (
    "Read the reference.",
    "List what the response states.",
    "Mark each statement as supported by the reference or not, and each fact of the reference as covered or not.",
    "Grade 5 when all is supported and covered, 3 when about half is, 1 when it is wrong or off the point.",
)


async def grades(judge: ChatModel, rows: list[dict]) -> list[float | None]:
    """G-Eval on a scale of 1 to 5 with pinned steps, as values in [0, 1]."""
    metric = GEval(
        judge=judge,
        criteria=CRITERIA,
        steps=STEPS,
        needs=("user_input", "response", "reference"),
        method="single",  # the embedded judge has no log-probabilities
    )
    fields = ("user_input", "response", "reference")
    results = await asyncio.gather(*(metric.ascore(**{name: row[name] for name in fields}) for row in rows))
    return [result.value for result in results]


def main() -> PairsReport:
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    values = asyncio.run(grades(OverlapJudge(), rows))
    labels = [row["label"] for row in rows]
    # Five answers to each question resemble each other, so the limits go by question, not by answer.
    found = calibrate_pairs(
        labels, values, name="overlap_judge", metric="g_eval", clusters=[row["question"] for row in rows]
    )
    report = found.report
    rho, bias = report["spearman_rho"], report["bias"]
    print("Judge: overlap_judge, the embedded lexical baseline; it reads the texts, not the criteria.")
    print(f"pairs {report['pair_count']}, without a grade {report['dropped_count']}")
    print(f"Spearman's rho {rho['value']:.2f}, one-sided 95 % limits {rho['lower']:.2f} and {rho['upper']:.2f}")
    print(f"bias {bias['value']:+.2f} (judge minus label)")
    print(f"decision if these were human labels: {report['decision']} (the lower limit must exceed {report['bar']})")
    if report["labels_needed"]:
        print(f"labels needed in all, if rho is right: about {report['labels_needed']}")
    far = sorted(zip(rows, values, strict=True), key=lambda pair: -abs((pair[1] or 0) - pair[0]["label"]))[:5]
    print("\nfarthest apart:")
    for row, value in far:
        print(f"  label {row['label']:.2f}  judge {value:.2f}  {row['response']}")
    print("\nThese labels were written with the answers: they certify no judge, whatever the decision.")
    return found


if __name__ == "__main__":
    main()
