#!/usr/bin/env python3
"""Writes tests/data/kernel/activations.tsv: activations of transformers, and what torch gives for them in float64.

A row is the name of ACT2FN, x, the value at x and the derivative there, as torch's backward pass has it (where it jumps, too).
Names with trained numbers (prelu, xielu) are left out.
Run with HF_HUB_OFFLINE=1. Versions: torch 2.15.0, transformers 5.24.0.
"""

import pathlib

import torch
from transformers.activations import ACT2CLS, ACT2FN

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "kernel" / "activations.tsv"
POINTS = [-80, -20, -4, -3, -1.5, -0.3, 0, 0.3, 1.5, 3, 6, 7, 9.5, 12, 90]


def main():
    OUT.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in sorted(ACT2CLS):
        if name in ("prelu", "xielu"):
            continue
        x = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
        y = ACT2FN[name](x)
        y.sum().backward()
        rows += [f"{name}\t{a:g}\t{b:.15g}\t{c:.15g}\n" for a, b, c in zip(POINTS, y.tolist(), x.grad.tolist())]
    OUT.write_text("".join(rows))
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
