"""The jobs: one evaluation from dataset to report, and its questions asked ahead by many workers."""

import dagster as dg

from eval_pipeline.defs.resources import ProjectResource, RunOptions, WarmTarget, executor, shard_count
from eval_pipeline.defs.steps import prepare, warm_share

EVALUATE = dg.define_asset_job("evaluate", selection=dg.AssetSelection.all(), description="One evaluation, end to end.")
Context = dg.OpExecutionContext
SHARDS = shard_count()


@dg.op(out=dg.Out(dg.Nothing), description="The dataset version and the responses of a new evaluation.")
def responses_to_judge(context: Context, project: ProjectResource, run_options: RunOptions, target: WarmTarget) -> None:
    prepare(context, project, run_options, target)


def shard(index: int) -> dg.OpDefinition:
    """The op that asks one share of the questions."""

    @dg.op(name=f"shard_{index}", ins={"start": dg.In(dg.Nothing)}, out=dg.Out(dg.Nothing),
           description=f"Asks share {index + 1} of {SHARDS} of the questions; the replies go to the ledger only.")  # fmt: skip
    def ask(context: Context, project: ProjectResource, run_options: RunOptions, target: WarmTarget) -> None:
        warm_share(context, project, run_options, target, index, SHARDS)

    return ask


@dg.job(executor_def=executor(), description="Asks an evaluation's questions on many workers; `run --resume` then "
        "finds every answer in the ledger.")  # fmt: skip
def warm_ledger() -> None:
    start = responses_to_judge()
    for index in range(SHARDS):
        shard(index)(start=start)


JOBS = [EVALUATE, warm_ledger]
