"""`python -m eval_pipeline.cli`."""

from eval_pipeline.cli import main

main()
