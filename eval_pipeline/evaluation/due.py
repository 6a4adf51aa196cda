"""Which evaluations are due since a look at the project: a new dataset version, system release or judge, and what each asks for.

What a look saw is a JSON object by name, kept by whoever looks. The first look only takes note, so that setting up a
deployment costs nothing; what cannot be read keeps its old entry and is looked at again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import polars as pl

from eval_pipeline.errors import BackfillNeedsTarget, EvalPipelineError
from eval_pipeline.evaluation import batches
from eval_pipeline.evaluation.evidence import complete
from eval_pipeline.evaluation.judges import judge_keys
from eval_pipeline.evaluation.partitions import Combination, combine
from eval_pipeline.evaluation.project import Project
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.systems.source import release
from eval_pipeline.tables import RESPONSES


@dataclass(frozen=True, slots=True)
class Due:
    """One evaluation that should run.

    Attributes:
        run_key: the same for the same reason; whoever starts runs starts one a key.
        responses_of: the evaluation whose stored responses are judged anew; null asks the system.
        goes_on_with: the evaluation that it finishes; null begins a new one.
    """

    of: Combination
    run_key: str
    responses_of: str | None = None
    goes_on_with: str | None = None


@dataclass(frozen=True, slots=True)
class News:
    """What one look found.

    Attributes:
        seen: to be given to the next look.
        remarks: what could not be read, or that this was the first look.
    """

    seen: str
    due: tuple[Due, ...]
    remarks: tuple[str, ...]


def changed(before: Mapping[str, str] | None, now: Mapping[str, str]) -> list[str]:
    """Names that are new or stand for something else than before; none when nothing was seen before."""
    return [] if before is None else [name for name, what in now.items() if before.get(name) != what]


def new_dataset_versions(project: Project, seen: str | None) -> News:
    """The version that each dataset's configured tag means, and what evaluates a new one: the systems it is used with."""
    config = project.config
    releases = _Releases(project)

    def due(dataset: str) -> list[Due]:
        systems = [system for name, system in _pairs(project) if name == dataset] or [config.system_name()]
        return [_asked(project, dataset, system, releases) for system in systems]

    def version(dataset: str) -> str:
        return _version(project, dataset)

    return _look(seen, config.datasets, version, due)


def changed_systems(project: Project, seen: str | None) -> News:
    """Release and definition of each system, and what evaluates a changed one: the datasets it is used with."""
    config = project.config
    releases = _Releases(project)

    def due(system: str) -> list[Due]:
        return [_asked(project, dataset, system, releases) for dataset in _datasets(project, system)]

    def identity(system: str) -> str:
        return f"{releases.of(system)} {config.system_sha256(system)[:16]}"

    return _look(seen, config.systems, identity, due)


def changed_judge(project: Project, seen: str | None) -> News:
    """The judge key of each metric, and the parallel baseline over the stored responses of the windows when one changed.

    A metric that is new has no judge to stand beside.
    """
    judge = project.config.judge_name()
    keys = _keys(project, judge)
    before = json.loads(seen) if seen else {}

    def due(metric: str) -> list[Due]:
        return parallel_baseline(project, judge) if metric in before else []

    return _look(seen, keys, keys.__getitem__, due)


def ended_batches(project: Project, seen: str | None) -> News:
    """Brings in what the judges' batches answered; evaluations of everything that waited go on once no batch is open.

    One that got no reply at all goes on once, which submits its questions again, and then is left until one comes.
    """
    rows = batches.collect(project)
    remarks = [
        f"{row['open_count']} open batch(es) of {row['judge']}, which no judge in evaluation.yaml is: put it back to "
        "bring in what was asked." for row in rows if not row["is_configured"]
    ]  # fmt: skip
    open_count = sum(row["open_count"] for row in rows if row["is_configured"])
    if open_count:
        return News(seen or "{}", (), (*remarks, f"{open_count} batch(es) still open."))
    due: list[Due] = []
    for row in batches.waiting(project):
        of = combine(
            project, row["dataset"], row["dataset_version"], row["system"], row["judge"], row["system_release"]
        )
        progress = _fingerprint(json.dumps([row["waiting_keys"], row["answered_keys"]]))
        due.append(Due(of, f"{row['evaluation_id']} {progress}", goes_on_with=row["evaluation_id"]))
        if not row["answered_keys"]:
            remarks.append(
                f"Evaluation {row['evaluation_id']}: no batch answered any of the {len(row['waiting_keys'])} questions it "
                "waits for. They are submitted once more by themselves, then by `eval-pipeline run --resume`; "
                "`batch: false` asks them live."
            )
    return News(seen or "{}", tuple(due), tuple(remarks))


def nightly(project: Project, run_key: str) -> Due:
    """Tonight's evaluation: the default dataset, system and judge as they are now."""
    config = project.config
    due = _asked(project, config.dataset_name(), config.system_name(), _Releases(project))
    return replace(due, run_key=run_key)


def backfill(project: Project, system: str | None, judge: str | None, datasets: Iterable[str] = ()) -> list[Due]:
    """What a system as it is now, or a judge, is still to be evaluated on.

    Args:
        system: asked anew about each dataset; beside a judge, whose stored responses are judged.
        judge: judges the stored responses of the windows, as after a change of judge.
        datasets: `name` or `name@tag`; empty is every dataset that the system or judge is used with.

    Raises:
        BackfillNeedsTarget: neither is named.
    """
    if judge is not None:
        return parallel_baseline(project, judge, [name.partition("@")[0] for name in datasets], system)
    if system is None:
        raise BackfillNeedsTarget(known=", ".join((*project.config.systems, *project.config.judges)))
    releases = _Releases(project)
    chosen = tuple(datasets) or tuple(_datasets(project, project.config.system_name(system)))
    return [_asked(project, dataset, project.config.system_name(system), releases) for dataset in chosen]


