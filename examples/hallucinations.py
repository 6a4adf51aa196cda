"""Ten RAG answers, each with one hallucination that is known: does faithfulness catch it?

python examples/hallucinations.py
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline import ChatModel, Faithfulness, OverlapJudge

DATA = Path(__file__).with_name("data") / "hallucinations.jsonl"


@dataclass(frozen=True, slots=True)
class Finding:
    """What faithfulness says of one answer.

    Attributes:
        value: faithfulness of the answer; 0.5 is right, since one of its two claims is false.
        caught: the hallucinated claim was found unsupported.
        false_alarm: the grounded claim was, too.
    """

    id: str
    kind: str
    hallucination: str
    value: float | None
    caught: bool
    false_alarm: bool


def check(judge: ChatModel, rows: list[dict]) -> list[Finding]:
    """Faithfulness of `grounded` and `hallucination` put together as one answer."""
    metric, found = Faithfulness(judge=judge), []
    for row in rows:
        result = metric.score(
            user_input=row["user_input"],
            response=f"{row['grounded']} {row['hallucination']}",
            retrieved_contexts=row["retrieved_contexts"],
        )
        support: dict[str, list[float]] = {}
        for asked in result.verdicts:
            claim = asked.verdict.question.inputs.get("claim")
            if claim is not None and asked.verdict.value is not None:
                support.setdefault(claim, []).append(asked.verdict.value)
        unsupported = {claim for claim, values in support.items() if sum(values) / len(values) < 0.5}
        found.append(
            Finding(row["id"], row["kind"], row["hallucination"], result.value,
                    row["hallucination"] in unsupported, row["grounded"] in unsupported)
        )  # fmt: skip
    return found


def main() -> list[Finding]:
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    found = check(OverlapJudge(), rows)
    print(
        "Judge: overlap_judge, the embedded lexical baseline. It compares words, numbers and negations, not meanings.\n"
    )
    for one in found:
        value = "null" if one.value is None else f"{one.value:.2f}"
        wrong = "  (and the grounded claim was called unsupported)" if one.false_alarm else ""
        print(
            f"{one.id}  {one.kind:<14} {value:>5}  {'caught' if one.caught else 'MISSED':<7} {one.hallucination}{wrong}"
        )
    missed = sorted({one.kind for one in found if not one.caught})
    print(f"\ncaught {sum(one.caught for one in found)} of {len(found)}", end="")
    print(f"; missed: {', '.join(missed)}" if missed else "")
    print(f"false alarms on the grounded claims: {sum(one.false_alarm for one in found)} of {len(found)}")
    lucky = [one.id for one in found if one.value == 0.5 and not one.caught]
    if lucky:
        print(f"right score for the wrong reason: {', '.join(lucky)}; read the claims, not the mean alone")
    return found


if __name__ == "__main__":
    main()
