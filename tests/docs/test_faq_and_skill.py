"""The FAQ's configuration is valid, its two languages say the same; the skill has its front matter and every refusal."""

import re

import pages
import pytest
import yaml

from eval_pipeline.config import EvaluationConfig

REST = {
    "version": 1,
    "datasets": {"mine": {"path": "datasets/mine"}},
    "systems": {"bot": {"source": "recorded", "path": "datasets/mine/responses/bot.jsonl", "release": "1"}},
    "judges": {"embedded": {"provider": "embedded"}},
    "metrics": {"answer_accuracy": {}},
}
SNIPPETS = [
    (page, number, block.text)
    for page in ("README.md", "README.ko.md", "docs/faq.md", "docs/faq.ko.md")
    for number, block in enumerate(one for one in pages.blocks(page) if one.language == "yaml")
]


@pytest.mark.parametrize(("page", "number", "text"), SNIPPETS)
def test_a_piece_of_configuration_is_valid_beside_the_rest(page, number, text):
    assert len(SNIPPETS) >= 10
    EvaluationConfig.model_validate(REST | yaml.safe_load(text))


def test_the_faq_says_the_same_in_both_languages():
    english, korean = pages.text("docs/faq.md"), pages.text("docs/faq.ko.md")
    told = [[yaml.safe_load(one.text) for one in pages.blocks(page)] for page in ("docs/faq.md", "docs/faq.ko.md")]
    assert told[0] == told[1]
    assert len(re.findall("^## ", english, re.MULTILINE)) == len(re.findall("^## ", korean, re.MULTILINE)) == 8
    calls = [
        {tuple(line[:2]) for line in pages.eval_pipeline_lines(page)} for page in ("docs/faq.md", "docs/faq.ko.md")
    ]
    assert {first for first, *_ in calls[0]} == {first for first, *_ in calls[1]}


SKILL = pages.text("docs/skill-eval-architect.md")
REFUSALS = ("50개", "자기 평가", "평균만", "병렬 기준선", "무효", "latest")


def test_the_skill_has_a_name_and_says_in_korean_when_to_use_it():
    front = yaml.safe_load(SKILL.split("---\n")[1])
    assert set(front) == {"name", "description"}
    assert re.fullmatch(r"[a-z][a-z-]{2,63}", front["name"])
    assert re.search("[가-힣]", front["description"])
    assert 40 < len(front["description"]) <= 1024


def test_the_skill_refuses_what_the_pipeline_refuses():
    refused = SKILL.split("## 거부한다")[1].split("\n## ")[0]
    assert [word for word in REFUSALS if word not in refused] == []


def test_the_skill_goes_through_the_whole_design():
    shown = {line[0] for line in pages.eval_pipeline_lines("docs/skill-eval-architect.md")}
    assert shown >= {"check", "dataset", "run", "label", "calibrate", "judges", "gate", "plan", "backfill", "show"}


@pytest.mark.parametrize("page", [page for page in pages.PAGES if page != "CHANGELOG.md"])
def test_links_inside_the_repository_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", pages.text(page))
    assert [link for link in links if not (pages.ROOT / page).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("page", pages.PAGES)
def test_pictures_are_small(page):
    for name in re.findall(r"!\[[^\]]+\]\(([^)]+\.png)\)", pages.text(page)):
        assert (pages.ROOT / page).parent.joinpath(name).stat().st_size < 250_000
