"""A small project of one's own, edited as people edit it, and a system that tells its release by URL."""

import json
import shutil
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from eval_pipeline.evaluation.project import Project

sys.path.insert(0, str(Path(__file__).parent))  # makes `deployment` importable from the tests of this folder


class Folder:
    """A project folder whose `evaluation.yaml` is edited by a function on its content."""

    def __init__(self, root, evaluation_id=None):
        self.root, self.evaluation_id = root, evaluation_id
        self.file = root / "evaluation.yaml"

    def edit(self, change):
        content = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        change(content)
        self.file.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")

    def load(self):
        return Project.find(self.root, {})

    def add_dataset_version(self, tag, run_cli):
        items = (self.root / "datasets" / "helpdesk" / "items.jsonl").read_text(encoding="utf-8").splitlines()
        new = {**json.loads(items[0]), "item_id": f"added-{tag}", "user_input": f"What does {tag} add?"}
        file = self.root / "items.jsonl"
        file.write_text("\n".join([*items, json.dumps(new, ensure_ascii=False)]), encoding="utf-8")
        done = run_cli("dataset", "add", "helpdesk", file, "--tag", tag, "--message", "one more", cwd=self.root)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def _few(tmp_path_factory, run_cli):
    """A project of twelve items and one metric, without labels, nothing evaluated yet."""
    root = tmp_path_factory.mktemp("few")
    assert run_cli("init", root, cwd=root).returncode == 0
    dataset = root / "datasets" / "helpdesk"
    items = (dataset / "items.jsonl").read_text(encoding="utf-8").splitlines()
    for old in [dataset / "log.jsonl", dataset / "items.jsonl", *(dataset / "labels").glob("*.jsonl")]:
        old.unlink()
    shutil.rmtree(dataset / "versions", ignore_errors=True)
    few = root / "few.jsonl"
    few.write_text("\n".join(items[:12]), encoding="utf-8")
    done = run_cli("dataset", "add", "helpdesk", few, "--tag", "v1", "--message", "a few", cwd=root)
    assert done.returncode == 0, done.stderr

    def one_metric(content):
        content["metrics"] = {"answer_accuracy": {}}
        content["gate"]["metrics"] = {"answer_accuracy": {"floor": 0.1}}

    Folder(root).edit(one_metric)
    return root


@pytest.fixture
def folder_of_few(_few, tmp_path):
    """The project of twelve items, copied."""
    return Folder(shutil.copytree(_few, tmp_path / "project"))


@pytest.fixture(scope="session")
def _evaluated(_few, tmp_path_factory, run_cli):
    root = shutil.copytree(_few, tmp_path_factory.mktemp("evaluated") / "project")
    done = run_cli("run", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    return root, json.loads(done.stdout)["evaluation_id"]


@pytest.fixture
def folder(_evaluated, tmp_path):
    """The same after one evaluation."""
    root, evaluation_id = _evaluated
    return Folder(shutil.copytree(root, tmp_path / "project"), evaluation_id)


class ReleaseUrl:
    """A loopback URL that tells a release, and how often it was read; a null release is a failure."""

    def __init__(self):
        self.release, self.read_count = "r1", 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.read_count += 1
                body = json.dumps({"git_sha": outer.release}).encode()
                self.send_response(503 if outer.release is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/version"


@pytest.fixture
def release_url():
    served = ReleaseUrl()
    thread = threading.Thread(target=served.server.serve_forever, daemon=True)
    thread.start()
    yield served
    served.server.shutdown()
    served.server.server_close()
    thread.join()
