"""A real loopback server in its own process."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

SERVER = Path(__file__).with_name("loopback_server.py")


class Loopback:
    """The server's URL, its knobs and its counters."""

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
    _loopback.control()
    return _loopback
