#!/usr/bin/env python3
"""Loss, probabilities and gradients of a BertForSequenceClassification, by PyTorch in float64.

    classifier.py FOLDER OUT.json

FOLDER is tests/data/model/bert; pooler and labels' layer, which it lacks, are filled with sines, as
tests/train/classifier_test.cpp does. OUT holds two texts, the sum of their losses, the softmax of their
logits, and the norm of each tensor's gradient. Versions: torch 2.15.0, transformers 5.23.0.
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers as tr

IDS = [[2, 7, 4, 9, 3, 11, 5], [2, 6, 1, 12, 3]]
SEGMENTS = [[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]
LABELS = [2, 0]


def fill(tensor, shift):
    rows = tensor if tensor.dim() == 2 else tensor[None]
    i = torch.arange(rows.shape[0], dtype=torch.float64)[:, None]
    j = torch.arange(rows.shape[1], dtype=torch.float64)[None]
    rows.copy_(torch.sin(0.7 * i + 0.3 * j + shift) / 4)


def main():
    folder, out = sys.argv[1:]
    model = tr.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3, dtype=torch.float64,
                                                                  attn_implementation="eager").eval()
    named = dict(model.named_parameters())
    with torch.no_grad():
        fill(named["bert.pooler.dense.weight"], 1)
        fill(named["bert.pooler.dense.bias"], 2)
        fill(named["classifier.weight"], 3)
        fill(named["classifier.bias"], 4)
    loss = 0
    probabilities = []
    for ids, segments, label in zip(IDS, SEGMENTS, LABELS):
        logits = model(torch.tensor([ids]), token_type_ids=torch.tensor([segments])).logits
        loss = loss + torch.nn.functional.cross_entropy(logits, torch.tensor([label]), reduction="sum")
        probabilities.append(logits.detach().softmax(-1)[0].tolist())
    loss.backward()
    result = {"ids": IDS, "segments": SEGMENTS, "labels": LABELS, "loss": float(loss.detach()),
              "probabilities": probabilities,
              "gradients": {n: float(p.grad.norm()) for n, p in named.items() if p.grad is not None}}
    with open(out, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
