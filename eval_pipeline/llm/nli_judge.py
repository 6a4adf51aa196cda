"""A natural language inference model as a judge of claims: premise = the text, hypothesis = the claim.

It reads the structured `inputs` of a request, never the prompt. A claim is supported when some window of the premise
entails it with a probability above one half (Honovich et al. 2022 split long premises likewise). It can say nothing
else: whatever is no question about a claim is refused.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection
from functools import cached_property, lru_cache
from pathlib import Path

from eval_pipeline.chat import ChatModel, ChatReply, ChatRequest, ModelIdentity
from eval_pipeline.errors import JudgeMisconfigured
from eval_pipeline.llm.onnx_folder import OnnxFolder
from eval_pipeline.vocabulary import Outcome

PREMISES = {"faithfulness": "retrieved_contexts", "claim_in_text": "premise"}
"""Template families it can answer, and which input is the premise."""
THRESHOLD = 0.5
OVERLAP = 0.5
"""Share of a window that the next one sees again, so that no sentence is cut in every window."""


def unanswerable(template_ids: Collection[str]) -> list[str]:
    """Those templates that ask something else than whether a text supports a claim."""
    return sorted(one for one in template_ids if one.rpartition(".")[0] not in PREMISES)


class NliJudge:
    """Answers whether a text supports a claim, by a local model.

    Args:
        path: folder with `model.onnx`, `tokenizer.json` and `config.json` whose `id2label` names an entailment.
        claims: whom to ask for the claims of a text, which no such model can make; null refuses that question. In a
            configured run the run's own judge makes them.

    Raises:
        JudgeMisconfigured: a file is missing, or no label is an entailment.
        ExtraMissing: onnxruntime or tokenizers is not installed; when the first question is asked.
    """

    def __init__(self, path: Path | str, *, claims: ChatModel | None = None, name: str = "nli") -> None:
        self._folder = OnnxFolder(Path(path), name)
        self._claims = claims
        self._entailment = _entailment_index(self._folder, name)
        self._probability = lru_cache(maxsize=4096)(self._entailed)

    @property
    def identity(self) -> ModelIdentity:
        """The folder's name with the hashes of all that can move an answer."""
        parameters: dict[str, object] = {
            f"{file}_sha256": self._folder.sha256(f"{file}.json") for file in ("tokenizer", "config")
        }
        if self._claims is not None:
            parameters["claims"] = self._claims.identity.model
        revision = self._folder.sha256("model.onnx")
        return ModelIdentity("local", self._folder.path.resolve().name, revision, parameters)

    async def reply(self, request: ChatRequest) -> ChatReply:
        """Grade 1 or 0 with the probability as the reason; both templates of a pair get the same answer."""
        if request.template_id == "claims" and self._claims is not None:
            return await self._claims.reply(request)
        if unanswerable([request.template_id]):
            detail = f"an NLI model says whether a text supports a claim, and nothing about {request.template_id}"
            return ChatReply("", Outcome.REFUSED, detail, cost_usd=0.0)
        started = time.perf_counter()
        premise = request.inputs[PREMISES[request.template_id.rpartition(".")[0]]]
        found = await asyncio.to_thread(self._probability, premise, request.inputs["claim"])
        if found is None:
            return ChatReply("", Outcome.TOO_LONG, "the claim alone fills the model's window", cost_usd=0.0)
        text = json.dumps({"reason": f"entailment {found:.3f}", "grade": int(found > THRESHOLD)})
        return ChatReply(
            text, model=self._folder.path.resolve().name, input_tokens=0, cached_input_tokens=0, output_tokens=0,
            cost_usd=0.0, latency_seconds=time.perf_counter() - started,
        )  # fmt: skip

    @cached_property
    def _tokenizer(self):  # noqa: ANN202
        return self._folder.tokenizer()

    def _entailed(self, premise: str, claim: str) -> float | None:
        """The largest probability of entailment over the windows of the premise; null when the claim leaves no room."""
        import numpy as np

        hypothesis = self._tokenizer.encode(claim, add_special_tokens=False)
        special = self._tokenizer.num_special_tokens_to_add(is_pair=True)
        room = self._folder.window - special - len(hypothesis.ids)
        if room < 1:
            return None
        text = self._tokenizer.encode(premise, add_special_tokens=False)
        text.truncate(room, stride=int(room * OVERLAP))
        probabilities = []
        for window in (text, *text.overflowing):
            logits = self._folder.run(self._tokenizer.post_process(window, hypothesis))
            weights = np.exp(logits - logits.max())
            probabilities.append(float(weights[self._entailment] / weights.sum()))
        return max(probabilities)


def _entailment_index(folder: OnnxFolder, name: str) -> int:
    labels = folder.config.get("id2label")
    found = [int(key) for key, label in labels.items() if str(label).casefold() in {"entailment", "entail"}] if isinstance(labels, dict) else []  # fmt: skip
    if len(found) != 1:
        shown = ", ".join(map(str, labels.values())) if isinstance(labels, dict) else "-"
        raise JudgeMisconfigured(judge=name, reason=f"id2label of config.json names no entailment ({shown})")
    return found[0]
