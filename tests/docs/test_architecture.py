"""The tree, the import contracts and docs/architecture.md say the same."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def modules_on_disk():
    found = {
        p.name for p in (ROOT / "eval_pipeline").iterdir() if p.suffix == ".py" or (p.is_dir() and any(p.glob("*.py")))
    }
    return {name.removesuffix(".py") for name in found} - {"__init__", "sample", "__pycache__"}


def layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return next(c["layers"] for c in contracts if c["type"] == "layers")


def test_the_page_names_every_module_and_no_other():
    tree = PAGE.split("## The tree")[1].split("```")[1]
    named = set(re.findall(r"[├└]── (\w+)", tree)) - {"__init__"}
    assert named == modules_on_disk()


def test_the_contract_names_every_module_and_no_other():
    assert {name.strip() for line in layers() for name in re.split(r"[|:]", line)} == modules_on_disk()


def test_the_page_shows_the_layers_of_the_contract():
    block = PAGE.split("Imports point down only:")[1].split("```")[1]
    assert [line.strip() for line in block.strip().splitlines()] == layers()


def test_imports_keep_the_contracts():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_assets_fit_one_screen():
    assert len((ROOT / "eval_pipeline" / "defs" / "assets.py").read_text(encoding="utf-8").splitlines()) <= 72
