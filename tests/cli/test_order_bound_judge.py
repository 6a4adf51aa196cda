"""A pairwise run whose judge always prefers the response shown first: all ties, a flip rate of 1, and a warning."""

import json

import polars as pl
import pytest


@pytest.fixture
def duel(project, loopback):
    """aurora against the stored responses of borealis, before a loopback judge."""
    path = project / "evaluation.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "  embedded: {provider: embedded}",
        f"  embedded: {{provider: embedded}}\n  first: {{provider: openai, model: first-2026-01-01, base_url: '{loopback.base_url}'}}",
    )
    text = text.replace(
        "metrics:\n  answer_accuracy: {}",
        "metrics:\n  pairwise_preference: {against: borealis@0.9, judge: first, gate: false}\n  answer_accuracy: {}",
    )
    path.write_text(text, encoding="utf-8")
    return project


def test_a_run_warns_of_a_judge_that_always_prefers_the_first(duel, loopback, run_cli):
    loopback.control(grade=2)
    stored = run_cli("run", "--system", "borealis", "--metric", "answer_accuracy", "--limit", "12", cwd=duel)
    assert stored.returncode == 0, stored.stderr
    done = run_cli("run", "--metric", "pairwise_preference", "--limit", "12", cwd=duel)
    assert done.returncode == 0, done.stderr
    assert "order: pairwise_preference: flip rate 1.00, n 12" in done.stdout

    scores = pl.read_parquet(duel / "warehouse" / "tables" / "scores" / "**" / "*.parquet")
    rows = scores.filter(pl.col("metric") == "pairwise_preference")
    assert rows["value"].to_list() == [0.5] * 12
    assert {json.loads(one)["flipped"] for one in rows["components"]} == {1.0}
    pages = sorted((duel / "warehouse" / "reports").rglob("*.html"))
    assert "flip rate 1.00, n 12" in pages[-1].read_text(encoding="utf-8")
