#!/usr/bin/env python3
"""Log-probabilities of tokens under masks that differ between heads, by transformers.

    head_masks.py

Writes tests/data/evaluate/head_masks.json. For a checkpoint of tests/data/model in float64:

  model   its folder
  ids     a text, segment 0
  mask    in the mask language: one mask a head, the same in all layers
  log_p   of the token at each place, read from the logits of that place

transformers takes these masks as additive ones of the shape (1, heads, T, T). Every row sees a key: transformers' softmax over
no key reads all of them. Versions: torch 2.15.0, transformers 5.24.0, numpy 2.4.6.
"""
import json
import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
import transformers as tr

import model_runs as runs

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "model"
LENGTH = 9
CASES = {"bert": tr.BertForMaskedLM, "roberta": tr.RobertaForMaskedLM, "gpt2": tr.GPT2LMHeadModel, "llama": tr.LlamaForCausalLM}


def matrix_text(visible):
    """matrix(n,"rows"): a row in hexadecimal, its first key the highest bit, filled with zeros to whole digits."""
    rows = ["".join("1" if cell else "0" for cell in row) for row in visible]
    width = -(-len(rows[0]) // 4) * 4
    return 'matrix({},"{}")'.format(len(rows), "/".join(f"{int(row.ljust(width, '0'), 2):0{width // 4}x}" for row in rows))


def main():
    random = np.random.default_rng(5)
    found = []
    for name, model_class in CASES.items():
        model = runs.load(DATA / name, model_class, torch.float64)
        heads = model.config.num_attention_heads
        ids = torch.tensor(random.integers(10, model.config.vocab_size, LENGTH))
        visible = random.random((heads, LENGTH, LENGTH)) < 0.4
        visible |= np.eye(LENGTH, dtype=bool)
        additive = torch.zeros(visible.shape, dtype=torch.float64).masked_fill(~torch.tensor(visible), -torch.inf)
        with torch.no_grad(), runs.doubled():
            logits = model(ids[None], attention_mask=additive[None]).logits[0]
        log_p = logits.log_softmax(-1)[range(LENGTH), ids]
        found.append(dict(model=name, ids=ids.tolist(), mask="[{}]".format(", ".join(map(matrix_text, visible))),
                          log_p=log_p.tolist()))
    (DATA.parent / "evaluate" / "head_masks.json").write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")


if __name__ == "__main__":
    main()