def parallel_baseline(
    project: Project, judge: str, datasets: Iterable[str] = (), system: str | None = None
) -> list[Due]:
    """The stored responses of each window, judged by this judge: one evaluation for all nights with equal responses.

    A window is the last complete evaluations of one system on one dataset by other judges. What this judge has judged
    already is left out.
    """
    keys = _keys(project, judge)
    chosen = {project.config.dataset_name(name) for name in datasets}
    found: list[Due] = []
    for dataset, name in _pairs(project):
        if (chosen and dataset not in chosen) or (system is not None and name != project.config.system_name(system)):
            continue
        rows = _whole(project).filter((pl.col("dataset") == dataset) & (pl.col("system") == name))
        is_mine = pl.Series([_is_by(keys, row) for row in rows["judge_keys"]], dtype=pl.Boolean)
        mine, others = rows.filter(is_mine), rows.filter(~is_mine & ~pl.col("is_replay"))
        done = {_responses(project, row) for row in mine.iter_rows(named=True)}
        for row in others.tail(project.config.gate.window).iter_rows(named=True):
            content = _responses(project, row)
            if content not in done:
                done.add(content)
                of = combine(project, dataset, row["dataset_version"], name, judge, row["system_release"])
                run_key = f"{_fingerprint(json.dumps(keys))} {row['evaluation_id']}"
                found.append(Due(of, run_key, row["evaluation_id"]))
    return found


class _Releases:
    """Reads each system's release once."""

    def __init__(self, project: Project) -> None:
        self._project, self._known = project, dict[str, str]()

    def of(self, system: str) -> str:
        if system not in self._known:
            config = self._project.config.systems[system]
            self._known[system] = release(config, self._project.environment, system)
        return self._known[system]


def _look(
    seen: str | None, names: Iterable[str], identity: Callable[[str], str], due: Callable[[str], list[Due]]
) -> News:
    """One look at named things. A thing whose identity or whose evaluations cannot be told stays as it was seen."""
    before: dict[str, str] | None = json.loads(seen) if seen else None
    after: dict[str, str] = {}
    found: dict[str, Due] = {}
    remarks: list[str] = []
    for name in names:
        old = (before or {}).get(name)
        try:
            after[name] = identity(name)
            if changed(before, {name: after[name]}):
                found |= {one.run_key: one for one in due(name)}
        except EvalPipelineError as error:
            remarks.append(str(error))
            after.pop(name, None)
            if old is not None:
                after[name] = old
    if before is None:
        remarks.append("First look: what is there now is taken note of; what changes from now on is evaluated.")
    return News(json.dumps(after, sort_keys=True, ensure_ascii=False), tuple(found.values()), tuple(remarks))


def _asked(project: Project, dataset: str, system: str, releases: _Releases) -> Due:
    """The system asked anew about one dataset version, by the default judge."""
    name, _, tag = dataset.partition("@")
    config = project.config
    of = combine(
        project,
        name,
        tag or config.datasets[config.dataset_name(name)].tag,
        system,
        config.judge_name(),
        releases.of(system),
    )
    return Due(of, f"{of.dataset_key} {of.configuration_key}")


def _version(project: Project, dataset: str) -> str:
    from eval_pipeline.intake import datasets

    version = datasets.tagged(project.dataset_folder(dataset), project.config.datasets[dataset].tag)
    return f"{version['tag']} {version['dataset_version'][:16]}"


def _datasets(project: Project, system: str) -> list[str]:
    return [dataset for dataset, name in _pairs(project) if name == system] or [project.config.dataset_name()]


def _whole(project: Project) -> pl.DataFrame:
    """Evaluations of all items by all metrics, oldest first."""
    return complete(Warehouse(project.warehouse)).filter(~pl.col("is_partial"))


def _pairs(project: Project) -> list[tuple[str, str]]:
    """Datasets and systems of the configuration that were evaluated together."""
    config = project.config
    rows = _whole(project).select("dataset", "system").unique().sort("dataset", "system").iter_rows()
    return [(dataset, system) for dataset, system in rows if dataset in config.datasets and system in config.systems]


def _keys(project: Project, judge: str) -> dict[str, str]:
    """Judge key by metric that asks one, in the order of names."""
    keys = judge_keys(project, project.config.judge_name(judge), project.metrics())
    return {metric: key for metric, key in sorted(keys.items()) if key is not None}


def _is_by(keys: Mapping[str, str], judge_keys_json: str) -> bool:
    """Whether an evaluation's judge is this one, on every metric that both know."""
    return all(
        keys.get(metric) in {None, key} for metric, key in json.loads(judge_keys_json).items() if key is not None
    )


def _responses(project: Project, row: Mapping[str, object]) -> str:
    """What an evaluation's system answered, and to which version, as one text; equal answers give equal texts."""
    frame = Warehouse(project.warehouse).read(RESPONSES, str(row["evaluation_id"])).sort("item_id")
    said = frame.select("item_id", "response", "retrieved_contexts", "error").write_json()
    return _fingerprint(f"{row['dataset_version']} {row['system_release']} {said}")


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
