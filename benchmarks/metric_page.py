"""docs/metrics.md: what each metric asks, needs and computes, and what it costs and withstands on the bundled dataset.

`make metrics-docs` writes the page. Words come from the metric files; numbers are measured here with the embedded judge,
whose questions are those of any judge: the calls and the sizes of the prompts are real, the grades are a baseline's.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from eval_pipeline import prompts
from eval_pipeline.asking import Asker
from eval_pipeline.chat import ChatReply, ChatRequest
from eval_pipeline.intake import datasets
from eval_pipeline.llm.ngram_embedding import NgramEmbedding
from eval_pipeline.llm.overlap_judge import OverlapJudge
from eval_pipeline.llm.tokens import estimate
from eval_pipeline.metrics import available, declare, g_eval
from eval_pipeline.metrics.declaration import Metric, Sample, Verdict
from eval_pipeline.metrics.inputs import screen
from eval_pipeline.stages import decomposition
from eval_pipeline.stages.sampling import samples
from eval_pipeline.stages.scoring import score_one
from eval_pipeline.vocabulary import Language, Outcome

DATASET = Path(__file__).parents[1] / "datasets" / "helpdesk"
WITH_REFERENCE = {"needs": ("user_input", "response", "reference")}
DRAWS, RATE = 20, 0.05
MESSAGE_TOKENS = 4
PAIRS = (
    ("Is the answer right?", ("answer_accuracy", "factual_correctness", "answer_correctness", "rubric_score", "g_eval")),
    ("Did the retriever find what was needed?", ("context_relevance", "context_precision", "context_recall")),
    ("Is the answer supported by what was found?", ("response_groundedness", "faithfulness")),
)  # fmt: skip
EXPLAINED = {
    "answer_accuracy": "two raw grades and their difference",
    "context_relevance": "two raw grades and their difference",
    "response_groundedness": "two raw grades and their difference",
    "rubric_score": "one grade and the judge's feedback",
    "g_eval": "one grade",
    "context_precision": "a verdict for each context",
}


class Counted:
    """The embedded judge, with what a judge by prompt would have read and written."""

    def __init__(self) -> None:
        self._judge = OverlapJudge()
        self.identity = self._judge.identity
        self.calls = self.read = self.written = 0

    async def reply(self, request: ChatRequest) -> ChatReply:
        reply = await self._judge.reply(request)
        self.calls += 1
        self.read += sum(estimate(message["content"]) + MESSAGE_TOKENS for message in request.messages)
        self.written += estimate(reply.text)
        return reply


@dataclass(frozen=True, slots=True)
class Measured:
    """One metric on all items; numbers are per item that its inputs did not settle.

    Attributes:
        parts: claims or contexts judged; null for metrics that judge the whole.
        kept: share of scores that are left when each reply is lost with probability `RATE`.
        moved: mean absolute change of a score when each grade is another allowed one with probability `RATE`.
    """

    metric: Metric
    calls: float
    read: float
    written: float
    parts: float | None
    kept: float | None
    moved: float | None


def bundled() -> list[Sample]:
    """The bundled items with the responses of aurora, and of borealis as the rival."""
    items = datasets.load(DATASET, "latest").items
    mine, rival = (pl.read_ndjson(DATASET / "responses" / f"{name}.jsonl") for name in ("aurora", "borealis"))
    return samples(items, mine, rival)


async def ask(metric: Metric, sample: Sample, asker: Asker) -> tuple[Sample, list[Verdict]]:
    """The sample with its claims, and the verdicts of both rounds."""
    wanted = decomposition.questions(sample, metric.decomposes)
    made = [(await asker.ask(question, sample.language)).verdict for question in wanted]
    sample = replace(
        sample,
        claims={one.question.part_source: one.texts for one in made},
        claim_outcomes={one.question.part_source: one.outcome for one in made},
    )
    if screen(metric, sample) is not None:
        return sample, []
    found = [(await asker.ask(question, sample.language)).verdict for question in metric.questions(sample)]
    if metric.follow_up is not None:
        found += [(await asker.ask(question, sample.language)).verdict for question in metric.follow_up(sample, found)]
    return sample, found


def measure(name: str, whole: Sequence[Sample]) -> Measured:
    """Asks everything once, then loses and falsifies replies in a seeded simulation."""
    options = WITH_REFERENCE if name in {"rubric_score", "g_eval"} else {}
    metric = declare(name, options)
    judge = Counted()
    asker = Asker(judge, NgramEmbedding())

    async def all_of_them() -> list[tuple[Sample, list[Verdict]]]:
        return [await ask(metric, sample, asker) for sample in whole if screen(metric, sample) is None]

    asked = asyncio.run(all_of_them())
    judged = [one for one in asked if one[1]]
    scores = [score_one(metric, *one) for one in judged]
    counts = [score.part_count for score in scores if score.part_count is not None]
    kept, moved = _robustness(metric, judged) if metric.template_ids else (None, None)
    per_item = len(asked) or 1
    return Measured(
        metric, judge.calls / per_item, judge.read / per_item, judge.written / per_item,
        sum(counts) / len(counts) if counts else None, kept, moved,
    )  # fmt: skip


def _robustness(metric: Metric, judged: Sequence[tuple[Sample, list[Verdict]]]) -> tuple[float, float | None]:
    draw = random.Random(7)
    left, changes, total = 0, [], 0
    for sample, verdicts in judged:
        truth = score_one(metric, sample, verdicts).value
        if truth is None:
            continue
        for _ in range(DRAWS):
            total += 1
            is_whole = all(draw.random() >= RATE for _ in decomposition.questions(sample, metric.decomposes))
            seen = [one if draw.random() >= RATE or _is_unjudged(one) else _lost(one) for one in verdicts]
            left += is_whole and score_one(metric, sample, seen).value is not None
            false = [_other(one, draw) if draw.random() < RATE else one for one in verdicts]
            value = score_one(metric, sample, false).value
            if value is not None:
                changes.append(abs(value - truth))
    graded = any(one.grade is not None for _, verdicts in judged for one in verdicts)
    return left / total, sum(changes) / len(changes) if graded else None


def _is_unjudged(one: Verdict) -> bool:
    return one.question.template_id == "similarity"


def _lost(one: Verdict) -> Verdict:
    return Verdict(one.question, Outcome.REFUSED, method=one.method)


def _other(one: Verdict, draw: random.Random) -> Verdict:
    """The same verdict with another grade of the scale."""
    grades = one.question.grades
    if one.grade is None or len(grades) < 2:
        return one
    grade = draw.choice([grade for grade in grades if grade != one.grade])
    return replace(one, grade=grade, value=(grade - grades[0]) / (grades[-1] - grades[0]))


def page() -> str:
    """The page as Markdown."""
    whole = bundled()
    found = {name: measure(name, whole) for name in available()}
    parts = [
        _HEAD.format(items=len(whole), korean=sum(one.language == Language.KO for one in whole)),
        _glance(found),
        _WHICH.format(rate=f"{RATE:.0%}", draws=DRAWS),
    ]
    for question, names in PAIRS:
        parts += [f"### {question}", _compared([(name, found[name]) for name in names])]
    parts += [_READING, "## Each metric", *(_section(name, one) for name, one in found.items())]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]], left: int = 1) -> str:
    rule = ["---"] * left + ["--:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, rule, *rows))


def _number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _needs(name: str) -> str:
    return ", ".join(f"`{field}`" for field in declare(name).needs)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _glance(found: dict[str, Measured]) -> str:
    rows = [
        [f"[`{name}`](#{name})", one.metric.summary[Language.EN], _needs(name),
         _number(one.calls), _number(one.read, 0), _number(one.written, 0)]
        for name, one in found.items()
    ]  # fmt: skip
    return _table(["metric", "asks", "needs", "calls", "tokens read", "tokens written"], rows, 3)


def _compared(rows: Sequence[tuple[str, Measured]]) -> str:
    shown = [
        [f"`{name}`", EXPLAINED.get(name, f"a verdict for each of {_number(one.parts)} claims"), _number(one.calls),
         _number(one.read + one.written, 0), _share(one.kept), _number(one.moved, 3)]
        for name, one in rows
    ]  # fmt: skip
    head = [
        "metric",
        "explains itself by",
        "calls",
        "tokens",
        f"scores left, {RATE:.0%} lost",
        f"moved, {RATE:.0%} wrong",
    ]
    return _table(head, shown, 2)


def _section(name: str, one: Measured) -> str:
    module = available()[name]
    text = inspect.getdoc(module) or ""
    _, _, said = text.partition(": ")
    lines = [f"### {name}", said[:1].upper() + said[1:]]
    options = [
        f"`{key}` ({parameter.default!r})" for key, parameter in inspect.signature(module.declare).parameters.items()
        if key not in {"name", "preset"}
    ]  # fmt: skip
    facts = [f"- needs: {_needs(name)}"]
    if one.metric.label_scale:
        facts.append(f"- people label it on: {', '.join(map(str, one.metric.label_scale))}")
    if options:
        facts.append(f"- options (default): {'; '.join(options)}. {inspect.getdoc(module.declare)}".replace("\n", " "))
    if one.metric.template_ids:
        used = [*(["claims"] if one.metric.decomposes else []), *one.metric.template_ids]
        texts = (f"`{name}` v{prompts.load(name, Language.EN).version}" for name in used)
        facts.append(f"- prompts, in English and Korean: {', '.join(texts)}")
    if name == "g_eval":
        facts.append(f"- presets: {', '.join(f'`{preset}`' for preset in g_eval.PRESETS)}")
    return "\n\n".join([*lines, "\n".join(facts)])


_HEAD = """# Metrics

