"""The models made in the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # importmode=importlib puts no test folder on the path
