#!/usr/bin/env python3
"""Compares `lm-score score` with torch and minicons on small random models with real tokenizers.

    compare_scores.py LM_SCORE TOKENIZERS [--pairs FILE.jsonl] [--lines N] [--tolerance X]

TOKENIZERS holds the folders bert-base-uncased and gpt2 (no weights are needed: models are random, two
layers of hidden size 64). Lines are the good sentences of a BLiMP file, or a few of its own. Per kind a
line: sentences, the largest difference of a sentence's score from torch (brute force: one masked copy at a
time, words by the fast tokenizer's word_ids) and from minicons where it has the kind. Exit 1 if one
exceeds the tolerance (2e-4 nats a sentence). Versions: torch 2.15.0, transformers 5.23.0, minicons 0.3.39.
HF_HUB_OFFLINE=1.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers as tr

LINES = ["Hello world!", "The unbelievably souvenir-laden traveller lost it.", "", "x",
         "Electroencephalography isn't antidisestablishmentarianism, naïve café 中国."]
SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model.eval()


def hidden_set(kind, words, targets, t):
    if kind == "pll":
        return [t]
    if kind == "pll-word":
        return [u for u in targets if words[u] == words[t]]
    if kind == "pll-word-l2r":
        return [t] + [u for u in targets if u > t and words[u] == words[t]]
    return [u for u in targets if u >= t]


def masked_score(model, tokenizer, line, kind):
    encoded = tokenizer(line, return_special_tokens_mask=True)
    ids, words = encoded["input_ids"], encoded.word_ids()
    targets = [i for i, special in enumerate(encoded["special_tokens_mask"]) if not special]
    total = 0.0
    for t in targets:
        copy = torch.tensor([ids])
        copy[0, hidden_set(kind, words, targets, t)] = tokenizer.mask_token_id
        with torch.no_grad():
            total += torch.log_softmax(model(copy).logits[0, t].double(), -1)[ids[t]].item()
    return total


def causal_score(model, tokenizer, line):
    ids = [tokenizer.bos_token_id] + tokenizer(line)["input_ids"]
    with torch.no_grad():
        logs = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
    return sum(logs[i - 1, ids[i]].item() for i in range(1, len(ids)))


def electra_score(model, tokenizer, line):
    encoded = tokenizer(line, return_special_tokens_mask=True)
    with torch.no_grad():
        logits = model(torch.tensor([encoded["input_ids"]])).logits[0].double()
    logs = torch.nn.functional.logsigmoid(-logits)
    return sum(v.item() for v, s in zip(logs, encoded["special_tokens_mask"]) if not s)


def ours(binary, folder, kind, lines, *options):
    run = subprocess.run([binary, "score", folder, "--kind", kind, "-q", "--json", *options],
                         input="".join(line + "\n" for line in lines), capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return [json.loads(row)["score"] for row in run.stdout.splitlines()]


def largest(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def minicons_scores(kind, model, tokenizer, lines):
    from minicons import scorer
    # minicons 0.3.39 calls what transformers 5 no longer has.
    tr.PreTrainedTokenizerBase.batch_encode_plus = lambda self, *a, **k: self(*a, **k)
    if kind == "causal":
        return scorer.IncrementalLMScorer(model, "cpu", tokenizer=tokenizer).sequence_score(
            lines, reduction=lambda x: x.sum().item(), bos_token=True)
    metric = {"pll": "original", "pll-word-l2r": "within_word_l2r"}[kind]
    return scorer.MaskedLMScorer(model, "cpu", tokenizer=tokenizer).sequence_score(
        lines, reduction=lambda x: x.sum().item(), PLL_metric=metric)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("tokenizers", type=pathlib.Path)
    parser.add_argument("--pairs")
    parser.add_argument("--lines", type=int, default=50)
    parser.add_argument("--tolerance", type=float, default=2e-4)
    args = parser.parse_args()
    lines = list(LINES)
    if args.pairs:
        with open(args.pairs, encoding="utf-8") as file:
            pairs = [json.loads(row) for row in file][:args.lines]
        lines += [pair.get("sentence_good", pair.get("good")) for pair in pairs]

    bert = tr.BertTokenizerFast.from_pretrained(args.tokenizers / "bert-base-uncased")
    gpt2 = tr.GPT2TokenizerFast.from_pretrained(args.tokenizers / "gpt2", bos_token="<|endoftext|>",
                                                eos_token="<|endoftext|>")
    masked = randomise(tr.BertForMaskedLM(tr.BertConfig(vocab_size=len(bert), **SIZES)), 1)
    causal = randomise(tr.GPT2LMHeadModel(tr.GPT2Config(n_embd=64, n_layer=2, n_head=4)), 2)
    electra = randomise(tr.ElectraForPreTraining(
        tr.ElectraConfig(vocab_size=len(bert), embedding_size=32, **SIZES)), 3)
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name, model, tokenizer in (("bert", masked, bert), ("gpt2", causal, gpt2), ("electra", electra, bert)):
            model.save_pretrained(f"{folder}/{name}")
            tokenizer.save_pretrained(f"{folder}/{name}")
        cases = [("bert", kind, [masked_score(masked, bert, line, kind) for line in lines])
                 for kind in ("pll", "pll-word-l2r", "pll-word", "pll-global-l2r")]
        cases.append(("gpt2", "causal", [causal_score(causal, gpt2, line) for line in lines]))
        cases.append(("electra", "electra", [electra_score(electra, bert, line) for line in lines]))
        for name, kind, expected in cases:
            got = ours(args.binary, f"{folder}/{name}", kind, lines)
            differences = {"torch": largest(got, expected)}
            if kind in ("pll", "pll-word-l2r", "causal"):
                model, tokenizer = (causal, gpt2) if kind == "causal" else (masked, bert)
                full = [i for i, line in enumerate(lines) if len(tokenizer(line)["input_ids"]) > 2]
                theirs = minicons_scores(kind, model, tokenizer, [lines[i] for i in full])
                differences["minicons"] = largest([got[i] for i in full], theirs)
            worst = max([worst, *differences.values()])
            print(kind, len(lines), *(f"{k} {v:.2e}" for k, v in differences.items()), sep="\t")
    return 1 if worst > args.tolerance else 0


if __name__ == "__main__":
    sys.exit(main())
