"""Parts of a dataset's version as files: splits, checked for questions that two of them share, and samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from eval_pipeline.errors import DatasetInvalid, NotWritable, TargetExists, UnknownName
from eval_pipeline.intake import exporting
from eval_pipeline.quality import rot
from eval_pipeline.quality.findings import Finding
from eval_pipeline.stages import splitting
from eval_pipeline.stages.versioning import slug


def parse_shares(text: str) -> dict[str, float]:
    """`train=0.8,test=0.2` as shares by name.

    Raises:
        DatasetInvalid: a part is not NAME=SHARE with a positive share, or a name occurs twice.
        UnknownName: a name is not one a file may have.
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = (one.strip() for one in part.partition("="))
        try:
            value = float(share)
        except ValueError:
            value = 0.0
        if not name or name in shares or not 0 < value < float("inf"):
            problem = (
                f"  {part!r} is not NAME=SHARE with a positive share and a name of its own, as in train=0.8,test=0.2"
            )
            raise DatasetInvalid(path="--into", count=1, problems=problem)
        if slug(name) != name:
            raise UnknownName(kind="part name (letters, digits, Hangul, `.` and `_`)", name=name, known=[slug(name)])
        shares[name] = value
    return shares


def split(
    items: pl.DataFrame, shares: Mapping[str, float], seed: int, folder: Path, force: bool = False
) -> tuple[dict[str, tuple[Path, int]], list[Finding]]:
    """Writes `<part>.jsonl` for each part; returns file and item count by part, and questions that two parts share.

    Raises:
        TargetExists: a file is there already, and `force` does not say to replace it.
        NotWritable: the folder cannot be written.
    """
    targets = {name: folder / f"{name}.jsonl" for name in shares}
    for target in targets.values():
        _may_write(target, force)
    parts = splitting.split(items, shares, seed)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritable(path=folder, reason=error.strerror or str(error)) from error
    written = {name: (targets[name], exporting.export(part, targets[name])) for name, part in parts.items()}
    return written, rot.cross_split(parts)


def sample(items: pl.DataFrame, n: int, seed: int, target: Path, force: bool = False) -> int:
    """Writes about `n` items, whole clusters only, in the format of the target's suffix; returns how many.

    Raises:
        TargetExists: the file is there already, and `force` does not say to replace it.
        UnknownName: no such format.
        NotWritable: it cannot be written.
    """
    _may_write(target, force)
    return exporting.export(splitting.sample(items, n, seed), target)


def _may_write(target: Path, force: bool) -> None:
    if target.exists() and not force:
        raise TargetExists(path=target)
