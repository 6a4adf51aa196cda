"""What one evaluation is of, and the readable keys it has: a dataset version, and a configuration (system release, judge,
scoring hash).
"""

from __future__ import annotations

from dataclasses import dataclass

from eval_pipeline.errors import UnknownName
from eval_pipeline.evaluation.project import Project
from eval_pipeline.intake import datasets
from eval_pipeline.stages.versioning import slug
from eval_pipeline.systems.source import release as read_release


def dataset_key(dataset: str, tag: str, version: str) -> str:
    """Such as `helpdesk@v4@1a2b3c4d`."""
    return f"{slug(dataset)}@{slug(tag)}@{version[:8]}"


def configuration_key(system: str, release: str, judge: str, scoring_sha256: str) -> str:
    """Such as `rag@9f31c2e@azure_mini@5e6f7a8b`."""
    return f"{slug(system)}@{slug(release)}@{slug(judge)}@{scoring_sha256[:8]}"


@dataclass(frozen=True, slots=True)
class Combination:
    """One dataset version, system release and judge.

    Attributes:
        dataset_key, configuration_key: its partition.
        release: the system's, as read when this was made.
    """

    dataset: str
    tag: str
    system: str
    judge: str
    release: str
    dataset_key: str
    configuration_key: str


def combine(
    project: Project, dataset: str, tag: str, system: str, judge: str, release: str | None = None
) -> Combination:
    """The combination of these names as they are now; the release is read when it is not given.

    Raises:
        DatasetNotFound: no such version.
        SystemMisconfigured: the release cannot be read.
    """
    folder = project.dataset_folder(dataset)
    # As tagged: content edited since then is evaluated under its tag's key, and blocked by the gate.
    version = datasets.tagged(folder, tag)
    known = (
        release if release is not None else read_release(project.config.systems[system], project.environment, system)
    )
    scoring = project.config.scoring_sha256(system, judge)
    return Combination(
        dataset, version["dataset_version"], system, judge, known,
        dataset_key(dataset, version["tag"], version["dataset_version"]), configuration_key(system, known, judge, scoring),
    )  # fmt: skip


def resolve(project: Project, dataset_version: str, configuration: str) -> tuple[str, str, str, str]:
    """Dataset, version hash, system and judge behind the two keys of a partition.

    Raises:
        UnknownName: the dataset version or the configuration is no longer what the project says.
    """
    versions = {
        dataset_key(name, row["tag"], row["dataset_version"]): (name, row["dataset_version"])
        for name in project.config.datasets
        for row in datasets.version_rows(project.dataset_folder(name)).iter_rows(named=True)
    }
    if dataset_version not in versions:
        raise UnknownName(kind="dataset version", name=dataset_version, known=versions)
    release = configuration.split("@")[1] if configuration.count("@") == 3 else ""
    configurations = {
        configuration_key(system, release, judge, project.config.scoring_sha256(system, judge)): (system, judge)
        for system in project.config.systems
        for judge in project.config.judges
    }
    if configuration not in configurations:
        raise UnknownName(kind="configuration", name=configuration, known=configurations)
    return *versions[dataset_version], *configurations[configuration]


def refuse_other_release(configuration: str, system: str, release: str) -> None:
    """The system must still be of the release that the partition names: its answers are filed under it.

    Raises:
        UnknownName: it moved on.
    """
    if configuration.split("@")[1] != slug(release):
        raise UnknownName(kind=f"release of {system}", name=configuration.split("@")[1], known=[slug(release)])
