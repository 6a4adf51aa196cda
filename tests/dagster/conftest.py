"""A finished project of one's own, edited as people edit it, and a system that tells its release by URL."""

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

    def __init__(self, root):
        self.root = root
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


@pytest.fixture
def folder(finished, tmp_path):
    """The finished project, copied."""
    return Folder(shutil.copytree(finished[0], tmp_path / "project"))


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


@pytest.fixture
def folder_of_few(tmp_path, run_cli):
    """A fresh project of twelve items without labels, nothing evaluated yet."""
    root = tmp_path / "few"
    assert run_cli("init", root, cwd=tmp_path).returncode == 0
    dataset = root / "datasets" / "helpdesk"
    items = (dataset / "items.jsonl").read_text(encoding="utf-8").splitlines()
    shutil.rmtree(dataset / "labels")
    for name in ("log.jsonl", "items.jsonl"):
        (dataset / name).unlink()
    shutil.rmtree(dataset / "versions", ignore_errors=True)
    few = root / "few.jsonl"
    few.write_text("\n".join(items[:12]), encoding="utf-8")
    done = run_cli("dataset", "add", "helpdesk", few, "--tag", "v1", "--message", "a few", cwd=root)
    assert done.returncode == 0, done.stderr
    return Folder(root)
