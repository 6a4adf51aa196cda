"""The HTML report without a browser: what is on it, that it is bounded, and that no text of strangers becomes markup."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest
from report_scenario import HOSTILE, night

from eval_pipeline.errors import EvaluationNotFound
from eval_pipeline.report.items import TEXT_LIMIT, chosen_ids
from eval_pipeline.report.page import render
from eval_pipeline.report.view import view
from eval_pipeline.report.words import _TABLE, words
from eval_pipeline.vocabulary import Language


class Tags(HTMLParser):
    """All start tags with their attributes, and ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("language", list(Language))
def test_hostile_text_in_every_field_adds_no_tag_and_no_attribute(hostile_night, bad_night, language):
    hostile = Tags(render(hostile_night, language)).tags
    assert {tag for tag, _ in hostile} <= {tag for tag, _ in Tags(render(bad_night, language)).tags} | {"br"}
    for tag, attributes in hostile:
        assert tag not in {"script", "img", "iframe", "object", "form", "base"}
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert not attributes.get("href") or attributes["href"].startswith("#") or attributes["href"] == "data:,"


def test_ids_are_made_here_and_every_link_leads_to_one(hostile_night):
    tags = Tags(render(hostile_night, Language.EN)).tags
    ids = [attributes["id"] for _, attributes in tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert all(name.replace("-", "").isalnum() and name.isascii() for name in ids)
    links = {attributes["href"][1:] for tag, attributes in tags if tag == "a"}
    assert links <= set(ids)


def test_invisible_and_reordering_characters_are_shown_by_their_code_point(hostile_night):
    page = render(hostile_night, Language.EN)
    assert "⟨U+202E⟩" in page
    assert "⟨U+200B⟩" in page
    assert not set("\u202e\u2066\u200b\ufeff\u200d\x1b\x00\x07") & set(page)


def test_the_page_asks_for_nothing_from_outside(bad_night):
    page = render(bad_night, Language.EN)
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "").replace("HTTP 504", "").replace("https://", "http")


@pytest.mark.parametrize("language", list(Language))
def test_the_verdict_comes_first_with_its_reason_and_its_items(bad_night, language):
    page, t = render(bad_night, language), words(language)
    assert page.index(t["FAIL"]) < page.index("regression -.041") < page.index(f'id="numbers">{t["numbers"]}')
    assert 'href="#item-' in page[: page.index('id="numbers"')]


@pytest.mark.parametrize("language", list(Language))
def test_constructed_labels_are_called_so(bad_night, language):
    t = words(language)
    page = render(bad_night, language)
    assert t["constructed_note"].format(kinds=t["constructed"]) in page
    assert f"{t['label_axis']} ({t['constructed']})" in page


def test_human_labels_carry_no_such_note():
    found = night()
    found.frames["calibrations"] = found.frames["calibrations"].with_columns(pl.lit("human").alias("label_provenance"))
    page = render(view(found.read, found.evaluation_id), Language.EN)
    assert "Labels here are not from people" not in page


def test_both_judges_replies_stand_side_by_side(bad_night):
    page = render(bad_night, Language.EN)
    item = page[page.index('id="item-1"') : page.index('id="item-2"')]
    first, second = item.index("answer_accuracy.1"), item.index("answer_accuracy.2")
    assert item.rindex('<div class="pair">', 0, first) == item.rindex('<div class="pair">', 0, second)


def test_the_worst_of_each_metric_are_taken_in_turn():
    found = night(items=400, metrics=("a", "b", "c"))
    shown = chosen_ids(view(found.read, found.evaluation_id), limit=6)
    worst = found.frames["summaries"].filter(
        (pl.col("stratum") == "all") & (pl.col("evaluation_id") == found.evaluation_id)
    )
    firsts = {ids[0] for ids in worst["worst_item_ids"]}
    assert len(shown) == 6
    assert firsts <= set(shown)


def test_a_long_text_is_cut_and_the_rest_counted():
    found = night(items=12)
    found.frames["responses"] = found.frames["responses"].with_columns(
        pl.lit("x" * (TEXT_LIMIT + 1234)).alias("response")
    )
    page = render(view(found.read, found.evaluation_id), Language.EN)
    assert "… 1,234 more characters in the database" in page
    assert "x" * (TEXT_LIMIT + 1) not in page


