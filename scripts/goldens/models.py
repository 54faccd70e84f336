#!/usr/bin/env python3
"""Writes tests/data/model: a tiny random checkpoint of every loadable family and variant, records, and
the hidden states, logits and attention weights that belong to them.

  CASE/config.json, model.safetensors   as save_pretrained writes them; every parameter random
  CASE/records.jsonl                    ids, and seg and pos where given: lengths 1, 2, 7, the maximum
  CASE/expected.safetensors             i.hidden_states, i.logits, i.attentions of line i, computed in
                                        float64, stored in float32

With arguments: only the cases whose names begin with one of them. What is stored is also computed in
float32, and in float64 from one padded batch, and compared. tests/data/model/README.md says more.
Run with HF_HUB_OFFLINE=1. Versions: torch 2.15.0, transformers 5.23.0, safetensors 0.8.0, numpy 2.4.6.
"""

import json
import pathlib
import shutil
import sys
import zlib

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch

import model_numpy
import model_runs as runs
from model_cases import CASES

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "model"
STD = 0.3
LONGEST = 20


def build(folder, case):
    """Saves a random model, and loads it in float32 and float64."""
    model = case.model_class(case.model_class.config_class(**case.fields))
    runs.randomise(model, case.name, STD)
    for name, parameter in model.named_parameters():
        if name.endswith(case.zeroed):
            parameter.data.zero_()
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if case.config_edit:
        edit_config(folder, case.config_edit)
    models = [runs.load(folder, case.model_class, dtype) for dtype in (torch.float32, torch.float64)]
    if case.other_config:
        edit_config(folder, case.other_config)
    if case.tensors_edit:  # after loading, so that what is expected does not depend on the names
        path = folder / "model.safetensors"
        tensors = safetensors.torch.load_file(path)
        case.tensors_edit(tensors)
        safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
    return models


def edit_config(folder, edit):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    edit(config)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def make(case):
    folder = OUT / case.name
    shutil.rmtree(folder, ignore_errors=True)
    single, double = build(folder, case)
    config = double.config
    pad_id = config.pad_token_id if config.pad_token_id is not None else 0
    types = 2 if config.model_type == "xlnet" else getattr(config, "type_vocab_size", 0)
    lengths = [2, 3, 7, LONGEST] if case.two_streams else [1, 2, 7, LONGEST]
    records = runs.make_records(case.name, lengths, config.vocab_size, types, pad_id,
                                LONGEST if case.pos else 0, case.two_streams)
    expected = runs.run_singly(double, records, True)
    rounding = max(runs.differences(runs.run_singly(single, records, False), expected).values())
    padding = 0.0
    if getattr(config, "attn_type", "bi") == "bi" and not case.by_batch:  # transformers fails for a batch of XLNet's other kind
        padding = max(runs.differences(runs.run(double, records[:4], True, pad_id), expected[:4]).values())
    assert padding < 1e-12 and rounding < 1e-3, (case, padding, rounding)
    save(folder, records, expected)
    print(f"{case.name}: f32 {rounding:.1e}, padded {padding:.1e}, {size(folder)} bytes, "
          f"last of hidden_states = last_hidden_state: {ends_as_model(double, records[-1], expected[-1])}",
          flush=True)


def ends_as_model(model, record, expected):
    """Is the last of `hidden_states` what the model without its head returns?"""
    base = model if model.config.model_type == "t5" else model.base_model
    last = runs.forward(base, runs.inputs_of([record], model), True).last_hidden_state[0].numpy()
    return np.array_equal(last, expected.get("query_states", expected["hidden_states"])[-1])


def save(folder, records, expected):
    runs.write_records(folder / "records.jsonl", records)
    tensors = {f"{i}.{name}": np.ascontiguousarray(value, np.float32)
               for i, line in enumerate(expected) for name, value in line.items()}
    for i, record in enumerate(records):
        if "mask" in record:
            tensors[f"{i}.perm_mask"] = (~runs.visible_pairs(record)).astype(np.uint8)
            tensors[f"{i}.target_mapping"] = np.eye(len(record["ids"]), dtype=np.uint8)
    safetensors.numpy.save_file(tensors, folder / "expected.safetensors")


def size(folder):
    total = sum(f.stat().st_size for f in folder.iterdir())
    assert total <= 100_000, (folder, total)
    return total


def make_numpy(name, model_class, config, mask_id):
    """A model that transformers lacks."""
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tensors = model_numpy.random_tensors(model_class.shapes(config), zlib.crc32(name.encode()), STD)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    extra = {}
    if mask_id is not None:
        (folder / "vocab.txt").write_text("".join(t + "\n" for t in model_numpy.vocabulary(mask_id, config["vocab_size"])))
        config = config | dict(mask_token_id=mask_id)
    elif name == "roformer_v2":  # what such files hold besides
        extra = {"roformer.pooler.dense.weight": np.full((24, 24), 0.5, np.float32),
                 "roformer.pooler.dense.bias": np.full(24, 0.5, np.float32),
                 "cls.predictions.decoder.weight": tensors["roformer.embeddings.word_embeddings.weight"]}
    safetensors.numpy.save_file(tensors | extra, folder / "model.safetensors", metadata={"format": "pt"})
    records = runs.make_records(name, [1, 2, 7, LONGEST], config["vocab_size"], config.get("type_vocab_size", 0),
                                config["pad_token_id"], LONGEST if name == "tta" else 0)
    model, single = model_class(config, tensors), model_class(config, tensors, np.float32)
    expected = [model.run(r) for r in records]
    rounding = max(runs.differences([single.run(r) for r in records], expected).values())
    if mask_id is not None:
        check_no_leak(model, records[2], expected[2])
    save(folder, records, expected)
    print(f"{name}: f32 {rounding:.1e}, {size(folder)} bytes", flush=True)


def check_no_leak(model, record, expected):
    """Row i does not depend on token i, and does on the others."""
    for i, token in enumerate(record["ids"]):
        changed = dict(record, ids=record["ids"][:i] + [token % 40 + 1] + record["ids"][i + 1:])
        logits = model.run(changed)["logits"]
        same = (logits == expected["logits"]).all(-1)
        assert same[i] and not np.delete(same, i).any(), (i, same)


def main():
    wanted = tuple(sys.argv[1:]) or ("",)
    for case in CASES:
        if case.name.startswith(wanted):
            make(case)
    for case in model_numpy.CASES:
        if case[0].startswith(wanted):
            make_numpy(*case)


if __name__ == "__main__":
    main()
