"""Two evaluations beside each other: in the report against any other, and over a change of judge."""

import json
import re
import shutil

import pytest

WORSE = "I do not know."


@pytest.fixture(scope="module")
def three_nights(finished, run_cli, tmp_path_factory):
    """A project evaluated three times: release 1.4, then a worse 1.5 twice. Its folder and the three ids."""
    folder = shutil.copytree(finished[0], tmp_path_factory.mktemp("nights") / "p")
    path = folder / "datasets" / "helpdesk" / "responses" / "aurora.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows[::5]:
        row["response"] = WORSE
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    config = folder / "evaluation.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace('release: "1.4"', 'release: "1.5"'), encoding="utf-8")
    for _ in range(2):
        done = run_cli("run", cwd=folder)
        assert done.returncode == 0, done.stderr
    ids = [row["evaluation_id"] for row in json.loads(run_cli("evaluations", "--json", cwd=folder).stdout)]
    assert len(ids) == 3
    return folder, ids


def since(page):
    return page.split('id="since"')[1].split("</section>")[0]


def test_a_report_compares_with_the_night_before_or_with_the_baseline_named(three_nights, run_cli, tmp_path):
    folder, (first, second, third) = three_nights
    pages = {}
    for name, given in {"before": (), "first": ("--baseline", first)}.items():
        target = tmp_path / f"{name}.html"
        done = run_cli("report", *given, "--out", target, cwd=folder)
        assert done.returncode == 0, done.stderr
        pages[name] = since(target.read_text(encoding="utf-8"))
    assert second in pages["before"] and first not in pages["before"]
    assert first in pages["first"] and third not in pages["first"]
    assert "1.4" in pages["first"], "what changed since: the release"
    assert "en-faq-01" in pages["first"] and "en-faq-01" not in pages["before"], "an item that fell is named"
    text = run_cli("report", "--format", "md", "--baseline", first, cwd=folder).stdout
    assert re.search(r"\| answer_accuracy \| 135 \| -\.\d+", text), text


@pytest.mark.parametrize("form", ["html", "md"])
def test_a_baseline_that_nothing_matches_is_refused_in_a_sentence(three_nights, run_cli, tmp_path, form):
    target = tmp_path / "r"
    done = run_cli("report", "--baseline", "nothing", "--format", form, "--out", target, cwd=three_nights[0])
    assert done.returncode == 2
    assert "No evaluation matches 'nothing'" in done.stderr
    assert not target.exists()
