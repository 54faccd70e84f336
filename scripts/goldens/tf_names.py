#!/usr/bin/env python3
"""Compares `ckpt convert --names hf` with transformers, by models under TensorFlow's names.

    tf_names.py CKPT

Writes a small random model of every class below as a Google folder: model.npz with the variable names
of Google's code, spelled here by rules of their own, with an optimizer's slots and step, and
bert_config.json without model_type and architectures. CKPT converts it; transformers must load the result
with the class that config.json then names, with nothing missing or left over, and give the very same
logits. Prints a line a model; exit 1 if one differs. transformers 5 reads no TensorFlow checkpoints
itself. Versions: torch 2.15.0, transformers 5.23.0.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers as tr

SIZES = dict(vocab_size=37, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
             max_position_embeddings=20, type_vocab_size=2)
CLASSES = [("BertForPreTraining", {}), ("BertForMaskedLM", {}), ("BertModel", {}),
           ("AlbertForPreTraining", dict(embedding_size=14)),
           ("AlbertForMaskedLM", dict(embedding_size=14, num_hidden_groups=2, inner_group_num=2)),
           ("ElectraForPreTraining", dict(embedding_size=14)), ("ElectraForMaskedLM", dict(embedding_size=14)),
           ("RoFormerForMaskedLM", dict(embedding_size=14)), ("RoFormerForMaskedLM", {})]

BERT = [(r"^roformer\.embeddings_project", "bert.encoder.embedding_hidden_mapping_in"), (r"^roformer\.", "bert."),
        (r"\.layer\.(\d+)", r".layer_\1"), (r"seq_relationship\.weight", "seq_relationship.output_weights"),
        (r"(seq_relationship|predictions)\.bias", r"\1.output_bias")]
ALBERT = [(r"^albert\.pooler\.", "bert.pooler.dense."), (r"^albert\.", "bert."),
          (r"^predictions\.bias", "cls.predictions.output_bias"), (r"^predictions\.", "cls.predictions.transform."),
          (r"sop_classifier\.classifier\.weight", "cls.seq_relationship.output_weights"),
          (r"sop_classifier\.classifier\.bias", "cls.seq_relationship.output_bias"),
          (r"albert_layer_groups\.(\d+)\.albert_layers\.(\d+)", r"transformer.group_\1.inner_group_\2"),
          (r"attention\.(query|key|value)", r"attention_1.self.\1"), (r"attention\.dense", "attention_1.output.dense"),
          (r"attention\.LayerNorm", "LayerNorm"), (r"full_layer_layer_norm", "LayerNorm_1"),
          (r"ffn_output", "ffn_1.intermediate.output.dense"), (r"ffn\.", "ffn_1.intermediate.dense.")]
ELECTRA = [(r"\.layer\.(\d+)", r".layer_\1"), (r"dense_prediction", "dense_1"),
           (r"generator_lm_head\.bias", "generator_predictions.output_bias")]
GENERATOR = ELECTRA + [(r"^electra\.(encoder|embeddings_project)", r"generator.\1")]


def tf_name(name, rules):
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    name = re.sub(r"(LayerNorm(_1)?)\.weight", r"\1.gamma", name)
    name = re.sub(r"(LayerNorm(_1)?)\.bias", r"\1.beta", name)
    name = re.sub(r"(_embeddings)\.weight", r"\1", name)
    return re.sub(r"\.weight$", ".kernel", name).replace(".", "/")


def variables(model, rules):
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "predictions.decoder.weight",
            "predictions.decoder.bias", "generator_lm_head.weight"}
    result = {"global_step": np.array(7, np.int64)}
    for name, value in model.state_dict().items():
        if name in tied or "position_ids" in name or "token_type_ids" in name or "embed_positions" in name:
            continue
        tf = tf_name(name if hasattr(model, "cls") or rules is not BERT else "bert." + name, rules)
        array = value.numpy()
        array = np.ascontiguousarray(array.T) if tf.endswith("/kernel") else array
        for end in ("", "/adam_m", "/adam_v"):
            result[tf + end] = array
    return result


def logits(model, ids):
    with torch.no_grad():
        output = model.eval()(input_ids=ids)
    names = [n for n in output.keys() if "logits" in n] or ["last_hidden_state"]
    return [output[n].numpy() for n in names]


def compare(ckpt, class_name, extra, folder):
    torch.manual_seed(1)
    model_class = getattr(tr, class_name)
    config = model_class.config_class(**SIZES, **extra)
    model = model_class(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:  # sines and cosines, which every reader makes
                parameter.normal_(std=0.3)
    model.tie_weights()
    rules = ALBERT if "Albert" in class_name else BERT
    if "Electra" in class_name:
        rules = GENERATOR if class_name == "ElectraForMaskedLM" else ELECTRA
    (folder / "google").mkdir(parents=True)
    np.savez(folder / "google/model.npz", **variables(model, rules))
    google = {k: v for k, v in config.to_dict().items() if k not in ("model_type", "architectures")}
    (folder / "google/bert_config.json").write_text(json.dumps(google))
    subprocess.run([ckpt, "convert", folder / "google", "-o", folder / "hf", "--names", "hf", "--format",
                    "safetensors", "--strict", "-q"], check=True)
    named = json.loads((folder / "hf/config.json").read_text())
    twin, info = getattr(tr, named["architectures"][0]).from_pretrained(
        folder / "hf", dtype=torch.float32, output_loading_info=True)
    left = [f"{kind} {n}" for kind, names in info.items() for n in names if "embed_positions" not in str(n)]
    ids = torch.arange(3, 19)[None]
    same = all(np.array_equal(a, b) for a, b in zip(logits(model, ids), logits(twin, ids)))
    good = same and not left and named["architectures"] == [class_name]
    print(class_name, extra or "", named["model_type"], named["architectures"][0], "same" if same else "DIFFERS",
          *left)
    return good


def main():
    ckpt = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as temp:
        good = [compare(ckpt, name, extra, pathlib.Path(temp) / str(i)) for i, (name, extra) in enumerate(CLASSES)]
    sys.exit(0 if all(good) else 1)


main()
