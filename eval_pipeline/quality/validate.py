"""Runs a table's suite over its rows. great_expectations is imported inside, since it costs seconds."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from eval_pipeline.quality.findings import Finding
from eval_pipeline.tables import Table

ID_COLUMNS = ("item_id", "metric")
LIMIT = 1_000


def validate(table: Table, frame: pl.DataFrame) -> list[Finding]:
    """Findings of the table's suite: rules derived from its columns (null, allowed words), then its own.

    Raises:
        RuntimeError: an expectation itself broke; its failure would look like rot.
    """
    if frame.is_empty():
        return []
    with _quiet():
        result = _run(_context(), table, frame)
    return [found for one in result.results if (found := _finding(one, frame)) is not None]


def data_docs(table: Table, frame: pl.DataFrame, folder: Path) -> Path:
    """Writes the suite's result over these rows as Great Expectations data docs; returns the page to open."""
    with _quiet():
        import great_expectations as gx

        context = _context()
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.resolve())}
        site = {
            "class_name": "SiteBuilder",
            "store_backend": store,
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        }
        context.add_data_docs_site("local", site)
        definition = context.validation_definitions.add(
            gx.ValidationDefinition(name=table.name, data=_batch(context, table), suite=_suite(context, table))
        )
        gx.Checkpoint(name=table.name, validation_definitions=[definition]).run({"dataframe": frame.to_pandas()})
        context.build_data_docs(site_names=["local"])
    return folder / "index.html"


@contextmanager
def _quiet() -> Iterator[None]:
    """Great Expectations warns of its own deprecated parts, and prints progress bars."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _context() -> Any:
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}  # pyright: ignore[reportAttributeAccessIssue]
    return context


def _suite(context: Any, table: Table) -> Any:
    import great_expectations as gx

    return context.suites.add(gx.ExpectationSuite(name=table.name, expectations=_expectations(table)))


def _batch(context: Any, table: Table) -> Any:
    asset = context.data_sources.add_pandas("rows").add_dataframe_asset(table.name)
    return asset.add_batch_definition_whole_dataframe("all")


def _run(context: Any, table: Table, frame: pl.DataFrame) -> Any:
    batch = _batch(context, table).get_batch({"dataframe": frame.to_pandas()})
    return batch.validate(_suite(context, table), result_format="COMPLETE")


def _expectations(table: Table) -> list[Any]:
    import great_expectations.expectations as gxe

    derived = [
        gxe.ExpectColumnValuesToNotBeNull(
            column=column.name, meta={"rule": f"{column.name} is there", "severity": "error"}
        )
        for column in table.columns
        if not column.is_nullable
    ]
    derived += [
        gxe.ExpectColumnValuesToBeInSet(
            column=column.name,
            value_set=list(column.allowed),
            meta={"rule": f"{column.name} is a known word", "severity": "error"},
        )
        for column in table.columns
        if column.allowed
    ]
    own = f"eval_pipeline.quality.suites.{table.name}"
    return derived + (importlib.import_module(own).rules() if importlib.util.find_spec(own) else [])


def _finding(result: Any, frame: pl.DataFrame) -> Finding | None:
    for raised in _exceptions(result.exception_info):
        raise RuntimeError(f"{result.expectation_config.type} broke: {raised}")
    if result.success:
        return None
    meta = result.expectation_config.meta
    indexes = list(result.result.get("unexpected_index_list") or [])
    names = [column for column in ID_COLUMNS if column in frame.columns]
    ids = [" / ".join(str(frame[name][index]) for name in names) for index in indexes[:LIMIT]]
    count = int(result.result.get("unexpected_count") or len(indexes))
    rule = meta["rule"]
    return Finding(
        rule, meta["severity"], f"{rule}: {count} row(s) break it", f"{rule}: 어긋난 행 {count}개", tuple(ids), count
    )


def _exceptions(info: Any) -> list[str]:
    """Exceptions an expectation raised; the shape differs between one and several metrics."""
    if not info:
        return []
    entries = [info] if "raised_exception" in info else list(info.values())
    return [
        str(entry.get("exception_message"))
        for entry in entries
        if isinstance(entry, dict) and entry.get("raised_exception")
    ]
