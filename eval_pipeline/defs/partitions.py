"""What is evaluated, as partitions: dataset version x configuration, both dynamic, with readable keys."""

import dagster as dg

from eval_pipeline.evaluation.partitions import Combination

DATASET_VERSIONS = dg.DynamicPartitionsDefinition(name="dataset_version")
CONFIGURATIONS = dg.DynamicPartitionsDefinition(name="configuration")
EVALUATIONS = dg.MultiPartitionsDefinition({"dataset_version": DATASET_VERSIONS, "configuration": CONFIGURATIONS})


def register(instance: dg.DagsterInstance, of: Combination) -> dg.MultiPartitionKey:
    """The partition of a combination, its two keys added to the instance; known ones stay."""
    keys = {"dataset_version": of.dataset_key, "configuration": of.configuration_key}
    for dimension, name in keys.items():
        instance.add_dynamic_partitions(dimension, [name])
    return dg.MultiPartitionKey(keys)
