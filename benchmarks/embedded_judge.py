"""Measures the embedded judge against people on the data under EVAL_DATA_DIR, beside containment and recorded models.

Run `python benchmarks/embedded_judge.py`; it prints a Markdown table of Spearman's rho with human_score, and the speed.
The judge sees what the product would show it: one call per template, with the full `reference` string, whatever
separates the wordings in it. "per wording" is the maximum over single wordings, which containment always gets.
"""

from __future__ import annotations

import json
import os
import time
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

from scipy.stats import spearmanr

from eval_pipeline.llm.overlap_judge import reply_text

DATA = Path(os.environ.get("EVAL_DATA_DIR", Path(__file__).parents[2] / "shared" / "data"))
GRADES = {"answer_accuracy": (0, 2, 4), "context_relevance": (0, 1, 2)}


def judged(metric: str, **inputs: object) -> float:
    """The score the product computes: the mean of both templates' grades over the highest grade."""
    grades = GRADES[metric]
    replies = [reply_text(f"{metric}.{view}", inputs, grades) for view in (1, 2)]
    return sum(json.loads(reply)["grade"] for reply in replies) / (len(replies) * grades[-1])


def plain(text: str) -> str:
    """NFKC, lower case, punctuation as spaces, articles dropped."""
    lowered = unicodedata.normalize("NFKC", text).lower()
    spaced = "".join(" " if unicodedata.category(c).startswith("P") else c for c in lowered)
    return " ".join(word for word in spaced.split() if word not in {"a", "an", "the"})


def contained(row: dict) -> float:
    """1 when any single wording of the reference is a substring of the response."""
    response = plain(row["response"] or "")
    return float(any(plain(wording) in response for wording in row["references"] if plain(wording)))


def contained_whole(row: dict) -> float:
    """1 when the reference string as it stands is a substring of the response."""
    return float(plain(row["reference"]) in plain(row["response"] or ""))


def accuracy(row: dict) -> float:
    """The embedded judge on the full reference string."""
    texts = {"user_input": row["user_input"], "response": row["response"] or ""}
    return judged("answer_accuracy", **texts, reference=row["reference"])


def accuracy_per_wording(row: dict) -> float:
    """The embedded judge's best score over the single wordings of the reference."""
    texts = {"user_input": row["user_input"], "response": row["response"] or ""}
    return max(judged("answer_accuracy", **texts, reference=wording) for wording in row["references"])


def relevance(row: dict) -> float:
    """The embedded judge on the joined contexts."""
    joined = "\n\n".join(row["retrieved_contexts"])
    return judged("context_relevance", user_input=row["user_input"], retrieved_contexts=joined)


def recorded(judge: str) -> Callable[[dict], float | None]:
    """The score a recorded judge gave, or None."""

    def score(row: dict) -> float | None:
        return next((raw["score"] for raw in row["judge_raw"] if raw["judge"] == judge), None)

    return score


SCORERS: dict[str, list[tuple[str, Callable[[dict], float | None]]]] = {
    "openqa301_answer_accuracy": [
        ("embedded judge", accuracy),
        ("embedded judge, per wording", accuracy_per_wording),
        ("containment, per wording", contained),
        ("containment, whole string", contained_whole),
        ("GPT-4 (recorded)", recorded("gpt-4")),
        ("text-davinci-003 (recorded)", recorded("text-davinci-003")),
    ],
    "evouna_triviaqa_answer_accuracy": [
        ("embedded judge", accuracy),
        ("embedded judge, per wording", accuracy_per_wording),
        ("containment, per wording", contained),
        ("containment, whole string", contained_whole),
    ],
    "nomiracl_ko_context_relevance": [("embedded judge", relevance)],
}


def table(name: str, scorers: Sequence[tuple[str, Callable[[dict], float | None]]]) -> list[str]:
    """The rows of one data set: scorer, pairs, rho, milliseconds per row."""
    rows = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").split("\n") if line]
    lines = []
    for label, scorer in scorers:
        start = time.perf_counter()
        pairs = [(row["human_score"], score) for row in rows if (score := scorer(row)) is not None]
        spent = 1000 * (time.perf_counter() - start) / len(rows)
        rho = spearmanr(*zip(*pairs, strict=True)).statistic
        lines.append(f"| {name} | {label} | {len(pairs)} | {rho:.3f} | {spent:.2f} |")
    return lines


def main() -> None:
    """Prints the table; data sets that are not there are named."""
    print("| data set | scorer | pairs | Spearman's rho | ms per row |\n| --- | --- | --- | --- | --- |")
    for name, scorers in SCORERS.items():
        if (DATA / f"{name}.jsonl").exists():
            print("\n".join(table(name, scorers)))
        else:
            print(f"| {name} | not in {DATA} | | | |")


if __name__ == "__main__":
    main()
