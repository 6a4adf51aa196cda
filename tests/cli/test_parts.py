"""`dataset split` and `dataset sample`: files that keep strata and clusters, and repeat under a seed."""

import json
from collections import Counter

from eval_pipeline.intake.datasets import read_lines


def rows(path):
    return [row for _, row in read_lines(path)]


def test_a_split_holds_every_item_once_keeps_strata_and_clusters_and_repeats(project, run_cli):
    split = ("dataset", "split", "helpdesk@v1", "--into", "train=0.8, test=0.2", "--json")
    done = run_cli(*split, "--seed", "7", "--out", "parts", cwd=project)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    parts = {name: rows(project / "parts" / f"{name}.jsonl") for name in ("train", "test")}
    assert {one["part"]: one["item_count"] for one in said["parts"]} == {
        name: len(part) for name, part in parts.items()
    }
    whole = rows(project / "datasets" / "helpdesk" / "items.jsonl")
    assert sorted(parts["train"] + parts["test"], key=lambda row: row["item_id"]) == whole
    clusters = [{row["cluster_id"] for row in part if row.get("cluster_id")} for part in parts.values()]
    assert not clusters[0] & clusters[1]
    sizes = Counter(row["stratum"] for row in whole)
    for stratum, count in Counter(row["stratum"] for row in parts["test"]).items():
        # A fifth, off by less than the largest cluster.
        assert abs(count - sizes[stratum] / 5) <= max(
            Counter(row.get("cluster_id") for row in whole if row.get("cluster_id")).values()
        )
    assert run_cli(*split, "--seed", "7", "--out", "again", cwd=project).returncode == 0
    assert all(
        (project / "again" / f"{name}.jsonl").read_bytes() == (project / "parts" / f"{name}.jsonl").read_bytes()
        for name in parts
    )
    refused = run_cli(*split, "--out", "parts", cwd=project)
    assert refused.returncode == 2 and "train.jsonl" in refused.stderr and "--force" in refused.stderr
    for into in ("train", "train=0", "a=1,a=2", "../x=1"):
        assert run_cli("dataset", "split", "helpdesk", "--into", into, "--out", "bad", cwd=project).returncode == 2
    assert not (project / "bad").exists()


def test_a_question_that_two_parts_share_is_said(project, run_cli):
    questions = [f"How is {name} repaired?" for name in ("a lamp", "a door", "a roof", "an engine", "a clock")]
    items = [{"item_id": f"q{n}", "user_input": question} for n, question in enumerate(2 * questions)]
    (project / "twins.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items), encoding="utf-8")
    assert (
        run_cli("dataset", "add", "twins", "twins.jsonl", "--tag", "v1", "--message", "m", cwd=project).returncode == 0
    )
    done = run_cli("dataset", "split", "twins", "--into", "a=1,b=1", "--out", "parts", "--lang", "ko", cwd=project)
    assert done.returncode == 1 and "여러 분할에 같은 질문" in done.stdout


def test_a_sample_is_drawn_by_seed_in_any_format(project, run_cli):
    sample = ("dataset", "sample", "helpdesk", "--n", "30", "--json")
    done = run_cli(*sample, "--seed", "7", "--out", "s.jsonl", cwd=project)
    said = json.loads(done.stdout)
    drawn = rows(project / "s.jsonl")
    assert said["item_count"] == len(drawn) and abs(len(drawn) - 30) <= 3
    assert len({row["stratum"] for row in drawn}) == 6
    assert run_cli(*sample, "--seed", "8", "--out", "t.jsonl", cwd=project).returncode == 0
    assert {row["item_id"] for row in rows(project / "t.jsonl")} != {row["item_id"] for row in drawn}
    assert run_cli(*sample, "--out", "s.jsonl", cwd=project).returncode == 2
    assert run_cli(*sample, "--out", "s.xlsx", cwd=project).returncode == 0
    assert run_cli("dataset", "add", "small", "s.xlsx", "--tag", "v1", "--message", "m", cwd=project).returncode == 0


def test_the_row_rules_are_also_written_as_data_docs(project, run_cli):
    done = run_cli("dataset", "check", "helpdesk", "--docs", "docs", cwd=project)
    assert done.returncode == 0 and "docs/index.html" in done.stdout and "nothing found in 135 items" in done.stdout
    pages = "".join(page.read_text(encoding="utf-8") for page in (project / "docs").rglob("*.html"))
    assert "golden_items" in pages
