"""Benchmarks: each compares with something in the same run. `python -m benchmarks` runs them all."""
