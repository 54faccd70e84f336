#!/usr/bin/env python3
"""Writes tests/data/surgery/adapters: LoRA adapters of PEFT, and what merge_and_unload makes of them.

  CASE/adapter_config.json, adapter_model.safetensors   as PeftModel.save_pretrained writes them
  CASE/merged.safetensors                               the tensors of the base that the merge changes

The bases are cases of tests/data/model. Versions: torch 2.15.0, transformers 5.24.0, peft 0.21.2.
"""

import json
import pathlib
import shutil
import warnings

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
CASES = {
    "llama": ("llama", {"r": 2, "lora_alpha": 5, "target_modules": ["q_proj", "v_proj", "down_proj"],
                        "rank_pattern": {"layers.1.self_attn.q_proj": 3},
                        "alpha_pattern": {"v_proj": 7, r"layers\.0\.mlp\.\w+": 11}}),
    "gpt2": ("gpt2", {"r": 3, "lora_alpha": 4, "use_rslora": True, "fan_in_fan_out": True,
                      "target_modules": ["c_attn", "c_proj", "wte"]}),
    "bert": ("bert", {"r": 2, "lora_alpha": 3, "bias": "lora_only", "target_modules": ["query", "output.dense"],
                      "modules_to_save": ["transform"]}),
    "bert_headless": ("bert_headless", {"r": 2, "target_modules": ["key"], "bias": "all"}),
}


def main():
    warnings.simplefilter("ignore")
    for name, (base, options) in CASES.items():
        torch.manual_seed(len(name))
        out = DATA / "surgery" / "adapters" / name
        shutil.rmtree(out, ignore_errors=True)
        config = json.loads((DATA / "model" / base / "config.json").read_text())
        model_class = getattr(transformers, config["architectures"][0])
        model = model_class.from_pretrained(DATA / "model" / base, dtype=torch.float32)
        before = {key: value.clone() for key, value in model.state_dict().items()}
        adapted = peft.get_peft_model(model, peft.LoraConfig(**options))
        for key, parameter in adapted.named_parameters():
            if parameter.requires_grad:
                parameter.data += 0.2 * torch.randn_like(parameter)
        adapted.save_pretrained(out)
        (out / "README.md").unlink()
        # A fresh base, as a user has it: what is in the files alone.
        model = model_class.from_pretrained(DATA / "model" / base, dtype=torch.float32)
        merged = peft.PeftModel.from_pretrained(model, out).merge_and_unload()
        stored = load_file(DATA / "model" / base / "model.safetensors")
        changed = {key: value for key, value in merged.state_dict().items()
                   if key in stored and not torch.equal(value, before[key])}
        text = json.loads((out / "adapter_config.json").read_text())
        text["base_model_name_or_path"] = base
        (out / "adapter_config.json").write_text(json.dumps(text, indent=1, sort_keys=True) + "\n")
        save_file({key: value.contiguous() for key, value in changed.items()}, out / "merged.safetensors")
        print(name, len(changed), sum(f.stat().st_size for f in out.iterdir()), sorted(load_file(
            out / "adapter_model.safetensors"))[:3])


if __name__ == "__main__":
    main()
