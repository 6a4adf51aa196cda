"""What tests of several areas share: projects, the command line as a process, and a judge on a loopback server."""

import importlib.util
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings

# A busy machine is no finding; what a property says is.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")

ROOT = Path(__file__).parents[1]
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
SERVER = Path(__file__).parent / "llm" / "loopback_server.py"
KEY = "sk-recognisable-0123456789"


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
    """A demo project after one evaluation: its folder and what `demo --json` printed. To be read, not evaluated again."""
    folder = tmp_path_factory.mktemp("finished")
    done = cli("demo", "--dir", folder, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    yield folder, json.loads(done.stdout)
    evaluated = list((folder / "warehouse" / "tables" / "evaluations").iterdir())
    assert len(evaluated) == 1, "a test evaluated in the project that all share; it needs `copied`"


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the finished project that may be evaluated again, and what its demo printed."""
    return shutil.copytree(finished[0], tmp_path / "copied"), finished[1]


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


class Loopback:
    """The loopback server's URL, its knobs and its counters."""

    def __init__(self, port):
        self.root = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.root}/v1"

    def control(self, **knobs):
        body = json.dumps(knobs).encode()
        urllib.request.urlopen(urllib.request.Request(f"{self.root}/_control", body), timeout=10).read()

    def counters(self):
        return json.loads(urllib.request.urlopen(f"{self.root}/_counters", timeout=10).read())


@pytest.fixture(scope="session")
def _loopback():
    process = subprocess.Popen([sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield Loopback(int(process.stdout.readline()))
    process.stdin.close()
    process.wait(timeout=10)
    process.stdout.close()


@pytest.fixture
def loopback(_loopback):
    """A real loopback server in its own process, without faults."""
    _loopback.control()
    return _loopback


@pytest.fixture
def judged_with_claims(project, loopback):
    """A project whose judge, `embedded` by name, is the loopback server with `JUDGE_KEY` as its key; every metric."""
    path = project / "evaluation.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "embedded: {provider: embedded}",
        f"""embedded:
    provider: openai
    model: judge-2024-07-18
    base_url: {loopback.base_url}
    api_key_env: JUDGE_KEY""",
    )
    path.write_text(text, encoding="utf-8")
    return project


@pytest.fixture
def judged_with_labels(judged_with_claims):
    """The same with the three dual metrics only."""
    path = judged_with_claims / "evaluation.yaml"
    text = path.read_text(encoding="utf-8")
    text = text.replace("  faithfulness: {no_claims: exclude}\n", "").replace("    faithfulness: {floor: 0.70}\n", "")
    path.write_text(text, encoding="utf-8")
    return judged_with_claims


@pytest.fixture
def judged(judged_with_labels):
    """The same without labels, so that every call is about an item."""
    for labels in (judged_with_labels / "datasets" / "helpdesk" / "labels").glob("*.jsonl"):
        labels.unlink()
    return judged_with_labels


@pytest.fixture(scope="session")
def judge_key():
    """A key that nobody could mistake when it turns up where it must not."""
    return KEY


def as_owner(command):
    """PostgreSQL refuses to run as root."""
    if os.getuid() == 0:
        return [shutil.which("runuser"), "-u", "postgres", "--", *map(str, command)]
    return list(map(str, command))


@pytest.fixture(scope="session")
def postgres_cluster():
    """A PostgreSQL of our own on a free port; its URL."""
    if not PROGRAMS:
        pytest.skip("no PostgreSQL under /usr/lib/postgresql")
    if importlib.util.find_spec("psycopg2") is None:
        pytest.skip("psycopg2 is not installed (extra `postgres`)")
    if os.getuid() == 0 and (
        shutil.which("runuser") is None or "postgres" not in {one.pw_name for one in pwd.getpwall()}
    ):
        pytest.skip("running as root, and there is no user postgres to run the server")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, options = folder / "data", f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off"
    subprocess.run(as_owner([PROGRAMS[-1] / "initdb", "-D", data, "-U", "ledger", "-A", "trust", "-E", "UTF8", "--no-sync"]),
                   check=True, capture_output=True, cwd=folder)  # fmt: skip
    control = [PROGRAMS[-1] / "pg_ctl", "-D", data, "-w", "-l", folder / "log"]
    subprocess.run(as_owner([*control, "-o", options, "start"]), check=True, stdout=subprocess.DEVNULL, cwd=folder)
    yield f"postgresql+psycopg2://ledger:s3cret@127.0.0.1:{port}/postgres"
    subprocess.run(as_owner([*control, "-m", "immediate", "stop"]), check=True, stdout=subprocess.DEVNULL, cwd=folder)
    shutil.rmtree(folder)


@pytest.fixture
def postgres_url(postgres_cluster):
    """The same, emptied of our tables afterwards."""
    yield postgres_cluster
    engine = sa.create_engine(postgres_cluster)
    with engine.begin() as connection:
        connection.execute(sa.text("drop table if exists replies, batches, payments"))
    engine.dispose()
