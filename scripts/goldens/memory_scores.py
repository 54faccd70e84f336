#!/usr/bin/env python3
"""Log-probabilities of tokens by XLNet with the states of earlier blocks as memory, by transformers.

    memory_scores.py

Writes tests/data/evaluate/memory_scores.json, of the checkpoint tests/data/model/xlnet in float64:

  ids          a text without tokens around it, segment 0
  block_size   its blocks; memory: how many states of the block before are kept (`mems`)
  pll          of each token: log p given the memory and the block without the token
  causal       of each token: log p given the memory and what is before it in its block; null for the first
               one, which reads nothing: transformers' softmax over no key reads all of them

Versions: torch 2.15.0, transformers 5.23.0, numpy 2.4.6.
"""
import json
import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
import transformers as tr

import model_runs as runs

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
LENGTH, BLOCK, MEMORY = 18, 5, 4


def log_p(model, ids, memory, blocked):
    """(log p of each token, memory after the block) where row i may not read the tokens in blocked[i]."""
    out = model(ids[None], mems=memory, use_mems=True, perm_mask=torch.tensor(blocked)[None].double(),
                target_mapping=torch.eye(len(ids), dtype=torch.float64)[None])
    return out.logits[0].log_softmax(-1)[range(len(ids)), ids], out.mems


def main():
    model = runs.load(DATA / "model" / "xlnet", tr.XLNetLMHeadModel, torch.float64).eval()
    model.config.mem_len = model.transformer.mem_len = MEMORY
    ids = torch.tensor(np.random.default_rng(11).integers(10, model.config.vocab_size, LENGTH))
    results = {"pll": [], "causal": []}
    with torch.no_grad(), runs.doubled():
        memory = causal_memory = None
        for first in range(0, LENGTH, BLOCK):
            block = ids[first:first + BLOCK]
            places = range(len(block))
            for t in places:
                values, _ = log_p(model, block, memory, [[j == t for j in places] for _ in places])
                results["pll"].append(float(values[t]))
            _, memory = log_p(model, block, memory, [[False for _ in places] for _ in places])
            values, causal_memory = log_p(model, block, causal_memory, [[j >= i for j in places] for i in places])
            results["causal"] += values.tolist()
    results["causal"][0] = None
    text = dict(ids=ids.tolist(), block_size=BLOCK, memory=MEMORY) | results
    (DATA / "evaluate" / "memory_scores.json").write_text(
        "{\n" + ",\n".join(f' "{name}": {json.dumps(value)}' for name, value in text.items()) + "\n}\n")


if __name__ == "__main__":
    main()
