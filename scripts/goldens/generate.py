#!/usr/bin/env python3
"""What transformers' generate makes of prompts, and the distributions that its samplers draw from.

    generate.py MODEL_DATA OUT.json

MODEL_DATA is tests/data/model. "greedy": for each causal model and prompt the new ids of
generate(do_sample=False), in float64, with eos token 33 (which some of the texts reach), and the
sum of their log-probabilities. "sampling": logits and what is left of their softmax after temperature,
top_k and top_p, as generate applies them. Versions: torch 2.15.0, transformers 5.23.0.
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers as tr
from transformers.generation import logits_process as lp

PROMPTS = [[43], [19, 5], [33, 1, 23, 33, 15, 3, 32], [7, 7, 7, 7], [2, 40, 11, 9, 30]]
MODELS = ["gpt2", "llama", "gpt_neox"]
NEW = 10
EOS = 33
CASES = [dict(temperature=1.0, top_k=0, top_p=1.0), dict(temperature=0.6, top_k=0, top_p=1.0),
         dict(temperature=1.0, top_k=4, top_p=1.0), dict(temperature=1.0, top_k=0, top_p=0.7),
         dict(temperature=1.7, top_k=7, top_p=0.8), dict(temperature=1.0, top_k=0, top_p=0.01)]


@torch.no_grad()
def greedy(data, name):
    model = tr.AutoModelForCausalLM.from_pretrained(f"{data}/{name}", dtype=torch.float64,
                                                    attn_implementation="eager").eval()
    out = []
    for prompt in PROMPTS:
        prompt = [min(token, model.config.vocab_size - 1) for token in prompt]
        ids = torch.tensor([prompt])
        found = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW,
                               eos_token_id=EOS, pad_token_id=0)[0].tolist()
        new = found[len(prompt):]
        logs = model(torch.tensor([found])).logits[0].log_softmax(-1)
        score = sum(float(logs[len(prompt) + i - 1, token]) for i, token in enumerate(new))
        out.append({"prompt": prompt, "new": new, "score": score})
    return out


def sampling():
    torch.manual_seed(1)
    out = []
    for case in CASES:
        logits = torch.randn(1, 23, dtype=torch.float64) * 2
        processors = [lp.TemperatureLogitsWarper(case["temperature"])]
        if case["top_k"] > 0:
            processors.append(lp.TopKLogitsWarper(case["top_k"]))
        if case["top_p"] < 1:
            processors.append(lp.TopPLogitsWarper(case["top_p"]))
        scores = logits.clone()
        for processor in processors:
            scores = processor(None, scores)
        out.append(case | {"logits": logits[0].tolist(), "probabilities": scores.softmax(-1)[0].tolist()})
    return out


def main():
    data, path = sys.argv[1:]
    result = {"eos": EOS, "max_new_tokens": NEW, "greedy": {name: greedy(data, name) for name in MODELS},
              "sampling": sampling()}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(result, f)
        f.write("\n")


if __name__ == "__main__":
    main()
