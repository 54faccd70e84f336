#!/usr/bin/env python3
"""Writes tests/data/evaluate/unmask.json: texts that masked models write by masked diffusion, at temperature 0.

The loops follow the papers' samplers step by step: LLaDA's (Nie et al. 2025, arXiv:2502.09992) puts as many tokens at
each step of a block, those of the highest probability; Dream's (Ye et al. 2025, arXiv:2508.15487) takes its steps at
times from 1 to 0.001 in float32, by probability (maskgit_plus), margin (topk_margin) or entropy (entropy). The mask
token is never written. Everything else is in float64. Versions: torch 2.15.0, transformers 5.24.0.
"""
import itertools
import json
import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers as tr

import diffusion_classes as diffusion
import model_runs as runs

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
MODELS = {"bert": tr.BertForMaskedLM, "roberta": tr.RobertaForMaskedLM, "llada": diffusion.LLaDAModelLM, "dream": diffusion.DreamModel}
MASK = 4
TEXTS = [([], 6, [9, 22]), ([2, 9, 30, 12], 8, [3]), ([7], 5, [11, 8]), ([2, 40, 13], 12, [])]
ORDERS = ("confidence", "margin", "entropy")


def judged(model, ids, places, order):
    """Of each place: its token, the log-probability of that, and what it is ranked by."""
    with runs.doubled():
        logits = model(torch.tensor([ids])).logits[0, places]
    logits[:, MASK] = -torch.inf
    logs = logits.log_softmax(-1)
    probabilities = logs.exp()
    tokens = probabilities.argmax(-1)
    best = probabilities.topk(2, dim=-1).values
    ranks = dict(confidence=best[:, 0], margin=best[:, 0] - best[:, 1],
                 entropy=torch.where(probabilities > 0, probabilities * logs, 0).sum(-1))[order]
    return tokens.tolist(), logs.gather(1, tokens[:, None])[:, 0].tolist(), ranks


def put(model, ids, places, count, order):
    """Fills `count` of the masks at `places`, and gives the sum of their log-probabilities."""
    if count == 0:
        return 0.0
    tokens, logs, ranks = judged(model, ids, places, order)
    # Of equal ones the first: Dream reads one state for the first two positions.
    chosen = sorted(range(len(places)), key=lambda i: -float(ranks[i]))[:count]
    for i in chosen:
        ids[places[i]] = tokens[i]
    return sum(logs[i] for i in chosen)


def even(model, ids, masks, order, steps, block):
    score = 0.0
    for first in range(0, len(masks), block):
        of_block = masks[first:first + block]
        own = steps or len(of_block)
        for step in range(own):
            count = len(of_block) // own + (step < len(of_block) % own)
            left = [place for place in of_block if ids[place] == MASK]
            score += put(model, ids, left, count, order)
    return score


def epsilon(model, ids, masks, order, steps, block):
    score = 0.0
    for first in range(0, len(masks), block):
        of_block = masks[first:first + block]
        own = steps or len(of_block)
        times = torch.linspace(1, 1e-3, own + 1)
        for step in range(own):
            left = [place for place in of_block if ids[place] == MASK]
            count = len(left) if step == own - 1 else int(torch.tensor(float(len(left))) * (1 - times[step + 1] / times[step]))
            score += put(model, ids, left, count, order)
    return score


@torch.no_grad()
def main():
    result = []
    for name, kind in MODELS.items():
        model = runs.load(DATA / "model" / name, kind, torch.float64)
        for begin, length, end in TEXTS:
            ids = begin + [MASK] * length + end
            masks = list(range(len(begin), len(begin) + length))
            one = dict(model=name, ids=ids, places=masks, found=[])
            for order, (times, run), steps, block in itertools.product(
                    ORDERS, dict(even=even, epsilon=epsilon).items(), (0, 1, 3, 5), (0, 4)):
                filled = list(ids)
                score = run(model, filled, masks, order, steps, block or length)
                one["found"].append(dict(order=order, times=times, iterations=steps, block_size=block,
                                         new=[filled[place] for place in masks], score=score))
            result.append(one)
    different = {json.dumps(found["new"]) for one in result for found in one["found"]}
    print(len(result), "texts,", len(different), "different results")
    (DATA / "evaluate" / "unmask.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
