"""What the code location costs to load."""

import subprocess
import sys

HEAVY = {"great_expectations", "pandas", "scipy.stats", "openai", "pyarrow", "altair", "aiohttp", "dask", "distributed"}


def test_the_code_location_loads_without_the_heavy_libraries(project, clean_environment):
    code = f"import sys, eval_pipeline.definitions\nprint(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=project, env=clean_environment(), capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert done.stdout.strip() == "[]"
