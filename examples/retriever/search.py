"""A small extractive RAG system over the passages of the bundled dataset, and the same with a bug."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from eval_pipeline.llm.ngram_embedding import vector

ITEMS = Path(__file__).with_name("datasets") / "helpdesk" / "items.jsonl"
SHOWN = 8


@cache
def passages() -> list[tuple[str, list[float]]]:
    """Every passage of the handbook with its vector."""
    items = (json.loads(line) for line in ITEMS.read_text(encoding="utf-8").splitlines())
    texts = dict.fromkeys(text for item in items for text in item["reference_contexts"])
    return [(text, vector(text)) for text in texts]


def answer(item: dict[str, str], index: list[tuple[str, list[float]]] | None = None) -> dict[str, object]:
    """The passages most similar to the question, and the first of them as the response."""
    mine = vector(item["user_input"])
    near = sorted(index or passages(), key=lambda one: -sum(a * b for a, b in zip(mine, one[1], strict=True)))
    found = [text for text, _ in near[:SHOWN]]
    return {"response": found[0], "retrieved_contexts": found}


def answer_from_stale_index(item: dict[str, str]) -> dict[str, object]:
    """The same on an index that was built before the last three passages were written."""
    return answer(item, passages()[:-3])
