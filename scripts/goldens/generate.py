#!/usr/bin/env python3
"""What transformers' generate makes of prompts, and the distributions that its samplers draw from.

    generate.py MODEL_DATA OUT.json

MODEL_DATA is tests/data/model. "greedy": for each causal model and prompt the new ids of
generate(do_sample=False), in float64, with eos token 33 (which some of the texts reach), and the
sum of their log-probabilities. "beams": for each setting of BEAMS what the beam search of generate finds of each prompt, with
sequences_scores (float32). "processors": the same for each setting of PROCESSORS, greedy or in a beam search.
"sampling": logits and what is left of their softmax after each setting of CASES, as generate applies them. "masked": what plain loops make of masks after beginnings, in the ways of Wang and Cho
2019 (github.com/nyu-dl/bert-gen) and Ghazvininejad et al. 2019 (github.com/facebookresearch/Mask-Predict), with the likeliest
token in place of draws and never the mask token itself. Versions: torch 2.15.0, transformers 5.24.0.
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers as tr

PROMPTS = [[43], [19, 5], [33, 1, 23, 33, 15, 3, 32], [7, 7, 7, 7], [2, 40, 11, 9, 30]]
MODELS = ["gpt2", "llama", "gpt_neox", "mistral", "ministral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "olmo", "olmo2",
          "phi", "phi3", "stablelm", "smollm3", "granite", "cohere", "starcoder2", "gptj", "gpt_neo", "bloom", "mpt", "opt", "falcon_groups",
          "mixtral", "qwen3_moe", "gpt_oss"]
NEW = 10
EOS = 33
ENDS = [33, 7, 19, 2, 11, 23, 15, 30]
CASES = [dict(temperature=1.0, top_k=0, top_p=1.0), dict(temperature=0.6, top_k=0, top_p=1.0),
         dict(temperature=1.0, top_k=4, top_p=1.0), dict(temperature=1.0, top_k=0, top_p=0.7),
         dict(temperature=1.7, top_k=7, top_p=0.8), dict(temperature=1.0, top_k=0, top_p=0.01),
         dict(min_p=0.1), dict(min_p=1.0), dict(typical_p=0.6), dict(typical_p=0.1), dict(typical_p=0.95, top_k=6),
         dict(epsilon_cutoff=0.02), dict(epsilon_cutoff=0.9), dict(eta_cutoff=0.05), dict(eta_cutoff=0.9),
         dict(temperature=1.5, top_k=12, top_p=0.95, min_p=0.05, typical_p=0.9, epsilon_cutoff=0.03, eta_cutoff=0.08)]
# Each setting changed in turn, then several at once.
PROCESSORS = [dict(repetition_penalty=1.7), dict(repetition_penalty=0.6), dict(no_repeat_ngram_size=1), dict(no_repeat_ngram_size=2),
              dict(no_repeat_ngram_size=3), dict(bad_words_ids=[[5], [28], [16, 16], [5, 5, 5], [33], [37, 7]]), dict(min_length=9, eos=ENDS),
              dict(min_new_tokens=4, eos=ENDS), dict(min_new_tokens=2, min_length=30, eos=ENDS), dict(forced_bos_token_id=12),
              dict(forced_eos_token_id=33), dict(forced_eos_token_id=[2, 33]), dict(suppress_tokens=[5, 16, 28, 30, 99]),
              dict(begin_suppress_tokens=[43, 16, 28, 19, 5, 0, 12]), dict(forced_bos_token_id=12, begin_suppress_tokens=[12, 5, 16]),
              dict(repetition_penalty=1.3, no_repeat_ngram_size=2, bad_words_ids=[[16], [19, 5]], min_new_tokens=3, forced_eos_token_id=33,
                   suppress_tokens=[11, 7], begin_suppress_tokens=[28, 5], eos=ENDS)]
BEAMS = [dict(num_beams=2), dict(num_beams=3, num_return_sequences=3, eos=ENDS), dict(num_beams=4, length_penalty=0.0, num_return_sequences=2),
         dict(num_beams=4, length_penalty=2.0, eos=ENDS), dict(num_beams=3, length_penalty=-1.0, num_return_sequences=2, eos=ENDS),
         dict(num_beams=4, early_stopping=True, num_return_sequences=4, eos=ENDS),
         dict(num_beams=3, early_stopping="never", length_penalty=1.5, num_return_sequences=2, eos=ENDS),
         dict(num_beams=3, early_stopping="never", length_penalty=-0.5, num_return_sequences=2, eos=ENDS),
         dict(num_beams=5, eos=ENDS[:3], num_return_sequences=5), dict(num_beams=6, early_stopping=True, eos=ENDS[:5])]
MASKED = ["bert", "roberta"]
MASK, CLS, SEP = 4, 2, 3
BEGINNINGS = [[], [7], [9, 30, 12, 5]]
LENGTHS = [1, 4, 7]


@torch.no_grad()
def beams(data, name):
    model = tr.AutoModelForCausalLM.from_pretrained(f"{data}/{name}", dtype=torch.float64,
                                                    attn_implementation="eager", experts_implementation="eager").eval()
    out = []
    for case in BEAMS:
        options = dict(num_return_sequences=1, length_penalty=1.0, early_stopping=False) | case
        eos = options.pop("eos", [EOS])
        texts = []
        for prompt in PROMPTS:
            prompt = [min(token, model.config.vocab_size - 1) for token in prompt]
            ids = torch.tensor([prompt])
            found = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW, eos_token_id=eos,
                                   pad_token_id=0, return_dict_in_generate=True, output_scores=True, **options)
            new = []
            for sequence in found.sequences.tolist():
                sequence = sequence[len(prompt):]
                ends = [i for i, token in enumerate(sequence) if token in eos]
                new.append(sequence[:ends[0] + 1] if ends else sequence)
            texts.append({"prompt": prompt, "new": new, "scores": found.sequences_scores.tolist()})
        out.append(options | {"early_stopping": str(options["early_stopping"]).lower(), "eos": eos, "texts": texts})
    return out


@torch.no_grad()
def processed(data, name):
    model = tr.AutoModelForCausalLM.from_pretrained(f"{data}/{name}", dtype=torch.float64,
                                                    attn_implementation="eager", experts_implementation="eager").eval()
    out = []
    for case in PROCESSORS:
        for num_beams in (1, 3):
            options = dict(case)
            eos = options.pop("eos", [EOS])
            texts = []
            for prompt in PROMPTS[::2] + PROMPTS[3:4]:
                ids = torch.tensor([prompt])
                found = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW, eos_token_id=eos,
                                       pad_token_id=0, num_beams=num_beams, return_dict_in_generate=True, output_scores=True,
                                       **options)
                new = found.sequences[0].tolist()[len(prompt):]
                ends = [i for i, token in enumerate(new) if token in eos]
                texts.append({"prompt": prompt, "new": new[:ends[0] + 1] if ends else new})
                if num_beams > 1:
                    texts[-1]["score"] = float(found.sequences_scores[0])
            out.append({"settings": json.dumps(options), "num_beams": num_beams, "eos": eos, "texts": texts})
    return out


def mask_logits(model, ids):
    return model(torch.tensor([ids])).logits[0].log_softmax(-1)


def choose(logs):
    allowed = logs.clone()
    allowed[MASK] = -torch.inf
    token = int(allowed.argmax())
    return token, float(logs[token])


def left_to_right(model, ids, places, lead_out):
    score = 0
    for i, place in enumerate(places):
        last = places[min(i + lead_out, len(places) - 1)]
        token, log = choose(mask_logits(model, ids[:last + 1] + ids[places[-1] + 1:])[place])
        ids[place] = token
        score += log
    return score


def gibbs(model, ids, places, sweeps):
    logs = {}
    for _ in range(sweeps):
        for place in places:
            ids[place] = MASK
            ids[place], logs[place] = choose(mask_logits(model, ids)[place])
    return sum(logs.values())


def mask_predict(model, ids, places, iterations):
    logs = {}
    for t in range(iterations):
        again = places
        if t > 0:
            count = max(1, len(places) * (iterations - t) // iterations)
            again = sorted(sorted(places, key=lambda place: logs[place])[:count])
        for place in again:
            ids[place] = MASK
        found = mask_logits(model, ids)
        for place in again:
            ids[place], logs[place] = choose(found[place])
    return sum(logs.values())


@torch.no_grad()
def masked(data, name):
    model = tr.AutoModelForMaskedLM.from_pretrained(f"{data}/{name}", dtype=torch.float64, attn_implementation="eager", experts_implementation="eager").eval()
    out = []
    for begin in BEGINNINGS:
        for length in LENGTHS:
            ids = [CLS] + begin + [MASK] * length + [SEP]
            places = list(range(1 + len(begin), 1 + len(begin) + length))
            one = {"ids": ids, "places": places, "found": []}
            for way, run, arguments in (("left-to-right", left_to_right, (0, 2, 100)), ("gibbs", gibbs, (1, 3)),
                                        ("mask-predict", mask_predict, (1, 3, 4, 10))):
                for argument in arguments:
                    filled = list(ids)
                    score = run(model, filled, places, argument)
                    one["found"].append({"how": way, "argument": argument, "new": [filled[p] for p in places], "score": score})
            out.append(one)
    return out


@torch.no_grad()
def greedy(data, name):
    model = tr.AutoModelForCausalLM.from_pretrained(f"{data}/{name}", dtype=torch.float64,
                                                    attn_implementation="eager", experts_implementation="eager").eval()
    out = []
    for prompt in PROMPTS:
        prompt = [min(token, model.config.vocab_size - 1) for token in prompt]
        ids = torch.tensor([prompt])
        found = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW, eos_token_id=EOS,
                               pad_token_id=0, return_dict_in_generate=True, output_logits=True)
        new = found.sequences[0].tolist()[len(prompt):]
        # Of each step: the angles of phi3 change with the length of the text.
        score = sum(float(logits[0].double().log_softmax(-1)[token]) for logits, token in zip(found.logits, new))
        out.append({"prompt": prompt, "new": new, "score": score})
    return out


def sampling():
    # The order is generate's own: what its method makes of the settings.
    model = tr.GPT2LMHeadModel(tr.GPT2Config(vocab_size=23, n_embd=4, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0))
    torch.manual_seed(1)
    out = []
    for case in CASES:
        logits = torch.randn(1, 23, dtype=torch.float64) * 2
        settings = tr.GenerationConfig(do_sample=True, **dict(num_beams=1, top_k=0) | case)
        settings._eos_token_tensor = None
        scores = model._get_logits_processor(settings, input_ids_seq_length=1)(torch.tensor([[0]]), logits.clone())
        out.append(case | {"logits": logits[0].tolist(), "probabilities": scores.softmax(-1)[0].tolist()})
    return out


def main():
    data, path = sys.argv[1:]
    result = {"eos": EOS, "max_new_tokens": NEW, "greedy": {name: greedy(data, name) for name in MODELS},
              "beams": {name: beams(data, name) for name in ("gpt2", "llama")},
              "processors": {name: processed(data, name) for name in ("gpt2", "llama")}, "sampling": sampling(),
              "masked": {name: masked(data, name) for name in MASKED}}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(result, f)
        f.write("\n")


if __name__ == "__main__":
    main()
