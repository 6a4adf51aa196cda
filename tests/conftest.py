"""What tests of several areas share: a project with one finished evaluation, and the command line as a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no finding; what a property says is.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")

ROOT = Path(__file__).parents[1]


def environment(**extra):
    """The environment without anything that points to another project."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("EVAL_", "DAGSTER_", "GITHUB_"))}
    return kept | {"LANG": "C.UTF-8", **extra}


def cli(*arguments, cwd, **variables):
    """Runs `eval-pipeline` as users do; the finished process with text output."""
    command = [sys.executable, "-m", "eval_pipeline.cli", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env=environment(**variables), check=False, timeout=300
    )


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A demo project after one evaluation: its folder and what `demo --json` printed."""
    folder = tmp_path_factory.mktemp("finished")
    done = cli("demo", "--dir", folder, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


@pytest.fixture
def project(tmp_path):
    """A fresh project folder, nothing evaluated yet."""
    done = cli("init", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.fixture(scope="session")
def run_cli():
    return cli


@pytest.fixture(scope="session")
def clean_environment():
    return environment
