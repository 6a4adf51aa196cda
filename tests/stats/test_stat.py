"""The result type: undefined is typed, NaN is refused, JSON has plain numbers only."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from eval_pipeline.stats.stat import NotANumberError, Stat, undefined


@pytest.mark.parametrize("field", ["value", "lower", "upper", "p", "level"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_nan_and_infinity_are_refused_in_every_number(field: str, bad: float) -> None:
    with pytest.raises(NotANumberError, match=field):
        Stat(**{"name": "mean", "value": 0.5, "n": 3, field: bad})  # type: ignore[arg-type]


def test_nan_is_refused_deep_inside_details() -> None:
    with pytest.raises(NotANumberError):
        Stat(name="mean", value=0.5, n=3, details={"strata": {"faq": [0.1, np.nan]}})


def test_undefined_has_no_value_and_says_why() -> None:
    stat = undefined("spearman_rho", "n_too_small", n=2, n_dropped=1)
    assert json.loads(json.dumps(stat.to_dict(), allow_nan=False))["value"] is None
    assert (stat.status, stat.reason, stat.is_defined) == ("undefined", "n_too_small", False)


@pytest.mark.parametrize(
    "fields",
    [
        {"value": 0.5, "status": "undefined", "reason": "n_zero"},
        {"value": None},
        {"value": 0.5, "status": "fallback"},
        {"value": 0.5, "lower": 0.6, "upper": 0.4},
    ],
)
def test_contradictions_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Stat(name="mean", n=3, **fields)  # type: ignore[arg-type]


def test_flat_object_has_plain_python_numbers() -> None:
    stat = Stat(name="m", value=np.float64(0.5), n=np.int64(3), details={"a": np.arange(2), "b": np.bool_(True)})
    assert stat.to_dict()["details"] == {"a": [0, 1], "b": True}
    assert {"value", "lower", "upper", "n", "status", "reason", "method", "level"} <= stat.to_dict().keys()
    json.dumps(stat.to_dict(), allow_nan=False)


def test_importing_every_module_leaves_scipy_alone() -> None:
    names = "agreement bias calibration_rule ceilings correlation drift grades means multiplicity paired permutation"
    names += " probes quality rates recalibration regression_rule tails"
    code = "import sys; from eval_pipeline.stats import " + ", ".join(names.split())
    code += "; sys.exit(any(m.split('.')[0] == 'scipy' for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
