"""The embedded embedding model: hashed character n-grams. No model, no network; a lexical baseline, named as such."""

from __future__ import annotations

import math
import unicodedata
import zlib
from collections.abc import Sequence

from eval_pipeline.chat import ModelIdentity

DIMENSIONS = 1024
SIZES = (2, 3, 4)


class NgramEmbedding:
    """Counts of character 2-, 3- and 4-grams, damped by a square root and hashed to 1,024 signed buckets."""

    identity = ModelIdentity("embedded", "char-ngram-1")

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text; a blank text is the zero vector."""
        return [vector(text) for text in texts]


def vector(text: str) -> list[float]:
    """The vector of one text, normalised to length 1 unless it is zero."""
    words = unicodedata.normalize("NFKC", text).casefold().split()
    counts: dict[int, float] = {}
    for word in words:
        characters = f" {word} "
        for size in SIZES:
            for start in range(len(characters) - size + 1):
                digest = zlib.crc32(characters[start : start + size].encode())
                bucket = digest % DIMENSIONS
                counts[bucket] = counts.get(bucket, 0.0) + (1.0 if digest & 0x8000_0000 else -1.0)
    found = [0.0] * DIMENSIONS
    for bucket, count in counts.items():
        found[bucket] = math.copysign(math.sqrt(abs(count)), count)
    length = math.hypot(*found)
    return [value / length for value in found] if length else found
