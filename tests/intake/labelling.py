"""Tasks that tests of sheets and of the page share."""

from __future__ import annotations

import polars as pl

from eval_pipeline.intake.label_tasks import LabelTask
from eval_pipeline.metrics.texts import content_sha256
from eval_pipeline.tables import HUMAN_LABELS

HOSTILE = "- 항목\n<script>document.title = 'owned'</script></textarea>\u202e\u200b=1+1"


def tasks(count: int, metric: str = "answer_accuracy") -> list[LabelTask]:
    found = []
    for n in range(count):
        texts = {"user_input": f"질문 {n}?", "response": HOSTILE if n == 0 else f"=answer {n}", "reference": f"00{n}"}
        found.append(LabelTask(f"q{n}", metric, content_sha256(texts), texts, "faq", None, 0.5))
    return found


def as_labels(rows) -> pl.DataFrame:
    import json

    return HUMAN_LABELS.frame(
        {"dataset": "d", **row, "texts": json.dumps(row["texts"], ensure_ascii=False)} for row in rows
    )
