"""The JSON Schema in docs is that of the configuration; the shipped configurations are valid."""

import json
from pathlib import Path

import pytest

from eval_pipeline.config import json_schema, load_config

ROOT = Path(__file__).parents[2]


def test_the_schema_in_docs_is_the_configuration_s():
    stored = json.loads((ROOT / "docs" / "evaluation.schema.json").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(json_schema())), "renew it with `make schema`"


@pytest.mark.parametrize(
    "path",
    [
        "evaluation.yaml",
        "eval_pipeline/cli/templates/evaluation.en.yaml",
        "eval_pipeline/cli/templates/evaluation.ko.yaml",
    ],
)
def test_shipped_configurations_are_valid(path):
    assert load_config(ROOT / path).default_judge == "embedded"
