"""`python -m eval_pipeline.prompts.pinning`: pins the texts that have no pin yet. A pinned one stays."""

from __future__ import annotations

from itertools import groupby

from eval_pipeline.prompts import HOME, pinned_texts, texts_in_use


def main() -> None:
    """Adds missing pins to `pins.toml`; never changes one."""
    lines = ["# sha256 of every released prompt text. A released text does not change: add a version instead."]
    pins = sorted((texts_in_use() | pinned_texts()).items())
    for template_id, group in groupby(pins, lambda pin: pin[0][0]):
        lines += ["", f'["{template_id}"]', *(f'"{name}" = "{sha}"' for (_, name), sha in group)]
    (HOME / "pins.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
