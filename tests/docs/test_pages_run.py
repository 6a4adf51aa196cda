"""Every command and every output of README, tutorial and docs is run in a fresh folder and compared."""

import difflib

import pages
import pytest

RUNNABLE = [page for page in pages.PAGES if any(block.language == "console" for block in pages.blocks(page))]


@pytest.mark.parametrize("page", RUNNABLE)
def test_what_the_page_shows_is_what_happens(page, tmp_path, clean_environment):
    for command, shown, real, code in pages.run(page, tmp_path, clean_environment()):
        if not shown.strip():
            assert code == 0, (command, real)
        elif not pages.agrees(shown, real):
            told, happened = pages.plain(shown).splitlines(), pages.plain(real).splitlines()
            pytest.fail(
                f"$ {command}\n" + "\n".join(difflib.unified_diff(told, happened, "shown", "real", lineterm=""))
            )
