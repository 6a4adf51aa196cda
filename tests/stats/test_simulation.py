"""The small, seeded run of the operating characteristics; the full one is `make simulate`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "operating_characteristics.py"


@pytest.fixture(scope="module")
def rows() -> list:
    spec = importlib.util.spec_from_file_location("operating_characteristics", _SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.simulate(200, 20260101)


def test_every_simulated_rate_is_within_its_bound(rows: list) -> None:
    missed = [f"{row.question}, {row.cell}: {row.rate}" for row in rows if not row.is_met]
    assert not missed


def test_a_good_judge_is_certified_with_enough_labels(rows: list) -> None:
    rates = {row.cell: row.rate for row in rows if row.question == "calibration passes"}
    assert rates["rho 0.90, 33/33/33, n=100"] > 0.95
    assert rates["rho 0.85, 15/20/65, n=200"] > 0.90


def test_an_honest_drop_is_found(rows: list) -> None:
    assert {row.cell: row.rate for row in rows}["n=300, run sd 0.0"] > 0.95
