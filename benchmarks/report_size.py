"""Builds the report of 10,000 items x 6 metrics and opens it: seconds, megabytes, seconds in Chromium when there is one.

python benchmarks/report_size.py [ITEMS] [METRICS]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "report"))

from report_scenario import night

from eval_pipeline.report.page import render
from eval_pipeline.report.view import view
from eval_pipeline.vocabulary import Language


def main() -> None:
    items, metrics = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (10_000, 6)
    text = " 설정 화면을 열고 보안 항목에서 비밀번호를 바꿉니다." * 30
    found = night(items, tuple(f"metric_{n}" for n in range(metrics)), word=text)
    begin = time.perf_counter()
    seen = view(found.read, found.evaluation_id)
    page = render(seen, Language.KO)
    built = time.perf_counter() - begin
    size = len(page.encode())
    print(f"{items:,} items x {metrics} metrics: built in {built:.2f} s, {size / 1e6:.2f} MB")
    if shutil.which("chromium"):
        print(f"opened in Chromium in {opened(page):.2f} s")


def opened(page: str) -> float:
    """Seconds from navigation to the load event, layout included."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        path.write_text(page, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        begin = time.perf_counter()
        tab.goto(path.as_uri())
        tab.evaluate("document.documentElement.scrollHeight")
        spent = time.perf_counter() - begin
        browser.close()
    return spent


if __name__ == "__main__":
    main()
