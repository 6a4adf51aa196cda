"""The report in a real Chromium: no errors, no requests, nothing active, readable narrow and wide, light, dark and printed."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from report_scenario import HOSTILE, night

from eval_pipeline.report.page import render
from eval_pipeline.report.view import view
from eval_pipeline.vocabulary import Language

CHROMIUM = Path(shutil.which("chromium") or "/usr/bin/chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no chromium on this machine"),
]


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium, tmp_path):
    """Opens a page's HTML and collects console messages, page errors, dialogs and requests to anywhere but the file."""
    contexts = []

    def open_(html: str, width: int = 1440, scheme: str = "light"):
        path = tmp_path / "report.html"
        path.write_text(html, encoding="utf-8")
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page, events = context.new_page(), []
        page.on("console", lambda message: events.append(("console", message.text)))
        page.on("pageerror", lambda error: events.append(("error", str(error))))
        page.on("dialog", lambda dialog: (events.append(("dialog", dialog.message)), dialog.dismiss()))
        page.on(
            "request", lambda request: events.append(("request", request.url)) if request.url != path.as_uri() else None
        )
        page.goto(path.as_uri())
        return page, events

    yield open_
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("language", list(Language))
def test_hostile_text_stays_text_and_the_page_fits(opened, hostile_night, language, width, scheme):
    page, events = opened(render(hostile_night, language), width, scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.mouse.move(100, 300)
    page.wait_for_timeout(100)
    assert [event for event in events if not event[1].startswith("data:,")] == []
    assert page.title() != "owned"
    assert page.evaluate("document.querySelectorAll('script, img, iframe, form, [onmouseover], [onerror]').length") == 0
    assert page.evaluate("[...document.links].every(a => a.getAttribute('href').startsWith('#'))")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "<script>" in page.inner_text("main")


def test_light_and_dark_differ_and_both_have_contrast(opened, bad_night):
    colours = [
        opened(render(bad_night, Language.EN), scheme=scheme)[0].evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        for scheme in ("light", "dark")
    ]
    assert colours[0] != colours[1]
    assert colours[0] == ["rgb(255, 255, 255)", "rgb(27, 36, 48)"]


def test_everything_opens_with_the_keyboard(opened, bad_night):
    page, _ = opened(render(bad_night, Language.EN))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#item-1 > summary").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.getElementById('item-1').open")
    assert page.locator("#item-1").get_by_text("answer_accuracy.2").is_visible()


def test_printing_opens_the_details_in_light_colours(opened, bad_night):
    page, _ = opened(render(bad_night, Language.EN), scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#item-1 .text").first.is_visible()
    page.set_viewport_size({"width": 703, "height": 1000})  # A4 less 12 mm at either side, at 96 pixels an inch
    wide = "[...document.querySelectorAll('table, svg')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"
    assert page.evaluate(wide) == 0
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_korean_is_set_as_korean(opened, bad_night):
    page, events = opened(render(bad_night, Language.KO))
    assert page.evaluate("document.documentElement.lang") == "ko"
    text = page.inner_text("main")
    assert "심판을 믿을 수 있는가?" in text
    assert "하위 10% 평균" in text
    assert [event for event in events if not event[1].startswith("data:,")] == []


@pytest.fixture(scope="session")
def axe(tmp_path_factory) -> str:
    """The text of axe-core, from npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on this machine")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(
        [npm, "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"npm cannot install axe-core: {done.stderr[-200:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", list(Language))
def test_axe_finds_no_serious_violation(chromium, bad_night, axe, tmp_path, language, scheme):
    path = tmp_path / "report.html"
    path.write_text(render(bad_night, language), encoding="utf-8")
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document).then(r => r.violations)")
    context.close()
    serious = [
        (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"])
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]
    assert serious == [], json.dumps(serious, indent=1)


@pytest.mark.slow
def test_ten_thousand_items_and_six_metrics_are_built_and_opened_quickly(opened):
    found = night(items=10_000, metrics=tuple(f"metric_{n}" for n in range(6)), word=HOSTILE)
    begin = time.perf_counter()
    html = render(view(found.read, found.evaluation_id), Language.EN)
    assert time.perf_counter() - begin < 10
    assert len(html.encode()) < 15_000_000
    page, _ = opened(html)
    spent = page.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart")
    assert 0 < spent < 3000
