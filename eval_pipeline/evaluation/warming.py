"""One share of an evaluation's questions, asked ahead so that the ordinary run finds every answer in the ledger.

Any number of workers may take a share each: they meet in the ledger only, and write no table.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass

import polars as pl

from eval_pipeline.evaluation import evidence
from eval_pipeline.evaluation.judges import Limits, first_stop, paid
from eval_pipeline.evaluation.steps import Evaluation
from eval_pipeline.evaluation.trust import ask_about_labels
from eval_pipeline.intake import datasets
from eval_pipeline.metrics.declaration import Sample
from eval_pipeline.stages import decomposition
from eval_pipeline.stages.sampling import CLAIMS_METRIC, samples, with_claims
from eval_pipeline.tables import RESPONSES


@dataclass(frozen=True, slots=True)
class Share:
    """One of `count` parts of equal expectation, by a hash of the item id.

    The same item falls to the same part on any machine, and a labelled text to that of its item: the two often are the
    same question, which one part asks once.
    """

    index: int
    count: int

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows whose `item_id` falls to this part."""
        mine = [self._hash(item_id) % self.count == self.index for item_id in frame["item_id"]]
        return frame.filter(pl.Series(mine, dtype=pl.Boolean))

    @staticmethod
    def _hash(item_id: str) -> int:
        return int.from_bytes(hashlib.sha256(item_id.encode()).digest()[:8], "big")

    def limits(self, whole: Limits) -> Limits:
        """This part's limits: no part knows what the others have spent, so each may spend its own part only."""
        calls = None if whole.max_calls is None else (whole.max_calls + self.index) // self.count
        return Limits(calls, None if whole.max_cost_usd is None else whole.max_cost_usd / self.count)


@dataclass(frozen=True, slots=True)
class Warmed:
    """What one share came to. `question_count` and `call_count` are of this share's items and labelled texts."""

    item_count: int
    label_count: int
    question_count: int
    call_count: int


def warm(evaluation: Evaluation, share: Share) -> Warmed:
    """Asks what the ordinary run will ask about the items and labelled texts of one share.

    The evaluation's responses must be stored already: the run that follows has to ask about the same ones.

    Raises:
        Stopped: the provider or the share's limits ended it; what was paid for is in the ledger.
    """
    items = share.of(evaluation.items())
    whole = samples(items, evaluation.read(RESPONSES), evidence.rivals(evaluation))
    labels = share.of(datasets.labels(evaluation.project.dataset_folder(evaluation.dataset), evaluation.dataset))
    return asyncio.run(_warm(evaluation, share, whole, labels))


async def _warm(evaluation: Evaluation, share: Share, whole: list[Sample], labels: pl.DataFrame) -> Warmed:
    limits = share.limits(evaluation.limits())
    account, labels_account = accounts = [f"{payer}/{share.index}" for payer in evaluation.payers()[:2]]
    questions = calls = 0

    def count(frame: pl.DataFrame) -> None:
        nonlocal questions, calls
        questions, calls = questions + frame.height, calls + int(frame["call_count"].sum())

    # Labelled texts first: an evaluation that ends early without them could certify nobody.
    async with evaluation.bench(limits.less(paid(evaluation.project, accounts)), labels_account) as bench:
        askers = evaluation.askers(bench)
        _, verdicts = await ask_about_labels(evaluation, labels, askers)
        count(verdicts)
    if stop := first_stop(askers, bench):
        raise stop
    async with evaluation.bench(limits.less(paid(evaluation.project, accounts)), account) as bench:
        askers = evaluation.askers(bench)
        wanted = decomposition.sources(list(evaluation.metrics().values()))
        origin = evaluation.origin(CLAIMS_METRIC, None, evaluation.judge)
        claims, verdicts = await decomposition.decompose(whole, wanted, askers[evaluation.judge], origin)
        count(verdicts)
        async for frame in evaluation.judged(with_claims(whole, claims, verdicts), askers):
            count(frame)
    if stop := first_stop(askers, bench):
        raise stop
    return Warmed(len(whole), labels["content_sha256"].n_unique(), questions, calls)
