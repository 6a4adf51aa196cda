"""Charts inside Markdown: what Dagster's UI shows of a step's table."""

import base64
import re
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from eval_pipeline.report.images import images
from eval_pipeline.vocabulary import Language

IMAGE = re.compile(r"!\[([^\]]*)\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)")


@pytest.mark.parametrize("step", ["summaries", "calibrations"])
@pytest.mark.parametrize("language", list(Language))
def test_each_metric_has_one_small_drawing_that_is_a_document(hostile_night, step, language):
    text = images(step, getattr(hostile_night, step), language)
    found = IMAGE.findall(text)
    assert sorted(alt for alt, _ in found) == ["answer_accuracy", "faithfulness"]
    for _, drawing in found:
        assert ET.fromstring(base64.b64decode(drawing)).get("role") == "img"
    assert len(text) < 50_000


def test_nothing_is_drawn_of_what_is_undefined_or_of_other_steps(bad_night):
    undefined = bad_night.summaries.with_columns(mean=pl.lit(None, pl.Float64))
    assert images("summaries", undefined, Language.EN) is None
    assert images("calibrations", bad_night.calibrations.with_columns(statistics=pl.lit("{}")), Language.EN) is None
    assert images("scores", bad_night.scores, Language.EN) is None
