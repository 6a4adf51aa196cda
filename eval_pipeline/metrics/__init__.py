"""Metrics, one file each, found by being there. A file has `declare(**options) -> Metric` and nothing to register."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from eval_pipeline import prompts
from eval_pipeline.errors import ConfigurationInvalid, UnknownName
from eval_pipeline.metrics import g_eval
from eval_pipeline.metrics.declaration import Metric

_SHARED = {"claim_support", "combination", "declaration", "inputs", "normalisation", "texts"}


_FIELDS = frozenset(
    {"user_input", "response", "reference", "retrieved_contexts", "reference_contexts", "rival_response"}
)


def available(metric_folders: Sequence[Path] = ()) -> dict[str, ModuleType]:
    """Every metric by name: the package's, then those of the given folders (`<name>.py`, prompts in `prompts/` beside).

    Raises:
        ConfigurationInvalid: a file of a folder does not run, or declares nothing.
    """
    names = [module.name for module in pkgutil.iter_modules(__path__) if module.name not in _SHARED]
    found = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    for folder in metric_folders:
        prompts.add_folder(folder / "prompts")
        found |= {path.stem: _load(path) for path in sorted(folder.glob("[!_]*.py"))}
    return found


def _load(path: Path) -> ModuleType:
    name = f"eval_pipeline_metric_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UnknownName(kind="metric", name=path.stem, known=())
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigurationInvalid(path=path, problems=f"  {type(error).__name__}: {error}") from error
    if not callable(getattr(module, "declare", None)):
        raise ConfigurationInvalid(path=path, problems="  a metric file has a function `declare(**options) -> Metric`")
    return module


def declare(name: str, options: Mapping[str, Any] | None = None, metric_folders: Sequence[Path] = ()) -> Metric:
    """The declaration of one metric instance.

    Args:
        name: instance name; also the file's or a G-Eval preset's, unless the option `kind` names the file.
        options: keyword options of the file's `declare`.

    Raises:
        UnknownName: no such metric, no such option of it, or a field it says it needs that no item has.
    """
    given = dict(options or {})
    kind = str(given.pop("kind", name))
    found = available(metric_folders)
    if kind not in found and kind in g_eval.PRESETS:
        given, kind = {"preset": kind} | given, "g_eval"
    if kind not in found:
        raise UnknownName(kind="metric", name=kind, known={*found, *g_eval.PRESETS})
    build = found[kind].declare
    known = inspect.signature(build).parameters
    for option in given:
        if option not in known:
            raise UnknownName(kind=f"option of metric {name}", name=option, known=set(known) - {"name"})
    named = {"name": name} if "name" in known else {}
    metric: Metric = replace(build(**named, **given), options=given)
    for field in metric.needs:
        if field not in _FIELDS:
            raise UnknownName(kind=f"field that metric {name} can need", name=field, known=_FIELDS)
    return metric
