"""Small ONNX models made in the test: an NLI model that looks claims' words up in the premise, and a sentence encoder."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def write_tokenizer(folder, words):
    """A WordLevel tokenizer whose pairs read [CLS] premise [SEP] claim [SEP]."""
    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return vocabulary


def save(folder, nodes, inputs, output, axes, initializers):
    graph = helper.make_graph(
        nodes, "small",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, axes)],
        [numpy_helper.from_array(value, name) for name, value in initializers.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / "model.onnx"))


def write_nli(folder, words, *, window=16, labels=("contradiction", "neutral", "entailment")):
    """Entails exactly when every word of the claim is among the premise's words of the same window.

    Of the claim's words (type 1, no special token) the share that equals some premise word (type 0) becomes the logit:
    20 * share - 19.5 for the last label, 0 for the others, so 1.0 gives +0.5 and anything up to .9 less than -1.5.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder, words)
    (folder / "config.json").write_text(
        json.dumps({"id2label": dict(enumerate(labels)), "max_position_embeddings": window}), encoding="utf-8"
    )
    node = helper.make_node
    nodes = [
        node("Cast", ["token_type_ids"], ["type"], to=TensorProto.FLOAT),
        node("Greater", ["input_ids", "last_special"], ["is_word"]),
        node("Cast", ["is_word"], ["word"], to=TensorProto.FLOAT),
        node("Mul", ["type", "word"], ["in_claim"]),
        node("Sub", ["one", "type"], ["not_type"]),
        node("Mul", ["not_type", "word"], ["in_premise"]),
        node("Unsqueeze", ["input_ids", "axis2"], ["down"]),
        node("Unsqueeze", ["input_ids", "axis1"], ["across"]),
        node("Equal", ["down", "across"], ["same"]),
        node("Cast", ["same"], ["same_float"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["in_premise", "axis1"], ["premise_across"]),
        node("Mul", ["same_float", "premise_across"], ["met"]),
        node("ReduceMax", ["met"], ["covered"], axes=[2], keepdims=0),
        node("Mul", ["covered", "in_claim"], ["covered_claim"]),
        node("ReduceSum", ["covered_claim", "axis1"], ["covered_count"], keepdims=1),
        node("ReduceSum", ["in_claim", "axis1"], ["claim_count"], keepdims=1),
        node("Div", ["covered_count", "claim_count"], ["share"]),
        node("Mul", ["share", "slope"], ["scaled"]),
        node("Add", ["scaled", "shift"], ["last"]),
        node("Mul", ["share", "zero"], ["other"]),
        node("Concat", ["other", "other", "last"], ["logits"], axis=1),
    ]
    numbers = {"one": 1.0, "slope": 20.0, "shift": -19.0, "zero": 0.0}
    constants = {name: np.array(value, dtype=np.float32) for name, value in numbers.items()}
    constants |= {"last_special": np.array(3), "axis1": np.array([1]), "axis2": np.array([2])}
    save(folder, nodes, ["input_ids", "token_type_ids"], "logits", ["batch", "label"], constants)
    return folder
