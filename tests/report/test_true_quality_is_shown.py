"""The estimate of true quality, wherever people look: terminal, machine-readable output, HTML and Markdown."""

import json

import numpy as np
import polars as pl
import pytest

ITEMS = 134


@pytest.fixture(scope="module")
def labelled(tmp_path_factory, run_cli):
    """A run whose responses people labelled: 60 drawn by the sheet's own sampling, scored one level under the judge."""
    folder = tmp_path_factory.mktemp("labelled")
    assert run_cli("init", folder, cwd=folder).returncode == 0
    assert run_cli("run", "--metric", "answer_accuracy", cwd=folder).returncode == 0
    return folder
