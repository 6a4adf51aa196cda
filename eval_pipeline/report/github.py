"""What GitHub shows: the step summary, a comment, and annotations as workflow commands that no text of the data can forge.

The usual future import is left out: its name is that of the function here.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from eval_pipeline.report.inert import visible
from eval_pipeline.report.words import rule_name, words
from eval_pipeline.vocabulary import Decision, Language

SUMMARY_LIMIT = 1_000_000
"""GitHub refuses a step summary above 1 MiB."""
COMMENT_LIMIT = 65_000
"""And a comment above 65,536 characters."""
LEVELS = {Decision.FAIL: "error", Decision.BLOCKED: "error", Decision.INCONCLUSIVE: "warning"}


def annotations(rules: pl.DataFrame, language: Language) -> Iterator[str]:
    """One workflow command per rule that failed, blocked or is inconclusive; the decision first.

    Args:
        rules: `gate_decisions` rows.
        language: of the messages.
    """
    t = words(language)
    evidence = "evidence_ko" if language == Language.KO else "evidence"
    rows = sorted(rules.iter_rows(named=True), key=lambda row: row["rule"] != "decision")
    if not any(row["rule"] == "decision" for row in rows):
        yield f"::error title={_property('eval-pipeline')}::{_message(t['no_gate'])}"
    for row in rows:
        level = LEVELS.get(row["verdict"])
        if level is None:
            continue
        metric = "" if row["metric"] == "all" else f"{row['metric']} "
        items = row["item_ids"] or []
        named = f" [{', '.join(map(visible, items[:10]))}{' …' if len(items) > 10 else ''}]" if items else ""
        title = f"{row['verdict']}: {metric}{rule_name(row['rule'], t)}"
        yield f"::{level} title={_property(title)}::{_message((row[evidence] or row['evidence']) + named)}"


def write_step_summary(markdown: str, path: str | None) -> None:
    """Appends Markdown to the file GitHub names in GITHUB_STEP_SUMMARY; does nothing where there is none."""
    if not path:
        return
    encoded = markdown.encode()
    if len(encoded) > SUMMARY_LIMIT:
        encoded = encoded[:SUMMARY_LIMIT].rsplit(b"\n", 1)[0] + "\n\n…".encode()
    with Path(path).open("ab") as file:
        file.write(encoded + b"\n")


def comment(markdown: str) -> str:
    """The body of a pull request comment: whole lines, as many as GitHub takes; the marker stays first."""
    if len(markdown) <= COMMENT_LIMIT:
        return markdown
    return markdown[:COMMENT_LIMIT].rsplit("\n", 1)[0] + "\n\n…\n"


@contextmanager
def inert_output() -> Iterator[None]:
    """GitHub obeys no command in what is printed meanwhile, wherever in a line it stands."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    try:
        yield
    finally:
        print(f"::{token}::", flush=True)


def _message(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
