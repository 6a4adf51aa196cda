"""docs/metrics.md is what its generator writes today."""

import importlib.util
import sys
from pathlib import Path

import pytest

from eval_pipeline.metrics import available

ROOT = Path(__file__).parents[2]
SHOWN = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("metric_page", ROOT / "benchmarks" / "metric_page.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["metric_page"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(generator):
    assert generator.page() == SHOWN, "run `make metrics-docs`"


@pytest.mark.parametrize("name", available())
def test_every_metric_has_its_section(name):
    assert f"### {name}\n" in SHOWN


def test_a_dual_metric_costs_two_calls_and_outlives_the_loss_of_one_reply(generator):
    found = generator.measure("answer_accuracy", generator.bundled())
    assert found.calls == 2.0
    # Both of two replies are lost with probability .05 ** 2.
    assert found.kept == pytest.approx(1 - 0.05**2, abs=0.003)
