"""How often the intervals and rules are wrong: coverage, false certification, false alarms, by simulation.

    python benchmarks/operating_characteristics.py [--quick] [--seed N] [--json FILE]

Prints one table per question, each row with the rate it may not exceed (or must reach); exits 1 when one is missed.
`--quick` is the small version for CI. The truth of each cell is known by construction, never estimated from the runs.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from eval_pipeline.stats.calibration_rule import calibrate
from eval_pipeline.stats.counts import Counts, PairTable
from eval_pipeline.stats.means import mean_interval, stratified_mean
from eval_pipeline.stats.multiplicity import JudgeCandidate, cheapest_judge
from eval_pipeline.stats.paired import paired_difference
from eval_pipeline.stats.quality import ppi_mean, rogan_gladen
from eval_pipeline.stats.regression_rule import Regression, against_window
from eval_pipeline.stats.tails import cvar_lower_limit

LEVELS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
CLUSTER_CUTS = np.array([-2.053749, -1.644854, -1.281552, -0.841621])  # normal quantiles of .02, .05, .10, .20
MARGINALS = {"33/33/33": (1 / 3, 1 / 3, 1 / 3), "15/20/65": (0.15, 0.20, 0.65), "4/6/90": (0.04, 0.06, 0.90)}


@dataclass(frozen=True, slots=True)
class Row:
    """One simulated rate with what is asked of it."""

    question: str
    cell: str
    rate: float
    runs: int
    bound: float | None
    must_reach: bool = False

    @property
    def is_met(self) -> bool:
        """Within the bound, allowing two Monte Carlo standard errors of the bound itself."""
        if self.bound is None:
            return True
        slack = 2 * math.sqrt(self.bound * (1 - self.bound) / self.runs)
        return self.rate >= self.bound - slack if self.must_reach else self.rate <= self.bound + slack


def share(runs: int, event: Callable[[], bool]) -> float:
    """Share of runs in which the event happens."""
    return sum(event() for _ in range(runs)) / runs


def mean_cells(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """Coverage of the 95% interval of a mean, rows independent and in clusters."""
    shapes = {
        "mean .975": (0, 0, 0.05, 0, 0.95),
        "mean .893": (0.03, 0.04, 0.05, 0.09, 0.79),
        "mean .60": (0.2, 0.1, 0.2, 0.1, 0.4),
    }
    for label, shape in shapes.items():
        truth = float(LEVELS @ np.array(shape))
        for n in (20, 50, 500):

            def covered(n: int = n, shape: Any = shape, truth: float = truth) -> bool:
                stat = mean_interval(Counts(LEVELS, rng.multinomial(n, shape).astype(float)))
                return stat.lower <= truth <= stat.upper  # type: ignore[operator]

            yield Row("mean interval covers", f"{label}, n={n}", share(runs, covered), runs, 0.94, must_reach=True)
    for groups, size in ((10, 10), (20, 5), (50, 20)):
        rate = share(runs, lambda g=groups, m=size: _cluster_covers(rng, g, m))
        yield Row("mean interval covers", f"{groups} clusters of {size}", rate, runs, 0.94, must_reach=True)
    rate = share(runs, lambda: _two_kinds_cover(rng))
    # Reported without a bound: one sample in five has no bad cluster, and no method can know of it.
    yield Row("mean interval covers", "10 clusters of 10, good or bad as a whole", rate, runs, None)
    rate = share(runs, lambda: _strata_cover(rng))
    yield Row("weighted mean interval covers", "strata of 120/40/15, 50/30/20%", rate, runs, 0.94, must_reach=True)


def _cluster_covers(rng: np.random.Generator, groups: int, size: int) -> bool:
    """Latent normal scores with an intra-class correlation of .5, cut to (2, 3, 5, 10, 80)%: the mean is .9075."""
    latent = math.sqrt(0.5) * (rng.normal(size=(groups, 1)) + rng.normal(size=(groups, size)))
    scores = LEVELS[np.searchsorted(CLUSTER_CUTS, latent.ravel())]
    stat = mean_interval(scores, clusters=np.repeat(np.arange(groups), size))
    return stat.lower <= 0.9075 <= stat.upper  # type: ignore[operator]


def _two_kinds_cover(rng: np.random.Generator) -> bool:
    """10 clusters of 10, each good (.97) or bad (.55) as a whole: .85 * .97 + .15 * .55 = .907."""
    quality = np.where(rng.random(10) < 0.15, 0.55, 0.97)
    scores = (rng.random((10, 10)) < quality[:, None]).astype(float).ravel()
    stat = mean_interval(scores, clusters=np.repeat(np.arange(10), 10))
    return stat.lower <= 0.907 <= stat.upper  # type: ignore[operator]


def _strata_cover(rng: np.random.Generator) -> bool:
    rates, sizes, weights = (0.95, 0.8, 0.9), (120, 40, 15), {"a": 0.5, "b": 0.3, "c": 0.2}
    scores = np.concatenate([(rng.random(n) < rate).astype(float) for rate, n in zip(rates, sizes, strict=True)])
    stat = stratified_mean(scores, np.repeat(list("abc"), sizes).tolist(), weights)
    truth = sum(rate * weight for rate, weight in zip(rates, weights.values(), strict=True))
    return stat.lower <= truth <= stat.upper  # type: ignore[operator]


def _normal_table(human: tuple[float, ...], correlation: float) -> np.ndarray:
    """Cell probabilities of a latent-normal judge (5 levels) and human (3 levels), both with the human marginal."""
    from scipy.stats import multivariate_normal, norm

    judge = np.array([human[0], human[1] / 3, human[1] / 3, human[1] / 3, human[2]])
    x, y = (norm.ppf(np.clip(np.cumsum(p)[:-1], 1e-9, 1 - 1e-9)) for p in (np.array(human), judge))
    xs, ys = np.r_[-9, x, 9], np.r_[-9, y, 9]
    normal = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]])
    corner = np.array([[normal.cdf([a, b]) for b in ys] for a in xs])
    return np.clip(np.diff(np.diff(corner, axis=0), axis=1), 0, None)


def _population_rho(table: np.ndarray) -> float:
    table = table / table.sum()
    px, py = table.sum(axis=1), table.sum(axis=0)
    r, s = np.cumsum(px) - px / 2 - 0.5, np.cumsum(py) - py / 2 - 0.5
    return float(r @ table @ s / math.sqrt((px @ r**2) * (py @ s**2)))


@lru_cache(maxsize=64)
def judge_table(marginal: str, rho: float) -> np.ndarray:
    """The table of a judge whose population Spearman rho is exactly `rho`."""
    from scipy.optimize import brentq

    human = MARGINALS[marginal]
    latent = brentq(lambda c: _population_rho(_normal_table(human, c)) - rho, 0.2, 0.9995, xtol=1e-5)
    table = _normal_table(human, float(latent))
    return table / table.sum()


def draw_pairs(rng: np.random.Generator, table: np.ndarray, n: int) -> PairTable:
    """n pairs drawn from cell probabilities."""
    return PairTable.from_counts([0, 0.5, 1], LEVELS, rng.multinomial(n, table.ravel()).reshape(table.shape))


def calibration_cells(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """False certification at the bar, and the chance that a better judge passes."""
    for marginal in MARGINALS:
        for n in (50, 100, 200):
            rate = _pass_rate(3 * runs, rng, marginal, 0.70, n)
            yield Row("calibration passes a judge AT the bar .70", f"{marginal}, n={n}", rate, 3 * runs, 0.06)
    for rho in (0.60, 0.80, 0.85, 0.90):
        for marginal in ("33/33/33", "15/20/65"):
            for n in (50, 100, 200):
                rate = _pass_rate(runs // 2, rng, marginal, rho, n)
                yield Row(
                    "calibration passes",
                    f"rho {rho:.2f}, {marginal}, n={n}",
                    rate,
                    runs // 2,
                    0.06 if rho < 0.7 else None,
                )


def _pass_rate(runs: int, rng: np.random.Generator, marginal: str, rho: float, n: int) -> float:
    table = judge_table(marginal, rho)
    return share(runs, lambda: calibrate(draw_pairs(rng, table, n)).decision == "pass")


def selection_cells(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """Picking the cheapest of several judges that are all exactly at the bar."""
    from eval_pipeline.stats.correlation import spearman

    table = judge_table("15/20/65", 0.70)
    for judges in (2, 4, 6):

        def picked(judges: int = judges) -> bool:
            rhos = [spearman(draw_pairs(rng, table, 100), level=0.95, sided="one") for _ in range(judges)]
            return cheapest_judge([JudgeCandidate(str(k), rho, 1.0) for k, rho in enumerate(rhos)]).name is not None

        yield Row(
            "some judge at the bar is picked", f"{judges} judges, n=100", share(runs // 2, picked), runs // 2, 0.06
        )


def tail_cells(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """The lower limit of CVaR10 above the true value."""
    shapes = {"mixed": (0.04, 0.04, 0.06, 0.16, 0.7), "95% perfect": (0.01, 0.01, 0.02, 0.01, 0.95)}
    for label, shape in shapes.items():
        p = np.array(shape)
        taken = np.clip(0.1 - (np.cumsum(p) - p), 0, p)
        truth = float(taken @ LEVELS) / 0.1
        for n in (50, 100, 200, 500):

            def missed(n: int = n, p: np.ndarray = p, truth: float = truth) -> bool:
                lower = cvar_lower_limit(Counts(LEVELS, rng.multinomial(n, p).astype(float))).lower
                return lower is not None and lower > truth + 1e-12

            yield Row("CVaR10 lower limit above the truth", f"{label}, n={n}", share(runs, missed), runs, 0.06)


def quality_cells(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """Coverage of the corrected quality estimates."""
    human, judge = np.repeat([0, 0.5, 1.0], 5), np.tile(LEVELS, 3)
    for marginal in ("15/20/65", "4/6/90"):
        table = judge_table(marginal, 0.70)
        truth = float(table.ravel() @ human)
        for n in (50, 100, 200):

            def covered(n: int = n, table: np.ndarray = table, truth: float = truth) -> bool:
                cell = rng.choice(15, size=1000, p=table.ravel())
                stat = ppi_mean(human[cell[:n]], judge[cell[:n]], judge[cell[n:]])
                return stat.lower <= truth <= stat.upper  # type: ignore[operator]

            yield Row(
                "PPI++ interval covers",
                f"{marginal}, {n} labels of 1000",
                share(runs // 2, covered),
                runs // 2,
                0.94,
                must_reach=True,
            )

    def rogan_covers() -> bool:
        theta, sensitivity, specificity = 0.45, 0.9, 0.8
        passed = rng.binomial(1000, theta * sensitivity + (1 - theta) * (1 - specificity))
        positives = rng.binomial(100, 0.65)
        stat = rogan_gladen(
            passed,
            1000,
            rng.binomial(positives, sensitivity),
            positives,
            rng.binomial(100 - positives, specificity),
            100 - positives,
        )
        return stat.value is not None and stat.lower <= theta <= stat.upper  # type: ignore[operator]

    yield Row(
        "Rogan-Gladen interval covers",
        "labels at .65, target at .45",
        share(runs // 2, rogan_covers),
        runs // 2,
        0.94,
        must_reach=True,
    )


def paired_cells(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """The one-sided Bonett-Price limit above the true mean difference."""
    for label, changed, worse, n in (
        ("20% change, null", 0.2, 0.5, 100),
        ("5% change, all worse", 0.05, 1.0, 100),
        ("2% change, all worse", 0.02, 1.0, 1000),
    ):
        truth = changed * (1 - 2 * worse) * 0.5

        def missed(changed: float = changed, worse: float = worse, n: int = n, truth: float = truth) -> bool:
            down, up = rng.binomial(n, changed * worse), rng.binomial(n, changed * (1 - worse))
            counts = Counts(np.array([-0.5, 0.0, 0.5]), np.array([down, max(n - down - up, 0), up], dtype=float))
            return paired_difference(counts, sided="one").lower > truth + 1e-12  # type: ignore[operator]

        yield Row("Bonett-Price lower limit above the truth", f"{label}, n={n}", share(runs, missed), runs, 0.07)


def gate_cells(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """False alarms and power of the combined regression rule, with and without shifts common to a run."""
    cells = [(100, 0.0), (300, 0.01), (1000, 0.02)]
    for n, run_sd in cells:
        rate = share(runs // 2, lambda n=n, sd=run_sd: _gate(rng, n, sd, 0.0, 0.05))
        yield Row("regression rule, false alarms", f"n={n}, run sd {run_sd}", rate, runs // 2, 0.07)
    for flaky in (0.02, 0.15):
        rate = share(runs // 2, lambda flaky=flaky: _gate(rng, 100, 0.0, 0.0, flaky))
        yield Row(
            "regression rule, false alarms", f"n=100, {flaky:.0%} flaky grades at the ceiling", rate, runs // 2, 0.07
        )
    rate = share(runs // 2, lambda: _gate(rng, 1000, 0.02, 0.0, 0.05, skewed=True))
    # Reported without a bound: run means that can only fall are outside what a normal prediction limit covers.
    yield Row("regression rule, false alarms", "n=1000, run sd 0.02, runs can only fall", rate, runs // 2, None)
    for run_sd in (0.0, 0.02):
        rate = share(runs // 4, lambda sd=run_sd: _gate(rng, 300, sd, 0.05, 0.05))
        yield Row("regression rule, power for -.05", f"n=300, run sd {run_sd}", rate, runs // 4, None)


def _gate(rng: np.random.Generator, n: int, run_sd: float, drop: float, flaky: float, skewed: bool = False) -> bool:
    return _gate_result(rng, n, run_sd, drop, flaky, skewed).verdict == "regression"


def _gate_result(
    rng: np.random.Generator, n: int, run_sd: float, drop: float, flaky: float, skewed: bool = False
) -> Regression:
    """One window of 7 runs and one new run of the same system; the new run is `drop` worse."""
    quality = rng.choice(LEVELS, size=n, p=(0.02, 0.03, 0.05, 0.1, 0.8))
    shifts = rng.normal(0, run_sd, 8)
    shifts[7] -= drop
    runs = np.where(rng.random((8, n)) < flaky, np.maximum(quality - 0.5, 0.0), quality)
    # A shift moves the mean of a run by its amount: single cases fall by half the scale, or rise to full marks.
    fall, rise = np.maximum(-shifts, 0.0) / 0.5, np.maximum(shifts, 0.0) / np.maximum((1 - runs).mean(axis=1), 1e-9)
    if skewed:
        rise = np.zeros(8)
    runs = np.where(rng.random((8, n)) < fall[:, None], np.maximum(runs - 0.5, 0.0), runs)
    runs = np.where(rng.random((8, n)) < rise[:, None], 1.0, runs)
    return against_window(list(runs[:7]), runs[7])


def contrast_cells(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """What the usual method would do in the same places: the reason for each of ours. No bounds."""
    from eval_pipeline.stats.correlation import spearman_bonett_wright

    skewed, balanced = judge_table("4/6/90", 0.70), judge_table("15/20/65", 0.70)

    def certified(table: np.ndarray, n: int) -> bool:
        lower = spearman_bonett_wright(draw_pairs(rng, table, n), sided="one").lower
        return lower is not None and lower > 0.70

    def any_of_six() -> bool:
        return any(calibrate(draw_pairs(rng, balanced, 100)).decision == "pass" for _ in range(6))

    def t_covers() -> bool:
        scores = np.repeat(LEVELS, rng.multinomial(20, (0, 0, 0.05, 0, 0.95)))
        half = 2.093 * scores.std(ddof=1) / math.sqrt(20)  # t(19), .975
        return abs(scores.mean() - 0.975) <= half

    def ppi_covers_another_run() -> bool:
        # Labels where 65% are good, target where 45% are; Se .9 and Sp .8 in both.
        good, target = rng.random(200) < 0.65, rng.random(1000) < 0.45
        judged, seen = (
            np.where(rng.random(len(g)) < 0.9, g, 0) | (~g & (rng.random(len(g)) < 0.2)) for g in (good, target)
        )
        stat = ppi_mean(good.astype(float), judged.astype(float), seen.astype(float))
        return stat.lower <= 0.45 <= stat.upper  # type: ignore[operator]

    def permutation_alone() -> bool:
        p = _gate_result(rng, 1000, 0.02, 0.0, 0.05).test.p
        return p is not None and p < 0.05

    for n in (50, 200):
        rate = share(runs, lambda n=n: certified(skewed, n))
        yield Row("instead: Bonett-Wright passes a judge at the bar", f"4/6/90, n={n}", rate, runs, None)
    yield Row("instead: no Holm over 6 judges at the bar", "some passes", share(runs // 4, any_of_six), runs // 4, None)
    yield Row("instead: t interval of a mean covers", "mean .975, n=20", share(runs, t_covers), runs, None)
    rate = share(runs, ppi_covers_another_run)
    yield Row("instead: PPI++ with labels of another run covers", "200 labels at .65, target at .45", rate, runs, None)
    rate = share(runs // 2, permutation_alone)
    yield Row("instead: permutation test alone, false alarms", "n=1000, run sd 0.02", rate, runs // 2, None)


QUESTIONS = (
    mean_cells,
    calibration_cells,
    selection_cells,
    tail_cells,
    quality_cells,
    paired_cells,
    gate_cells,
    contrast_cells,
)


def simulate(runs: int, seed: int) -> list[Row]:
    """All rows; each question has its own stream of random numbers, so one can be changed without the others moving."""
    streams = np.random.default_rng(seed).spawn(len(QUESTIONS))
    return [row for question, rng in zip(QUESTIONS, streams, strict=True) for row in question(runs, rng)]


def main(arguments: list[str] | None = None) -> int:
    """Run, print, and say with the exit code whether every bound is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200 runs per cell instead of 2,000")
    parser.add_argument("--runs", type=int, help="runs per cell")
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--json", type=Path, help="write the rows there as well")
    given = parser.parse_args(arguments)
    runs = given.runs or (200 if given.quick else 2000)
    started = time.perf_counter()
    rows = simulate(runs, given.seed)
    question = None
    for row in rows:
        if row.question != question:
            question = row.question
            print(f"\n{question}")
        bound = "" if row.bound is None else f"{'at least' if row.must_reach else 'at most'} {row.bound:.3f}"
        print(f"  {row.cell:45s} {row.rate:6.3f}  {row.runs:5d} runs  {bound:15s} {'' if row.is_met else 'MISSED'}")
    print(f"\n{time.perf_counter() - started:.1f} s, seed {given.seed}, numpy {np.__version__}, PCG64")
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
