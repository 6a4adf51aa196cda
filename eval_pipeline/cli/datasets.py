"""What the `dataset` verbs print."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.cli.console import emit, out, say, t
from eval_pipeline.cli.progress import Bar, imported
from eval_pipeline.cli.querying import table
from eval_pipeline.errors import MessageRequired, UnknownName
from eval_pipeline.evaluation.project import Project
from eval_pipeline.intake import adding, exporting, outlook
from eval_pipeline.intake import datasets as stored

if TYPE_CHECKING:
    from eval_pipeline.quality.findings import Finding


def _split(name: str) -> tuple[str, str]:
    dataset, _, tag = name.partition("@")
    return dataset, tag or "latest"


def _folder(project: Project, name: str) -> Path:
    """The folder of a configured dataset, or of one under `datasets/` that is not configured yet."""
    if name in project.config.datasets:
        return project.dataset_folder(name)
    folder = adding.folder_of(project.root, name)
    if not (folder / "log.jsonl").exists():
        known = {
            *project.config.datasets,
            *(path.parent.name for path in (project.root / "datasets").glob("*/log.jsonl")),
        }
        raise UnknownName(kind="dataset", name=name, known=known)
    return folder


def add(project: Project, name: str, file: Path, tag: str, message: str, mapping: list[str], contexts_as: str | None,
        metric: str | None, dry_run: bool, as_json: bool) -> None:  # fmt: skip
    """Shows how a file is read, then imports it."""
    folder = project.dataset_folder(name) if name in project.config.datasets else adding.folder_of(project.root, name)
    given = adding.parse_mapping(mapping)
    if not dry_run and not message.strip():
        raise MessageRequired()
    planned = outlook.look(file, given, contexts_as)
    fields = outlook.fields(planned, file, folder, tag)
    if not as_json:
        say(t(f"{file.name}: {planned.row_count} rows, read as {planned.tool}",
              f"{file.name}: {planned.row_count}행, {planned.tool} 형식으로 읽음"))  # fmt: skip
        heads = [t("field", "필드"), t("from", "원래 이름"), t("first row", "첫 행"), f"→ datasets/{folder.name}/"]
        out().print(table(heads, [(*list(row.values())[:3], Path(*Path(row["goes_to"]).parts[2:])) for row in fields]))
    if dry_run:
        done = adding.preview(file, given, contexts_as, metric)
    else:
        author = os.environ.get("GIT_AUTHOR_NAME") or os.environ.get("USER")
        with Bar() as bar:
            done = adding.add(
                folder, file, tag, message, author, datetime.now(UTC), given, contexts_as, metric, imported(bar), planned
            )  # fmt: skip
    if as_json:
        emit(done | {"fields": fields})
        return
    if dry_run:
        say(t("Nothing was written (--dry-run). It would be:", "아무것도 쓰지 않았습니다(--dry-run). 쓴다면:"))
    _print_added(done, f"{name}@{tag}")
    if not dry_run and name not in project.config.datasets:
        say(t("Add it to evaluation.yaml:", "evaluation.yaml에 추가하세요:"))
        say(adding.yaml_snippet(folder, project.root, done))


def _print_added(done: dict[str, Any], version: str) -> None:
    sha = done.get("dataset_version", "-")[:12]
    say(
        t(
            f"{version}: {done['item_count']} items, version {sha}",
            f"{version}: 항목 {done['item_count']}개, 버전 {sha}",
        )
    )
    if done["response_count"]:
        say(
            t(
                f"{done['response_count']} responses (source: recorded)",
                f"응답 {done['response_count']}개 (source: recorded)",
            )
        )
    if done["label_count"]:
        say(
            t(
                f"{done['label_count']} human labels for {done['label_metric']}",
                f"{done['label_metric']} 사람 라벨 {done['label_count']}개",
            )
        )
    for reason, count in done["unlabelled"].items():
        say(t(f"{count} human scores are no labels: {reason}; they stay in the items' metadata",
              f"사람 점수 {count}개는 라벨이 아닙니다: {reason}. 항목의 metadata에 남습니다"))  # fmt: skip


def list_(project: Project, as_json: bool) -> None:
    """Configured datasets, and others found under `datasets/`."""
    folders = {name: project.dataset_folder(name) for name in project.config.datasets}
    for path in sorted((project.root / "datasets").glob("*/log.jsonl")):
        folders.setdefault(path.parent.name, path.parent)
    rows = []
    for name, folder in folders.items():
        entries = stored.log(folder)
        last: dict[str, Any] = entries[-1] if entries else {}
        rows.append({"dataset": name, "is_configured": name in project.config.datasets, "tag": last.get("tag"),
                     "item_count": last.get("item_count"), "version_count": len(entries)})  # fmt: skip
    _rows(rows, as_json)


def _rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        emit(rows)
    elif rows:
        out().print(table(list(rows[0]), [tuple(row.values()) for row in rows]))
    else:
        say(t("Nothing.", "없음."))


def log(project: Project, name: str, as_json: bool) -> None:
    """The versions."""
    entries = stored.log(_folder(project, name))
    if as_json:
        emit(entries)
        return
    _rows([{"tag": e["tag"], "version": e["dataset_version"][:12], "created_at": e["created_at"][:19], "items": e["item_count"],
            "changes": len(e["changes"]), "message": e["message"]} for e in entries], False)  # fmt: skip


def show(project: Project, name: str, limit: int, as_json: bool) -> None:
    """Items of one version."""
    dataset, tag = _split(name)
    items = stored.load(_folder(project, dataset), tag).items
    if as_json:
        emit(items.to_dicts())
        return
    out().print(table(["item_id", "stratum", "language", "user_input", "reference"],
                      items.select("item_id", "stratum", "language", "user_input", "reference").head(limit).rows()))  # fmt: skip
    if items.height > limit:
        say(t(f"... {items.height - limit} more", f"... 그 밖에 {items.height - limit}개"))


def diff(project: Project, name: str, old: str, new: str, as_json: bool) -> None:
    """Row-level changes."""
    from eval_pipeline.stages.versioning import diff as changes

    folder = _folder(project, name)
    rows = changes(stored.load(folder, old).items, stored.load(folder, new).items)
    found = {
        "added": [row["item_id"] for row in rows if row["change"] == "added"],
        "removed": [row["item_id"] for row in rows if row["change"] == "removed"],
        "changed": [{"item_id": row["item_id"], "fields": row["fields"]} for row in rows if row["change"] == "changed"],
    }
    if as_json:
        emit(found)
        return
    say(f"+{len(found['added'])} -{len(found['removed'])} ~{len(found['changed'])}")
    for row in rows[:200]:
        say(f"{row['change']:<8} {row['item_id']} {', '.join(row['fields'] or [])}")


def check(project: Project, name: str, docs: Path | None, as_json: bool) -> int:
    """Everything that can be wrong with a version; 1 when something is an error."""
    from eval_pipeline.evaluation import dataset_check

    dataset, tag = _split(name)
    folder = _folder(project, dataset)
    found = dataset_check.check(project, dataset, folder, tag, datetime.now(UTC).date())
    page = None if docs is None else dataset_check.data_docs(folder, tag, docs)
    rows = [_as_row(one) for one in found]
    if as_json:
        emit(rows)
    else:
        _print_findings(rows)
        if not rows:
            version = stored.load(folder, tag)
            say(t(f"{dataset}@{version.tag}: nothing found in {version.items.height} items.",
                  f"{dataset}@{version.tag}: 항목 {version.items.height}개에서 문제를 찾지 못했습니다."))  # fmt: skip
        if page is not None:
            say(t(f"Data docs of the row rules: {page}", f"행 규칙의 data docs: {page}"))
    return 1 if any(row["severity"] == "error" for row in rows) else 0


def _as_row(found: Finding) -> dict[str, Any]:
    return {"severity": found.severity, "rule": found.rule, "message": t(found.message, found.message_ko),
            "count": found.count, "item_ids": list(found.item_ids)}  # fmt: skip


def _print_findings(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        say(f"{row['severity']:<8} {row['message']}  {' '.join(row['item_ids'][:20])}")


def export(project: Project, name: str, target: Path) -> None:
    """One version as JSONL, CSV, Parquet or XLSX."""
    dataset, tag = _split(name)
    count = exporting.export(stored.load(_folder(project, dataset), tag).items, target)
    say(t(f"{count} items -> {target}", f"항목 {count}개 -> {target}"))


def split(project: Project, name: str, into: str, folder: Path, seed: int, force: bool, as_json: bool) -> int:
    """One version in parts; 1 when two parts share a question."""
    from eval_pipeline.evaluation import dataset_parts

    dataset, tag = _split(name)
    shares = dataset_parts.parse_shares(into)
    items = stored.load(_folder(project, dataset), tag).items
    parts, found = dataset_parts.split(items, shares, seed, folder, force)
    rows = [{"part": part, "item_count": count, "file": str(path)} for part, (path, count) in parts.items()]
    findings = [_as_row(one) for one in found]
    if as_json:
        emit({"seed": seed, "parts": rows, "findings": findings})
    else:
        _rows(rows, as_json=False)
        _print_findings(findings)
    return 1 if findings else 0


def sample(project: Project, name: str, n: int, target: Path, seed: int, force: bool, as_json: bool) -> None:
    """Some items of one version."""
    from eval_pipeline.evaluation import dataset_parts

    dataset, tag = _split(name)
    items = stored.load(_folder(project, dataset), tag).items
    count = dataset_parts.sample(items, n, seed, target, force)
    if as_json:
        emit({"seed": seed, "item_count": count, "of": items.height, "file": str(target)})
        return
    say(t(f"{count} of {items.height} items -> {target}", f"항목 {items.height}개 중 {count}개 -> {target}"))
    if count != min(n, items.height):
        say(
            t(
                "Not exactly as many as asked for: clusters stay whole.",
                "군집을 나누지 않으므로 요청한 수와 꼭 같지는 않습니다.",
            )
        )
