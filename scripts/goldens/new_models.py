#!/usr/bin/env python3
"""Loads what `ckpt new` makes of every family with transformers.

    new_models.py build/bin/ckpt

Makes a checkpoint of every config.json in tests/data/family, tied and untied, loads it by the class that
its config.json names, and prints a line per model. Exit 1 if a key is missing, unexpected or of
another shape, if a loaded tensor differs from the file's, or if the states are not finite.
GAU-alpha, which transformers does not have, is left out.
Versions: torch 2.15.0, transformers 5.23.0, safetensors 0.8.0.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
import transformers as tr

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "family"


def problems_of(folder):
    """The class, and what is wrong with the folder: a list, empty if nothing is."""
    config = json.loads((folder / "config.json").read_text())
    model_class = getattr(tr, config["architectures"][0])
    model, info = model_class.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    wrong = [f"{kind}: {sorted(map(str, names))[:3]}" for kind, names in info.items() if names]
    made = safetensors.torch.load_file(folder / "model.safetensors")
    for name, tensor in model.state_dict().items():
        name = {"lm_head.weight": "embed_out.weight"}.get(name, name) if "gpt_neox" in str(folder) else name
        if name in made and not torch.equal(made[name], tensor):
            wrong.append(f"{name} differs")
    with torch.no_grad():
        output = model.eval()(input_ids=torch.tensor([[5, 9, 4, 9, 7]]))
    if not torch.isfinite(output[0]).all():
        wrong.append("not finite")
    return model_class.__name__, wrong


def main():
    ckpt = sys.argv[1]
    tr.logging.set_verbosity_error()
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        for path in sorted(DATA.glob("*.config.json")):
            if path.name.startswith("gau_alpha"):
                continue
            for tied in (True, False):
                stem = f"{path.name.removesuffix('.config.json')}-{'tied' if tied else 'untied'}"
                config = json.loads(path.read_text()) | {"tie_word_embeddings": tied}
                file = pathlib.Path(temporary) / f"{stem}.json"
                file.write_text(json.dumps(config))
                folder = pathlib.Path(temporary) / stem
                subprocess.run([ckpt, "new", file, "-o", folder, "-q"], check=True)
                name, wrong = problems_of(folder)
                good = good and not wrong
                print(f"{'FAIL' if wrong else 'ok  '} {stem} as {name} {wrong or ''}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
