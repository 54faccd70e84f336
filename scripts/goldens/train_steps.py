#!/usr/bin/env python3
"""Ten steps of training by PyTorch, from a checkpoint that lm-train starts with.

    train_steps.py FOLDER OUT.json

FOLDER is a BERT with a masked-LM head (tests/data/model/bert); the batch is made here: the same
sequences and targets at each step, f64, AdamW (lr 1e-3, betas 0.9 0.999, eps 1e-8, weight decay 0.01
for matrices and tables, none for biases and norms), gradients clipped to norm 1. OUT holds the loss
and the norm of the gradient of each step, the gradients' norms of the first step by tensor, and sum
and sum of squares of each tensor after the last step. Versions: torch 2.15.0, transformers 5.23.0.
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers as tr

IDS = [[2, 7, 4, 9, 3, 11, 5], [2, 6, 1, 12, 3]]
ROWS = [[1, 2, 4], [1, 3]]
TARGETS = [[5, 11, 3], [6, 10]]


def main():
    folder, out = sys.argv[1:]
    torch.manual_seed(0)
    model = tr.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float64,
                                                    attn_implementation="eager").eval()
    named = {n: p for n, p in model.named_parameters()}
    flat = [p for n, p in named.items() if p.dim() < 2]
    deep = [p for n, p in named.items() if p.dim() >= 2]
    optimizer = torch.optim.AdamW([{"params": deep, "weight_decay": 0.01}, {"params": flat, "weight_decay": 0.0}],
                                  lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    result = {"ids": IDS, "rows": ROWS, "targets": TARGETS, "steps": []}
    count = sum(map(len, ROWS))
    for step in range(10):
        optimizer.zero_grad()
        loss = 0
        for ids, rows, targets in zip(IDS, ROWS, TARGETS):
            logits = model(torch.tensor([ids])).logits[0]
            loss = loss + torch.nn.functional.cross_entropy(logits[rows], torch.tensor(targets), reduction="sum")
        loss = loss / count
        loss.backward()
        if step == 0:
            result["gradients"] = {n: float(p.grad.norm()) for n, p in named.items() if p.grad is not None}
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        result["steps"].append({"loss": float(loss), "norm": float(norm)})
    result["end"] = {n: [float(p.sum()), float((p * p).sum())] for n, p in named.items()}
    with open(out, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
