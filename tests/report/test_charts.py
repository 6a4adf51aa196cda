"""Charts: readable alone, the same numbers as the tables, no text of strangers as markup."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import polars as pl
import pytest

from eval_pipeline.errors import UnknownName
from eval_pipeline.report import charts
from eval_pipeline.report.plots import chart_png, chart_svg, plots
from eval_pipeline.report.sections import histogram
from eval_pipeline.report.words import words
from eval_pipeline.vocabulary import Language

NAMES = [
    f"{kind}/{metric}"
    for kind in ("calibration", "distribution", "trend")
    for metric in ("answer_accuracy", "faithfulness")
]


def test_an_evaluation_has_three_charts_per_metric(bad_night):
    assert sorted(plots(bad_night, Language.EN)) == NAMES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("language", list(Language))
def test_each_chart_is_a_document_with_a_label_and_nothing_active(hostile_night, name, language):
    top = ET.fromstring(chart_svg(hostile_night, name, language))
    assert top.get("role") == "img"
    assert name.split("/")[1] in top.get("aria-label")
    tags = {one.tag.rpartition("}")[2] for one in top.iter()}
    assert tags <= {"svg", "style", "line", "rect", "text", "polygon", "polyline", "circle", "title", "g"}
    assert not any(key.startswith("on") or "href" in key for one in top.iter() for key in one.attrib)


def test_a_png_is_drawn_at_twice_its_size(bad_night):
    image = chart_png(bad_night, "distribution/answer_accuracy", Language.KO)
    assert image.startswith(b"\x89PNG")
    assert int.from_bytes(image[16:20]) == 680  # 340 wide


def test_a_chart_that_is_not_there_is_named_with_the_nearest(bad_night):
    with pytest.raises(UnknownName, match="trend/faithfulness"):
        chart_svg(bad_night, "trend/faithfullness", Language.EN)


def test_every_grade_falls_into_the_middle_of_its_own_bin_and_the_worst_tenth_is_marked():
    scores = pl.DataFrame({"value": [0.0, 0.25, 0.25, 0.5, 0.75, 1.0, 1.0, None]})
    row = {"metric": "m", "stratum": "all", "q10": 0.25}
    drawn = ET.fromstring(histogram(scores, row, words(Language.EN)))
    bars = [(one.get("class"), float(one.get("x"))) for one in drawn if one.tag == "rect"]
    # bins are 1/20 apart on 316/21 wide steps: 0, 5, 10, 15, 20
    assert [kind for kind, _ in bars] == ["c-low", "c-low", "c-bar", "c-bar", "c-bar"]
    assert [round((x - 13) / (316 / 21)) for _, x in bars] == [0, 5, 10, 15, 20]
    assert drawn.get("aria-label") == "m, all: 7 values, 3 at or below .25"


def test_a_set_without_values_has_no_histogram():
    empty = pl.DataFrame({"value": [None]}, schema={"value": pl.Float64})
    assert histogram(empty, {"metric": "m", "stratum": "all", "q10": None}, words(Language.EN)) is None


def test_a_trend_without_intervals_still_draws_its_means():
    drawn = charts.trend(
        [charts.Point("a", 0.5, None, None), charts.Point("b", 0.5, None, None, is_new_judge=True)], "l"
    )
    ET.fromstring(drawn)
    assert "NaN" not in drawn
    assert '<rect class="c-new"' in drawn
