"""One evaluation from end to end: reads tables, calls the stage, writes tables. The imperative shell of the pure core.

Dagster assets, the command line and the pytest plugin call these steps; none of them is known here.
"""
