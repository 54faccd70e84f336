#!/usr/bin/env python3
"""Writes tests/data/kernel/lamb.tsv: steps of LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2) in double.

Each row is one layer. φ(z) = z, and the ratio is 1 where a norm is 0, as in the authors' code. Columns: learning rate,
beta1, beta2, epsilon, weight decay, start, gradients, values after each step. Start and values hold SIZE numbers (each
step's one after the other). The gradient of step t = 1, 2, … at place i is sin(1.3 t + 0.7 i² + 0.1).

Written with numpy 2.4.6. Run from anywhere.
"""

import pathlib

import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "kernel" / "lamb.tsv"

SIZE, STEPS = 5, 4
PLACES = np.arange(SIZE, dtype=np.float64)
START = 0.5 - 0.3 * PLACES
# Learning rate, beta1, beta2, epsilon, weight decay, start. A start of zeros has no length.
SETTINGS = [
    (1e-3, 0.9, 0.999, 1e-6, 0.0, START),
    (2e-2, 0.9, 0.98, 1e-6, 0.1, START),
    (5e-1, 0.0, 0.5, 1e-3, 0.01, 10 * START),
    (1e-1, 0.9, 0.999, 1e-6, 0.01, np.zeros(SIZE)),
]


def lamb(gradients, rate, beta1, beta2, epsilon, decay, start):
    """The values after each step."""
    x = start.copy()
    m = np.zeros(SIZE)
    v = np.zeros(SIZE)
    values = []
    for t, g in enumerate(gradients, start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * np.square(g)
        r = (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
        update = r + decay * x
        length, update_length = np.linalg.norm(x), np.linalg.norm(update)
        ratio = length / update_length if length > 0 and update_length > 0 else 1.0
        x = x - rate * ratio * update
        values.append(x)
    return values


def listed(numbers):
    return " ".join(f"{x:.17g}" for x in np.ravel(numbers))


def main():
    gradients = [np.sin(1.3 * t + 0.7 * PLACES * PLACES + 0.1) for t in range(1, STEPS + 1)]
    lines = ["# Written by scripts/goldens/lamb.py."]
    for *numbers, start in SETTINGS:
        values = lamb(gradients, *numbers, start)
        settings = "\t".join(f"{x:.17g}" for x in numbers)
        lines.append("\t".join([settings, listed(start), listed(gradients), listed(values)]))
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
