#!/usr/bin/env python3
"""Compares models that we save with what transformers makes of the same folders.

    saved_models.py WRITE_SAVED_MODELS [--tolerance X]

Runs the program of that name (target write_saved_models of the build), loads every folder that it
writes by the class that its config.json names, and prints per model the largest absolute difference of
logits (last states of headless ones) from transformers' float32. Exit 1 if one exceeds the tolerance
(1e-5 times the largest number, at least 1), or tensors are missing or left over.
Versions: torch 2.15.0, transformers 5.23.0.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers as tr


def result_of(folder, ids):
    config = json.loads((folder / "config.json").read_text())
    model_class = getattr(tr, config["architectures"][0])
    model, info = model_class.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    # Poolers have no part in this; sinusoids are made anew.
    known = ("pooler", "embed_positions")
    left = {kind: [n for n in names if not any(k in str(n) for k in known)] for kind, names in info.items()}
    left = {kind: names for kind, names in left.items() if names}
    with torch.no_grad():
        output = model.eval()(input_ids=torch.tensor(ids[None].astype(np.int64)))
    found = output.logits if hasattr(output, "logits") else output.last_hidden_state
    return model_class.__name__, left, found[0].numpy().reshape(len(ids), -1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    options = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run([options.program, temporary], check=True)
        folders = sorted(p for p in pathlib.Path(temporary).iterdir() if p.is_dir())
        for folder in folders:
            ids = np.fromfile(f"{folder}.ids", np.int32)
            name, left, theirs = result_of(folder, ids)
            ours = np.fromfile(f"{folder}.out", np.float32).reshape(len(ids), -1)
            worst = float(np.abs(ours - theirs).max())
            size = float(max(1, np.abs(theirs).max()))
            fits = ours.shape == theirs.shape and worst <= options.tolerance * size and not left
            good = good and fits
            print(f"{'ok  ' if fits else 'FAIL'} {folder.name} as {name}: {worst:.1e} of {size:.1f} {left or ''}")
        good = good and len(folders) > 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
