"""`demo` and `init`: files of a new project, and the chain on them."""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from pathlib import Path

from eval_pipeline.cli.console import LANGUAGE, say, t
from eval_pipeline.errors import NotWritable
from eval_pipeline.vocabulary import Language

TEMPLATES = files("eval_pipeline") / "cli" / "templates"
SAMPLE = files("eval_pipeline") / "sample"


def write_project(folder: Path, language: Language) -> list[Path]:
    """Writes what is missing of a project; files that exist are left alone. Returns what was written.

    Raises:
        NotWritable: the folder cannot be written.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with_language = {"evaluation.yaml": f"evaluation.{language}.yaml"}
        for name in (
            "evaluation.yaml",
            "workspace.yaml",
            "dagster_home/dagster.yaml",
            ".gitignore",
            ".github/workflows/evaluation.yml",
        ):
            target = folder / name
            if target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            source = TEMPLATES / with_language.get(name, name.replace("/", "__").lstrip("."))
            target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            written.append(target)
        dataset = folder / "datasets" / "helpdesk"
        if not dataset.exists():
            shutil.copytree(str(SAMPLE), dataset)
            written.append(dataset)
    except OSError as error:
        raise NotWritable(path=error.filename or folder, reason=error.strerror or str(error)) from error
    return written


def init(folder: Path) -> None:
    """A new project."""
    for path in write_project(folder, LANGUAGE):
        say(f"+ {path}")
    say(t(f"Next: cd {folder} && eval-pipeline run", f"다음: cd {folder} && eval-pipeline run"))


def demo(folder: Path | None, as_json: bool) -> None:
    """The whole chain on the bundled dataset. Exit code 0 whatever the gate would say."""
    from eval_pipeline.cli import running
    from eval_pipeline.evaluation.project import Project

    root = (folder or Path("warehouse") / "demo").resolve()
    write_project(root, LANGUAGE)
    environment = {
        k: v
        for k, v in os.environ.items()
        if k not in {"EVAL_PROJECT", "EVAL_WAREHOUSE", "EVAL_LEDGER", "DAGSTER_HOME"}
    }
    running.run(Project.find(root, environment), as_json=as_json, is_demo=True)
