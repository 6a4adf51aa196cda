"""A local model as its exporter leaves it: `model.onnx`, `tokenizer.json` and `config.json` in one folder. No torch."""

from __future__ import annotations

import hashlib
import json
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from eval_pipeline.errors import ExtraMissing, JudgeMisconfigured

LONGEST = 512
"""Tokens per window. The RoBERTa family states 514 positions and uses 512; longer windows blur what entails a claim."""


class OnnxFolder:
    """Files of one model, read when first needed; their hashes are its identity.

    Args:
        path: the folder.
        name: the judge or embedding it is for, named in errors.

    Raises:
        JudgeMisconfigured: a file is missing.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        for file in ("model.onnx", "tokenizer.json", "config.json"):
            if not (path / file).is_file():
                raise JudgeMisconfigured(judge=name, reason=f"{path} has no {file}")

    def sha256(self, file: str) -> str:
        """Hash of one file of the folder."""
        found = self.path / file
        facts = found.stat()
        return _sha256(found, facts.st_size, facts.st_mtime_ns)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The model's own configuration."""
        try:
            return dict(json.loads((self.path / "config.json").read_text(encoding="utf-8")))
        except (ValueError, TypeError, OSError) as error:
            raise JudgeMisconfigured(judge=self.name, reason=f"config.json is not a JSON object: {error}") from error

    @property
    def window(self) -> int:
        """Tokens the model reads at once: its positions, and at most 512."""
        stated = self.config.get("max_position_embeddings")
        return min(LONGEST, stated) if isinstance(stated, int) and stated > 0 else LONGEST

    @cached_property
    def session(self) -> Any:
        """The model, ready to run.

        Raises:
            ExtraMissing: onnxruntime is not installed.
            JudgeMisconfigured: the file is no model that it can run.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise ExtraMissing(feature=f"{self.name} (a local ONNX model)", extra="nli") from error
        try:
            return onnxruntime.InferenceSession(str(self.path / "model.onnx"), providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own classes share no base but Exception
            raise JudgeMisconfigured(judge=self.name, reason=f"model.onnx cannot be loaded: {error}") from error

    def tokenizer(self) -> Any:
        """The tokenizer, without the truncation and padding its file may carry.

        Raises:
            ExtraMissing: tokenizers is not installed.
            JudgeMisconfigured: the file is no tokenizer.
        """
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ExtraMissing(feature=f"{self.name} (a local ONNX model)", extra="nli") from error
        try:
            found = Tokenizer.from_file(str(self.path / "tokenizer.json"))
        except Exception as error:  # tokenizers raises bare Exception
            raise JudgeMisconfigured(judge=self.name, reason=f"tokenizer.json cannot be read: {error}") from error
        found.no_truncation()
        found.no_padding()
        return found

    def run(self, encoding: Any) -> Any:
        """The model's first output for one encoded text, without the batch axis."""
        import numpy as np

        columns = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        wanted = {one.name for one in self.session.get_inputs()}
        if wanted - set(columns):
            strangers = ", ".join(sorted(wanted - set(columns)))
            raise JudgeMisconfigured(judge=self.name, reason=f"model.onnx wants inputs that are not known: {strangers}")
        feed = {name: np.array([columns[name]], dtype=np.int64) for name in wanted}
        return np.asarray(self.session.run(None, feed)[0], dtype=np.float64)[0]


@cache
def _sha256(path: Path, size: int, modified_ns: int) -> str:
    """Read once per process as long as size and time stay: models are large, and identities asked for often."""
    del size, modified_ns
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
