"""`python -m eval_pipeline.prompts.pinning`: pins the texts of prompts that have no pin yet. A pinned one stays."""

from __future__ import annotations

import tomllib

from eval_pipeline.prompts import HOME, all_prompts


def main() -> None:
    """Adds missing pins to `pins.toml`; never changes one."""
    path = HOME / "pins.toml"
    pins = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for prompt in all_prompts():
        pins.setdefault(prompt.template_id, {}).setdefault(f"v{prompt.version}.{prompt.language.value}", prompt.sha256)
    lines = ["# sha256 of every released prompt text. A released text does not change: add a version instead."]
    for template_id in sorted(pins):
        lines += ["", f'["{template_id}"]', *(f'"{name}" = "{sha}"' for name, sha in sorted(pins[template_id].items()))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
