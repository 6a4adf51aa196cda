"""Where a project's files are, and its configuration. Values of environment variables come in as an argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eval_pipeline.config import CONFIG_NAME, EvaluationConfig, load_config
from eval_pipeline.errors import ConfigurationInvalid, ProjectNotFound
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.declaration import Metric


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with an `evaluation.yaml`.

    Attributes:
        environment: environment variables that the configuration may name.
    """

    root: Path
    config: EvaluationConfig
    environment: Mapping[str, str]

    @classmethod
    def find(cls, start: Path, environment: Mapping[str, str]) -> Project:
        """The project of `EVAL_PROJECT`, else of the nearest folder upwards that holds an `evaluation.yaml`.

        Raises:
            ProjectNotFound: there is none.
            ConfigurationInvalid: there is one, and it is not valid.
        """
        named = environment.get("EVAL_PROJECT")
        candidates = [Path(named)] if named else [start, *start.resolve().parents]
        for folder in candidates:
            if (folder / CONFIG_NAME).is_file():
                return cls(folder.resolve(), load_config(folder / CONFIG_NAME), environment)
        raise ProjectNotFound(folder=candidates[0])

    @property
    def warehouse(self) -> str:
        """Folder or fsspec URL of Parquet tables, database and reports."""
        return self.environment.get("EVAL_WAREHOUSE") or str(self.root / "warehouse")

    @property
    def local(self) -> Path:
        """Local folder for what cannot live in a bucket: ledger, journal, published database, reports."""
        return self.root / "warehouse" if "://" in self.warehouse else Path(self.warehouse)

    @property
    def database(self) -> Path:
        return self.local / "results.duckdb"

    @property
    def ledger_url(self) -> str:
        """SQLAlchemy URL of the ledger; `EVAL_LEDGER` points several machines to one PostgreSQL."""
        return self.environment.get("EVAL_LEDGER") or f"sqlite:///{self.local / 'ledger.sqlite'}"

    def dataset_folder(self, name: str) -> Path:
        return self.root / self.config.datasets[self.config.dataset_name(name)].path

    def metrics(self, chosen: tuple[str, ...] = ()) -> dict[str, Metric]:
        """Declarations by instance name: all configured ones, or those chosen.

        Raises:
            UnknownName: a chosen metric is not configured, or a configured one does not exist.
        """
        from eval_pipeline.errors import UnknownName

        for name in chosen:
            if name not in self.config.metrics:
                raise UnknownName(kind="metric", name=name, known=self.config.metrics)
        folders = [self.root / folder for folder in self.config.metric_folders]
        wanted = chosen or tuple(self.config.metrics)
        try:
            return {name: self._metric(name, folders) for name in wanted}
        except TypeError as error:
            raise ConfigurationInvalid(path=CONFIG_NAME, problems=f"  metrics: {error}") from error

    def _metric(self, name: str, folders: Sequence[Path]) -> Metric:
        config = self.config.metrics[name]
        declared = declare(name, config.options, metric_folders=folders)
        return replace(declared, options={**declared.options, **config.chosen_policies})
