#!/usr/bin/env python3
"""Writes tests/data/kernel/adamw.tsv: steps of torch.optim.AdamW in double.

Columns: learning rate, beta1, beta2, epsilon, weight decay, start, gradients, values after each step. Start and
values hold SIZE numbers (each step's one after the other). The gradient of step t = 1, 2, … at place i is
sin(1.3 t + 0.7 i² + 0.1).

Written with torch 2.15.0. Run from anywhere.
"""

import math
import pathlib

import torch

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "kernel" / "adamw.tsv"

SIZE, STEPS = 5, 4
SETTINGS = [
    (1e-3, 0.9, 0.999, 1e-8, 0.0),
    (2e-2, 0.9, 0.98, 1e-6, 0.1),
    (5e-1, 0.0, 0.5, 1e-3, 0.01),
]


def gradient(t):
    return [math.sin(1.3 * t + 0.7 * i * i + 0.1) for i in range(SIZE)]


def listed(numbers):
    return " ".join(f"{x:.17g}" for x in numbers)


def row(rate, beta1, beta2, epsilon, decay):
    start = [0.5 - 0.3 * i for i in range(SIZE)]
    value = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer = torch.optim.AdamW([value], lr=rate, betas=(beta1, beta2), eps=epsilon, weight_decay=decay)
    gradients, values = [], []
    for t in range(1, STEPS + 1):
        value.grad = torch.tensor(gradient(t), dtype=torch.float64)
        optimizer.step()
        gradients += gradient(t)
        values += value.tolist()
    settings = "\t".join(f"{x:.17g}" for x in (rate, beta1, beta2, epsilon, decay))
    return "\t".join([settings, listed(start), listed(gradients), listed(values)])


def main():
    OUT.parent.mkdir(exist_ok=True)
    lines = ["# Written by scripts/goldens/optimizer.py."] + [row(*s) for s in SETTINGS]
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
