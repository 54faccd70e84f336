#!/usr/bin/env python3
"""Prints the greedy tokens of transformers' generate for tests/data/model/llama with settings in generation_config.json or
config.json: what tests/cli/generation_config.transcript expects of lm-write. Versions: torch 2.15.0, transformers 5.24.0.
"""

import json
import pathlib
import shutil
import tempfile

import torch
import transformers

MODEL = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "model" / "llama"
PROMPTS = [[5, 6, 7], [9], [11, 3, 20, 33], [40, 41]]
# The file, its settings: of config.json those that replace its own.
CASES = [("generation_config.json", dict(eos_token_id=44)), ("generation_config.json", dict(eos_token_id=[10, 25, 12])),
         ("config.json", dict(eos_token_id=[10, 25, 12])), ("generation_config.json", dict(repetition_penalty=1.3)),
         ("generation_config.json", dict(suppress_tokens=[16, 43])), ("config.json", dict(suppress_tokens=[16, 43])),
         ("generation_config.json", dict(max_length=6)),
         ("generation_config.json", dict(repetition_penalty=1.3, num_beams=3, min_new_tokens=4, bad_words_ids=[[16, 16]]))]


def main():
    for name, settings in CASES:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for file in ("config.json", "model.safetensors"):
                shutil.copy(MODEL / file, folder)
            old = json.loads((folder / name).read_text()) if name == "config.json" else {}
            (folder / name).write_text(json.dumps(old | settings))
            model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
            print(name, json.dumps(settings))
            for ids in PROMPTS:
                lengths = {} if "max_length" in settings else {"max_new_tokens": 12}
                out = model.generate(torch.tensor([ids]), pad_token_id=0, **lengths)
                print(json.dumps(out[0, len(ids):].tolist(), separators=(",", ":")))


if __name__ == "__main__":
    main()
