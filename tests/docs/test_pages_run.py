"""Every command that a page shows in a console block is run, and prints what the page says."""

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("documents", Path(__file__).with_name("documents.py"))
documents = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(documents)
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if "```console" in page.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_shows(page, run_cli, tmp_path):
    reader = documents.Reader(run_cli, tmp_path, "ko" if page.endswith(".ko.md") else "en")
    wrong = reader.read(ROOT / page, bool(os.environ.get("EVAL_WRITE_DOCS")))
    assert not wrong or os.environ.get("EVAL_WRITE_DOCS"), "\n\n".join(wrong)
