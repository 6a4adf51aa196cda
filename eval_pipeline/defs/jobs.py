"""The jobs: one evaluation from dataset to report."""

import dagster as dg

EVALUATE = dg.define_asset_job("evaluate", selection=dg.AssetSelection.all(), description="One evaluation, end to end.")
JOBS = [EVALUATE]
