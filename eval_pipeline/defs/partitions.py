"""What is evaluated, as partitions: dataset version x configuration, both dynamic, with readable keys."""

import dagster as dg

from eval_pipeline.errors import UnknownName
from eval_pipeline.evaluation.partitions import configuration_key, dataset_key
from eval_pipeline.evaluation.project import Project
from eval_pipeline.intake import datasets
from eval_pipeline.systems.source import release

DATASET_VERSIONS = dg.DynamicPartitionsDefinition(name="dataset_version")
CONFIGURATIONS = dg.DynamicPartitionsDefinition(name="configuration")
EVALUATIONS = dg.MultiPartitionsDefinition({"dataset_version": DATASET_VERSIONS, "configuration": CONFIGURATIONS})


def key(project: Project, dataset: str, tag: str, system: str, judge: str) -> dg.MultiPartitionKey:
    """The partition of one dataset version and one configuration as they are now."""
    folder = project.dataset_folder(dataset)
    version = datasets.load(folder, tag)
    # The hash as tagged: content edited since then is evaluated under its tag's key, and blocked by the gate.
    tagged = dict(datasets.version_rows(folder).select("tag", "dataset_version").iter_rows())
    current = release(project.config.systems[system], project.environment)
    scoring = project.config.scoring_sha256(system, judge)
    return dg.MultiPartitionKey(
        {
            "dataset_version": dataset_key(dataset, version.tag, tagged[version.tag]),
            "configuration": configuration_key(system, current, judge, scoring),
        }
    )


def register(instance: dg.DagsterInstance, partition: dg.MultiPartitionKey) -> None:
    """Adds the partition's two keys to the instance; known ones stay."""
    instance.add_dynamic_partitions("dataset_version", [partition.keys_by_dimension["dataset_version"]])
    instance.add_dynamic_partitions("configuration", [partition.keys_by_dimension["configuration"]])


def resolve(project: Project, partition: dg.MultiPartitionKey) -> tuple[str, str, str, str]:
    """Dataset, version hash, system and judge behind a partition.

    Raises:
        UnknownName: the dataset version or the configuration is no longer what the project says.
    """
    keys = partition.keys_by_dimension
    versions = {
        dataset_key(name, row["tag"], row["dataset_version"]): (name, row["dataset_version"])
        for name in project.config.datasets
        for row in datasets.version_rows(project.dataset_folder(name)).iter_rows(named=True)
    }
    if keys["dataset_version"] not in versions:
        raise UnknownName(kind="dataset version", name=keys["dataset_version"], known=versions)
    known = {}
    for system in project.config.systems:
        if not keys["configuration"].startswith(configuration_key(system, "", "", "")[: len(system)]):
            continue
        current = release(project.config.systems[system], project.environment)
        for judge in project.config.judges:
            scoring = project.config.scoring_sha256(system, judge)
            known[configuration_key(system, current, judge, scoring)] = (system, judge)
    if keys["configuration"] not in known:
        raise UnknownName(kind="configuration", name=keys["configuration"], known=known)
    return *versions[keys["dataset_version"]], *known[keys["configuration"]]