def test_an_undefined_mean_is_said_to_be_undefined_and_not_zero():
    found = night()
    gone = {name: pl.lit(None, pl.Float64).alias(name) for name in ("mean", "mean_interval_lower", "mean_interval_upper", "cvar10", "q10",
                                                                   "mean_lower_bound", "mean_upper_bound")}  # fmt: skip
    found.frames["summaries"] = found.frames["summaries"].with_columns(
        *gone.values(), pl.lit("undefined").alias("mean_status"), pl.lit("nothing was scored").alias("mean_reason")
    )
    found.frames["scores"] = found.frames["scores"].with_columns(pl.lit(None, pl.Float64).alias("value"))
    page = render(view(found.read, found.evaluation_id), Language.EN)
    assert "undefined" in page
    assert "nothing was scored" in page


def test_an_evaluation_with_no_rows_at_all_still_has_a_page():
    found = night()
    for name in found.frames:
        if name != "evaluations":
            found.frames[name] = found.frames[name].clear()
    for language in Language:
        page = render(view(found.read, found.evaluation_id), language)
        assert words(language)["no_gate"] in page


def test_an_item_that_left_the_dataset_is_still_shown():
    found = night()
    found.frames["golden_items"] = found.frames["golden_items"].clear()
    assert 'id="item-1"' in render(view(found.read, found.evaluation_id), Language.EN)


def test_an_unknown_cost_is_not_free():
    found = night()
    found.frames["evaluations"] = found.frames["evaluations"].with_columns(pl.lit(None, pl.Float64).alias("cost_usd"))
    found.frames["verdicts"] = found.frames["verdicts"].with_columns(pl.lit(None, pl.Float64).alias("cost_usd"))
    page = render(view(found.read, found.evaluation_id), Language.EN)
    assert page[page.index('id="money"') :].count("unknown") == 3  # two metrics and the total


def test_what_changed_names_the_judge_or_prompts_of_a_metric():
    found = night()
    last = pl.col("evaluation_id") == found.evaluation_id
    keys = json.dumps({"answer_accuracy": "other", "faithfulness": "k"})
    found.frames["evaluations"] = found.frames["evaluations"].with_columns(
        pl.when(last).then(pl.lit(keys)).otherwise("judge_keys").alias("judge_keys")
    )
    assert "judge or prompts of answer_accuracy" in render(view(found.read, found.evaluation_id), Language.EN)


def test_a_baseline_chosen_by_hand_is_the_one_compared_with():
    found = night()
    first = found.frames["evaluations"]["evaluation_id"][0]
    assert view(found.read, found.evaluation_id, first).previous["evaluation_id"] == first
    with pytest.raises(EvaluationNotFound, match="nothing"):
        view(found.read, found.evaluation_id, "nothing")


def test_every_string_exists_in_both_languages_with_the_same_blanks():
    import string

    for name, (english, korean) in _TABLE.items():
        blanks = [{field for _, field, _, _ in string.Formatter().parse(text) if field} for text in (english, korean)]
        assert english, name
        assert korean, name
        assert blanks[0] == blanks[1], name


def test_hostile_text_really_was_in_the_fields(hostile_night):
    assert HOSTILE in hostile_night.items["user_input"][0]
    assert HOSTILE in hostile_night.evaluation["system"]


@pytest.mark.parametrize("language", list(Language))
def test_the_score_without_the_rotten_rows_stands_beside_the_score_and_hostile_findings_stay_text(bad_night, language):
    t, first = words(language), bad_night.items["item_id"][0]
    found = [{"severity": "error", "message": HOSTILE, "message_ko": HOSTILE, "count": 2, "item_ids": (first, HOSTILE)}]
    scores = pl.DataFrame({"metric": ["answer_accuracy", "faithfulness"], "mean": [0.5, 0.5], "scored_count": [30, 30],
                           "mean_without": [0.625, 0.5], "scored_count_without": [29, 30]})  # fmt: skip
    page = render(replace(bad_night, findings=found, without_rotten=scores), language)
    section = page[page.index('id="rot"') : page.index('id="since"')]
    assert ".625" in section and ">29<" in section and "faithfulness" not in section and t["without_rotten"] in section
    assert "<script" not in section and "⟨U+202E⟩" in section
    assert t["rot_unknown"] in render(bad_night, language)
    assert t["rot_none"] in render(replace(bad_night, findings=[]), language)
