#!/usr/bin/env python3
"""What transformers' fill-mask pipeline puts in the place of mask tokens.

    fill.py make MODEL_DATA OUT.json
    fill.py compare MODEL TEXT OURS.jsonl

make: MODEL_DATA is tests/data/model. For each masked model random ids with one or two mask ids, and of each mask the
TOP likeliest ids with their softmax, in float64, as the pipeline sorts them.
compare: the pipeline itself on each line of TEXT, against what `lm-write fill MODEL -k TOP --json < TEXT` printed. Says how
many lines and fillings there were, the largest difference of a probability, and at how many places the order differs
though the probabilities lie further apart than 1e-6; exit code 1 for a difference of 1e-5, or another order.
Versions: torch 2.15.0, transformers 5.23.0.
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers as tr

MODELS = ["bert", "roberta", "albert", "distilbert", "mpnet", "electra_generator", "modernbert"]
MASK = 4
TOP = 5


@torch.no_grad()
def fillings(data, name):
    model = tr.AutoModelForMaskedLM.from_pretrained(f"{data}/{name}", dtype=torch.float64, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(7)
    out = []
    for masks in ([3], [1, 5], [2]):
        ids = torch.randint(5, min(model.config.vocab_size, 33), (1, 8), generator=generator)
        ids[0, masks] = MASK
        probabilities = model(ids).logits[0].softmax(-1)[masks]
        values, tokens = probabilities.topk(TOP)
        out.append({"ids": ids[0].tolist(), "tokens": tokens.tolist(), "probabilities": values.tolist()})
    return out


def make(data, path):
    result = {"mask": MASK, "top_k": TOP, "fillings": {name: fillings(data, name) for name in MODELS}}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(result, f)
        f.write("\n")


def compare(folder, text, ours):
    with open(ours, encoding="utf-8") as f:
        found = [json.loads(line) for line in f]
    with open(text, encoding="utf-8") as f:
        lines = f.read().splitlines()
    top = len(found[0]["masks"][0])
    pipeline = tr.pipeline("fill-mask", model=folder, tokenizer=tr.AutoTokenizer.from_pretrained(folder), top_k=top)
    count, worst, moved, texts = 0, 0.0, 0, 0
    for line, record in zip(lines, found, strict=True):
        expected = pipeline(line)
        if isinstance(expected[0], dict):
            expected = [expected]
        for theirs, mine in zip(expected, record["masks"], strict=True):
            by_token = {one["token_id"]: one["probability"] for one in mine}
            for one, own in zip(theirs, mine, strict=True):
                count += 1
                if len(expected) == 1 and one["sequence"] != own["text"]:
                    texts += 1
                if one["token"] == own["token_id"]:
                    worst = max(worst, abs(one["score"] - own["probability"]))
                    continue
                nearest = by_token.get(one["token"], mine[-1]["probability"])
                worst = max(worst, abs(one["score"] - nearest))
                if abs(one["score"] - own["probability"]) > 1e-6:
                    moved += 1
    print(f"{folder}: {len(lines)} lines, {count} fillings, largest difference {worst:.2e}, {moved} in another order, {texts} other texts")
    return worst >= 1e-5 or moved > 0


def main():
    if sys.argv[1] == "make":
        make(*sys.argv[2:])
    else:
        sys.exit(1 if compare(*sys.argv[2:]) else 0)


if __name__ == "__main__":
    main()
