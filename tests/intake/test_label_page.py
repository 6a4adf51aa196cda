"""The labelling page in a real browser: labelled by keyboard, reloaded, exported, imported, calibrated."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from labelling import as_labels, tasks

from eval_pipeline.intake import datasets, label_files, sheets
from eval_pipeline.metrics import declare
from eval_pipeline.stages import calibration
from eval_pipeline.vocabulary import Language

CHROMIUM = Path("/usr/bin/chromium")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def test_the_page_holds_no_markup_of_a_text(tmp_path: Path) -> None:
    sheets.export_sheet(tmp_path, tasks(1), declare("answer_accuracy"), "<b>kim</b>", tmp_path / "p.html", Language.KO)
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<script>document.title" not in page and "<b>kim" not in page
    assert len(re.findall("</script>", page)) == 2
    assert not re.search(r"(src|href)=|https?://|@import", page)


@pytest.fixture
def browser():
    if not CHROMIUM.exists():
        pytest.skip("no Chromium here")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.browser
def test_fifty_items_are_labelled_by_keyboard_and_calibrate(tmp_path: Path, browser, finished, run_cli) -> None:
    handed_out = tasks(50)
    sheets.export_sheet(tmp_path, handed_out, declare("answer_accuracy"), "kim", tmp_path / "page.html", Language.KO)
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    problems: list[str] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((tmp_path / "page.html").as_uri())

    # The script of the first response is text, and what is invisible shows.
    assert page.title() == "answer_accuracy · kim"
    shown = page.locator("#texts").inner_text()
    assert "<script>document.title = 'owned'</script>" in shown and "⟨U+202E⟩" in shown
    assert page.locator("#texts script").count() == 0
    assert page.locator("h2").first.inner_text() == "질문"

    given = ["024"[n % 3] for n in range(50)]
    for number in range(20):
        page.keyboard.press(given[number])
    page.keyboard.press("n")
    page.keyboard.type("4 확인 필요")  # digits inside the note are no scores
    page.keyboard.press("Enter")
    page.reload()
    assert page.locator("#position").inner_text() == "21 / 50 · 20 완료"
    assert page.locator("#note").input_value() == "4 확인 필요"
    for number in range(20, 50):
        page.keyboard.press(given[number])
    # A second thought: back to the last but one, cleared and scored anew.
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("x")
    page.keyboard.press("u")
    page.keyboard.press(given[48])
    page.keyboard.press("l")
    assert page.locator("#position").inner_text().endswith("50 labelled")

    files = {}
    for key in ("e", "c"):
        with page.expect_download() as waiting:
            page.keyboard.press(key)
        files[key] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(files[key])
    context.close()
    assert problems == [] and all(url.startswith(("file:", "blob:")) for url in requests)

    by_json, by_csv = (sheets.import_sheet(tmp_path, files[key], "kim", NOW) for key in ("e", "c"))
    assert by_json == by_csv
    assert (len(by_json.rows), by_json.blank_count, by_json.problems) == (50, 0, [])
    scores = {row["item_id"]: row["score"] for row in by_json.rows}
    assert [scores[task.item_id] for task in handed_out] == [float(one) for one in given]
    assert next(row for row in by_json.rows if row["item_id"] == "q20")["note"] == "4 확인 필요"

    label_files.save(tmp_path, by_json, "kim")
    labels = datasets.labels(tmp_path, "d")
    assert labels.equals(as_labels(by_json.rows))
    people = labels["value"].to_list()
    result = calibration.compare(people, people)
    assert (result.pair_count, str(result.decision)) == (50, "pass")

    # The same file through the command line of a project that handed these texts out.
    project = tmp_path / "project"
    shutil.copytree(finished[0], project)
    sheets.export_sheet(
        project / "datasets" / "helpdesk",
        handed_out,
        declare("answer_accuracy"),
        "kim",
        tmp_path / "again.html",
        Language.KO,
    )
    done = run_cli("label", "import", files["e"], "--annotator", "kim", "--json", cwd=project)
    assert done.returncode == 0 and json.loads(done.stdout)["label_count"] == 50, done.stderr
    done = run_cli("calibrate", "--metric", "answer_accuracy", "--json", cwd=project)
    [found] = json.loads(done.stdout)
    assert (found["pair_count"], found["label_provenance"]) == (50, "human")


@pytest.mark.browser
def test_a_share_is_given_by_number_key_or_typed(tmp_path: Path, browser) -> None:
    handed_out = tasks(2)
    sheets.export_sheet(tmp_path, handed_out, declare("faithfulness"), "kim", tmp_path / "page.html", Language.EN)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.keyboard.press("4")
    page.locator("#share").fill("0.4")
    page.keyboard.press("Enter")
    answers = page.evaluate("Object.values(state.answers).map(one => one.score)")
    assert answers == [0.75, 0.4]
