"""Metrics, one file each, found by being there. A file has `declare(**options) -> Metric` and nothing to register."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from eval_pipeline import prompts
from eval_pipeline.errors import UnknownName
from eval_pipeline.metrics.declaration import Metric

_SHARED = {"claim_support", "combination", "declaration", "inputs", "normalisation", "texts"}


def available(metric_folders: Sequence[Path] = ()) -> dict[str, ModuleType]:
    """Every metric by name: the package's, then those of the given folders (`<name>.py`, prompts in `prompts/` beside)."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if module.name not in _SHARED]
    found = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    for folder in metric_folders:
        prompts.add_folder(folder / "prompts")
        found |= {path.stem: _load(path) for path in sorted(folder.glob("*.py"))}
    return found


def _load(path: Path) -> ModuleType:
    name = f"eval_pipeline_metric_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UnknownName(kind="metric", name=path.stem, known=())
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def declare(name: str, options: Mapping[str, Any] | None = None, metric_folders: Sequence[Path] = ()) -> Metric:
    """The declaration of one metric instance.

    Args:
        name: instance name; also the file's, unless the option `kind` names the file.
        options: keyword options of the file's `declare`.

    Raises:
        UnknownName: no such metric, or no such option of it.
    """
    given = dict(options or {})
    kind = str(given.pop("kind", name))
    found = available(metric_folders)
    if kind not in found:
        raise UnknownName(kind="metric", name=kind, known=found)
    build = found[kind].declare
    known = inspect.signature(build).parameters
    for option in given:
        if option not in known:
            raise UnknownName(kind=f"option of metric {name}", name=option, known=set(known) - {"name"})
    if "name" in known:
        given["name"] = name
    return build(**given)
