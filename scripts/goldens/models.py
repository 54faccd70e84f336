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

import pathlib
import shutil
import sys

import numpy as np
import safetensors.numpy
import torch
import transformers as tr

import model_runs as runs

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "model"
STD = 0.3

# Sizes are unequal wherever a model allows it, so that mixed-up dimensions show.
BERT = dict(vocab_size=45, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
            intermediate_size=40, max_position_embeddings=20, type_vocab_size=2)

# (case, family, model class, config fields, longest record, accepts pos)
CASES = [
    ("bert", "bert", tr.BertForMaskedLM, BERT, 20, True),
    ("bert_gelu_new", "bert", tr.BertForMaskedLM, BERT | dict(hidden_act="gelu_new"), 20, False),
    ("bert_relu_untied", "bert", tr.BertForMaskedLM, BERT | dict(
        hidden_act="relu", tie_word_embeddings=False, layer_norm_eps=1e-5), 20, False),
    ("bert_headless", "bert", tr.BertModel, BERT, 20, True),
    ("roberta", "roberta", tr.RobertaForMaskedLM, BERT | dict(
        type_vocab_size=1, max_position_embeddings=22, pad_token_id=1, layer_norm_eps=1e-5), 20, True),
    ("gpt2", "gpt2", tr.GPT2LMHeadModel, dict(
        vocab_size=45, n_positions=20, n_embd=24, n_layer=2, n_head=3, n_inner=40,
        bos_token_id=1, eos_token_id=1), 20, True),
    ("gpt2_base", "gpt2", tr.GPT2Model, dict(
        vocab_size=45, n_positions=20, n_embd=24, n_layer=2, n_head=3, activation_function="relu",
        bos_token_id=1, eos_token_id=1), 20, False),
]


def build(folder, case, model_class, fields):
    """Saves a random model and loads it again: in float32 and in float64."""
    model = model_class(model_class.config_class(**fields))
    runs.randomise(model, case, STD)
    model.save_pretrained(folder)
    for name in ("generation_config.json",):
        (folder / name).unlink(missing_ok=True)

    def load(dtype):
        model, info = model_class.from_pretrained(
            folder, dtype=dtype, attn_implementation="eager", output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"], info
        return model.eval()
    return load(torch.float32), load(torch.float64)


def make(case, family, model_class, fields, longest, accepts_pos):
    folder = OUT / case
    shutil.rmtree(folder, ignore_errors=True)
    single, double = build(folder, case, model_class, fields)
    config = double.config
    pad_id = config.pad_token_id if config.pad_token_id is not None else 0
    records = runs.make_records(case, [1, 2, 7, longest], config.vocab_size,
                                getattr(config, "type_vocab_size", 0), pad_id,
                                longest if accepts_pos else 0)
    expected = [runs.run(double, r, family, True) for r in records]
    rounding = max(runs.largest_difference(runs.run(single, r, family, False), e)
                   for r, e in zip(records, expected))
    padded = runs.run_padded(double, records[:4], family, pad_id, True)
    padding = max(runs.largest_difference(p, e) for p, e in zip(padded, expected))
    assert padding < 1e-12 and rounding < 1e-3, (case, padding, rounding)
    save(folder, records, expected)
    last = last_hidden_state(double, records[-1], family)
    note = "" if np.array_equal(last, expected[-1]["hidden_states"][-1]) else ", last state differs from the model's"
    print(f"{case}: f32 {rounding:.1e}, padded {padding:.1e}, {size(folder)} bytes{note}", flush=True)


def last_hidden_state(model, record, family):
    """What the model without its head returns."""
    base = model.base_model
    with runs.doubled():
        return runs.forward(base, runs.inputs_of(record, family)).last_hidden_state[0].numpy()


def save(folder, records, expected):
    runs.write_records(folder / "records.jsonl", records)
    safetensors.numpy.save_file(
        {f"{i}.{name}": np.ascontiguousarray(value, np.float32)
         for i, line in enumerate(expected) for name, value in line.items()},
        folder / "expected.safetensors")


def size(folder):
    total = sum(f.stat().st_size for f in folder.iterdir())
    assert total <= 100_000, (folder, total)
    return total


def main():
    wanted = tuple(sys.argv[1:]) or ("",)
    for case in CASES:
        if case[0].startswith(wanted):
            make(*case)


if __name__ == "__main__":
    main()
