"""Runs every benchmark in order, each in a fresh process."""

import subprocess
import sys
from pathlib import Path

for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    if path.stem != "operating_characteristics":
        print(f"\n## {path.stem}", flush=True)
        subprocess.run([sys.executable, str(path)], check=False)
