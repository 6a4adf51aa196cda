"""The examples of the ragas page on NVIDIA metrics, with our imports: same class and field names, same `.value`."""

import asyncio

import pytest

from eval_pipeline import AnswerAccuracy, ContextRelevance, OverlapJudge, ResponseGroundedness

CONTEXTS = [
    "Albert Einstein was born March 14, 1879.",
    "Albert Einstein was born at Ulm, in Württemberg, Germany.",
]
PAGE = [
    (
        AnswerAccuracy,
        {
            "user_input": "When was Einstein born?",
            "response": "Albert Einstein was born in 1879.",
            "reference": "Albert Einstein was born in 1879.",
        },
    ),
    (ContextRelevance, {"user_input": "When and Where Albert Einstein was born?", "retrieved_contexts": CONTEXTS}),
    (
        ResponseGroundedness,
        {"response": "Albert Einstein was born in 1879.", "retrieved_contexts": CONTEXTS},
    ),
]


@pytest.mark.parametrize(("metric", "fields"), PAGE)
def test_an_example_of_the_page_scores_one(metric, fields):
    scorer = metric(judge=OverlapJudge())

    async def page():
        result = await scorer.ascore(**fields)
        return result.value

    assert asyncio.run(page()) == 1.0
    assert scorer.score(**fields).value == 1.0