Written by `make metrics-docs`; a test compares it with the metrics. Every metric is in [0, 1], higher is better, and null when it is unknown.

Calls and tokens are per item, measured on the bundled dataset ({items} items, {korean} of them Korean) with every prompt rendered; tokens by the estimate that `--dry-run` uses. Claims are counted for each metric on its own: in one evaluation metrics share them. What is written is a bare grade or the claims; a judge that reasons first writes more. `rubric_score` and `g_eval` are measured with the reference among their fields."""

_WHICH = """## Which one

Each table answers one question with what it costs and withstands. *Scores left*: how many scores there still are when each reply is lost with probability {rate} (a lost claim or context leaves the score null, between bounds). *Moved*: mean absolute change of a score when each grade is another one of its scale with probability {rate}. Both are simulated, {draws} draws an item, on the verdicts of the embedded judge."""

_READING = """Read as:

- **Dual** (`answer_accuracy`, `context_relevance`, `response_groundedness`): two short calls, and a score survives the loss of either. The first choice for every night and every pull request. It says how much, not where.
- **Claims** (`faithfulness`, `factual_correctness`, `answer_correctness`, `context_recall`): the most calls, and the most to lose; in return each wrong claim is named. For finding out why, and for long answers of which a part is wrong. With about one claim a text, as here, one wrong grade moves the score as far as elsewhere; with more claims it moves it less.
- **Rubric and G-Eval** (`rubric_score`, `g_eval`): one call on a scale of your own, for what no other metric asks. One lost reply is a lost score, and one judge's whim is the whole grade: calibrate each instance by itself.
- **No judge** (`exact_match`, `token_f1`): free, and blind to other wordings; for short closed answers."""


if __name__ == "__main__":
    print(page(), end="")
