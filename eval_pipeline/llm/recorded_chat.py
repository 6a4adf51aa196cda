"""Replays replies recorded in a file: also how judge outputs made elsewhere are brought in for calibration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from eval_pipeline.chat import ChatReply, ChatRequest, ModelIdentity
from eval_pipeline.errors import JudgeMisconfigured
from eval_pipeline.llm.ledger import restored
from eval_pipeline.llm.ledgered_chat import ledger_key
from eval_pipeline.vocabulary import Outcome


def inputs_sha256(inputs: Mapping[str, str]) -> str:
    """Hash of a question's texts, under which its reply is recorded."""
    return hashlib.sha256(
        json.dumps(dict(inputs), sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    ).hexdigest()


class RecordedChat:
    """Answers from a JSONL file: template_id, inputs (the texts) or inputs_sha256, reply; optional attempt and sample.

    Lines of a ledger export are understood too; they are found by their ledger key, so `model`, `endpoint`, `revision`
    and `parameters` must be those of the judge that was asked. A question that is not recorded is a `provider_error`
    with that detail, never a grade.

    Raises:
        JudgeMisconfigured: the file cannot be read, or a line is wrong.
    """

    def __init__(
        self,
        path: Path,
        *,
        model: str = "recorded",
        endpoint: str = "recorded",
        revision: str = "",
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        self.identity = ModelIdentity(endpoint, model, revision, dict(parameters or {}))
        self._replies: dict[tuple[str, str, int, int], str] = {}
        self._exported: dict[str, ChatReply] = {}
        try:
            with path.open(encoding="utf-8-sig", newline="\n") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        self._add(path, number, line, model)
        except (OSError, UnicodeDecodeError) as error:
            raise JudgeMisconfigured(judge=model, reason=f"cannot read {path.name}: {error}") from error

    def _add(self, path: Path, number: int, line: str, model: str) -> None:
        try:
            row = json.loads(line)
            if "ledger_key" in row:
                self._exported[row["ledger_key"]] = restored(row["reply"], row["ledger_key"])
                return
            sha = row.get("inputs_sha256") or inputs_sha256(row["inputs"])
            key = (row["template_id"], sha, int(row.get("attempt", 0)), int(row.get("sample", 0)))
            self._replies[key] = str(row["reply"])
        except (json.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"{path.name}:{number} needs template_id, inputs and reply ({type(error).__name__})"
            raise JudgeMisconfigured(judge=model, reason=reason) from error

    async def reply(self, request: ChatRequest) -> ChatReply:
        """The recorded reply."""
        if self._exported:
            exported = self._exported.get(ledger_key(self.identity, request))
            if exported is not None:
                return exported
        found = self._replies.get((request.template_id, inputs_sha256(request.inputs), request.attempt, request.sample))
        if found is None:
            return ChatReply("", Outcome.PROVIDER_ERROR, "no recorded reply")
        return ChatReply(found, model=self.identity.model, cost_usd=0.0)
