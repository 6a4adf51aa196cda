"""The views that the report's tests look at."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # importmode=importlib puts no test folder on the path

from report_scenario import HOSTILE, night

from eval_pipeline.report.view import view


@pytest.fixture(scope="session")
def bad_night():
    found = night()
    return view(found.read, found.evaluation_id)


@pytest.fixture(scope="session")
def hostile_night():
    found = night(word=HOSTILE)
    return view(found.read, found.evaluation_id)


@pytest.fixture(scope="session")
def hostile():
    return HOSTILE
