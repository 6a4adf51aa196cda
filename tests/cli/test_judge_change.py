"""A change of judge: judged in parallel on the stored responses, blocked until accepted, logged in git."""

import json
import shutil

import pytest


@pytest.fixture
def two_judges(finished, tmp_path, loopback):
    """A project evaluated by the embedded judge, which has a second judge that has judged nothing."""
    folder = shutil.copytree(finished[0], tmp_path / "p")
    path = folder / "evaluation.yaml"
    text = path.read_text(encoding="utf-8")
    other = f"  other: {{provider: openai, model: judge-2024-07-18, base_url: '{loopback.base_url}'}}\n"
    path.write_text(text.replace("judges:\n", f"judges:\n{other}", 1) + "\ndefault_judge: embedded\n", encoding="utf-8")
    return folder


def regression_rules(run_cli, folder):
    found = json.loads(run_cli("gate", "--policy", "nightly", "--json", cwd=folder).stdout)["rules"]
    return [rule for rule in found if rule["rule"].startswith("regression")]


def test_a_new_judge_blocks_until_its_parallel_baseline_is_accepted(two_judges, loopback, run_cli):
    done = run_cli("judges", "compare", "embedded", "other", "--json", cwd=two_judges)
    assert done.returncode == 0, done.stderr
    asked = loopback.counters()["requests"]
    assert asked > 0, "the new judge judges the stored responses"
    rows = {row["metric"]: row for row in json.loads(done.stdout)}
    accuracy = rows["answer_accuracy"]
    assert accuracy["n"] > 100
    assert accuracy["lower"] <= accuracy["mean_shift"] <= accuracy["upper"]
    assert accuracy["decision"] == "not_calibrated", "no human labels"

    again = run_cli("judges", "compare", "embedded", "other", cwd=two_judges)
    assert "the new judge is not calibrated; mean shift" in again.stdout
    assert loopback.counters()["requests"] == asked, "what was judged is compared from what is stored"

    blocked = regression_rules(run_cli, two_judges)
    assert {rule["verdict"] for rule in blocked} == {"BLOCKED"}
    assert all("judges accept" in rule["evidence"] for rule in blocked)

    assert run_cli("judges", "accept", "other", "--message", " ", cwd=two_judges).returncode == 2
    done = run_cli("judges", "accept", "other", "--message", "cheaper", cwd=two_judges)
    assert done.returncode == 0, done.stderr
    log = (two_judges / "datasets" / "helpdesk" / "judges.jsonl").read_text(encoding="utf-8").splitlines()
    entry = next(row for row in map(json.loads, log) if row["metric"] == "answer_accuracy")
    assert (entry["judge"], entry["message"], entry["n"]) == ("other", "cheaper", accuracy["n"])
    assert entry["change"].startswith("answer_accuracy: the new judge is not calibrated; mean shift")

    accepted = regression_rules(run_cli, two_judges)
    assert {rule["verdict"] for rule in accepted} == {"NOT_EVALUATED"}
    assert all("accepted" in rule["evidence"] for rule in accepted)


def test_a_judge_that_has_judged_nothing_cannot_be_accepted_or_be_the_old_one(two_judges, run_cli):
    for verb in (
        ("accept", "other", "--message", "m"),
        ("compare", "other", "embedded"),
        ("compare", "nobody", "other"),
    ):
        done = run_cli("judges", *verb, cwd=two_judges)
        assert done.returncode == 2, done.stdout
        assert verb[1] in done.stderr


@pytest.mark.slow
def test_with_labels_by_people_both_judges_are_held_against_them(two_judges, run_cli):
    for path in (two_judges / "datasets" / "helpdesk" / "labels").glob("*.jsonl"):
        path.write_text(path.read_text(encoding="utf-8").replace('"constructed"', '"human"'), encoding="utf-8")
    done = run_cli("judges", "compare", "embedded", "other", "--json", cwd=two_judges)
    assert done.returncode == 0, done.stderr
    row = next(row for row in json.loads(done.stdout) if row["metric"] == "answer_accuracy")
    assert row["rho_old"] > 0.5 > abs(row["rho_new"]), "the new judge grades by a hash of its prompt"
    assert row["rho_difference_p"] < 0.05
    status = {row["judge"]: row for row in json.loads(run_cli("judges", "--json", cwd=two_judges).stdout)
              if row["metric"] == "answer_accuracy"}  # fmt: skip
    assert status["other"]["rho"] == pytest.approx(row["rho_new"])
