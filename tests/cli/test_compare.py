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


@pytest.fixture
def two_judges(judged_by_two, tmp_path):
    folder, old, new = judged_by_two
    return shutil.copytree(folder, tmp_path / "p"), old, new


@pytest.fixture(scope="module")
def judged_by_two(three_nights, run_cli, tmp_path_factory, _loopback):
    """Release 1.4 judged by the embedded judge, and the worse 1.5 by another. The folder and the two ids."""
    folder, (first, *_) = three_nights
    folder = shutil.copytree(folder, tmp_path_factory.mktemp("judges") / "p")
    _loopback.control()
    path = folder / "evaluation.yaml"
    text = path.read_text(encoding="utf-8")
    other = f"  other: {{provider: openai, model: judge-2024-07-18, base_url: '{_loopback.base_url}'}}\n"
    path.write_text(text.replace("judges:\n", f"judges:\n{other}", 1), encoding="utf-8")
    for labels in (folder / "datasets" / "helpdesk" / "labels").glob("*.jsonl"):
        labels.unlink()
    done = run_cli("run", "--judge", "other", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, first, json.loads(run_cli("evaluations", "--json", cwd=folder).stdout)[-1]["evaluation_id"]


def test_over_a_change_of_judge_the_older_responses_are_judged_again(two_judges, run_cli, loopback):
    folder, old, new = two_judges
    plain = run_cli("compare", old, new, cwd=folder).stdout
    assert "answer_accuracy: two judges, so the difference says nothing of the system" in plain
    before = loopback.counters()["requests"]
    foreseen = json.loads(run_cli("compare", old, new, "--dry-run", "--json", cwd=folder).stdout)
    assert loopback.counters()["requests"] == before, "nothing is sent yet"
    rows = {row["metric"]: row for row in foreseen}
    assert sum(row["from_ledger"] for row in foreseen) > 100, "most responses are those of the newer release"
    assert rows["answer_accuracy"]["cost_usd"] is None, "no price is known of this model, and unknown is not free"
    done = run_cli("compare", old, new, "--bridge", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Judging the older responses again: ")
    assert re.match(
        r"Overall: .*, by judge other \(judge-2024-07-18\) on both sides, 4 metrics tested together", lines[1]
    )
    assert "two judges" not in done.stdout
    sent = loopback.counters()["requests"] - before
    # The loopback judge makes the same two claims of any text, so what it is asked about claims is in the ledger by then.
    assert sent == sum(row["calls"] for name, row in rows.items() if name != "faithfulness") > 0
    again = json.loads(run_cli("compare", old, new, "--bridge", "--json", cwd=folder).stdout)
    assert loopback.counters()["requests"] == before + sent, "a second look is free"
    assert sum(row["calls"] for row in again["foreseen"]) == 0
    assert all(row["is_same_judge"] for row in again["metrics"])
    accuracy = next(row for row in again["metrics"] if row["metric"] == "answer_accuracy")
    # The judge grades by a hash of the prompt: only the 27 responses that changed can have moved.
    assert accuracy["shared_count"] == 135 and 0 < accuracy["better_count"] + accuracy["worse_count"] <= 27
    assert len(json.loads(run_cli("evaluations", "--json", cwd=folder).stdout)) == 4, "no evaluation is made"
    korean = run_cli("compare", old, new, "--bridge", "--lang", "ko", cwd=folder).stdout
    assert re.search(r"^종합: .* 양쪽 모두 심판 other \(judge-2024-07-18\)", korean, re.MULTILINE)
    # A judge that is configured otherwise by now is not the one to judge by.
    path = folder / "evaluation.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("judge-2024-07-18", "judge-2025-01-01"), encoding="utf-8")
    gone = run_cli("compare", old, new, "--bridge", cwd=folder)
    assert gone.returncode == 2
    assert "'other' is configured otherwise now" in gone.stderr


def test_what_is_judged_again_scores_as_if_that_judge_had_judged_it_then(two_judges, three_nights, run_cli):
    folder, old, new = two_judges
    second = three_nights[1][1]
    stored = json.loads(run_cli("compare", second, old, "--json", cwd=folder).stdout)
    again = json.loads(run_cli("compare", new, old, "--bridge", "--json", cwd=folder).stdout)
    assert again["metrics"] == stored, "the embedded judge judged the same responses in the second night"
    assert again["overall"]["better"] == ["answer_accuracy"]


def test_under_one_judge_nothing_is_judged_again_and_the_overall_sentence_stands(three_nights, run_cli):
    folder, (first, second, third) = three_nights
    lines = run_cli("compare", first, second, "--bridge", cwd=folder).stdout.splitlines()
    assert lines[0] == "The same judge judged both; nothing is judged again."
    assert lines[1].startswith("Overall: got worse (answer_accuracy), by judge embedded (overlap_judge-1)")
    same = run_cli("compare", second, third, "--bridge", cwd=folder).stdout
    assert "Overall: no clear change, by judge embedded" in same
