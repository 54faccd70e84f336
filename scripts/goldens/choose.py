#!/usr/bin/env python3
"""Scores of labels in cloze patterns, with torch and transformers' tokenizers.

    choose.py FOLDER

FOLDER is tests/data/probe: gets choose/roberta, a random RoBERTa with a byte-level tokenizer made here, and choose.json;
its words/bert and words/gpt2 (word_scores.py) are read. In float64. Per model and case: the log-score of each label for
each text, the mean over a label's words. Words of one token are read off a text with the tokenizer's own mask token in the
pattern, as PET does (Schick and Schuetze 2021). Words of several tokens are written into the text; each of their tokens is
predicted with itself hidden (pll), or itself and the word's later tokens (pll-word-l2r), a copy of the text each; of GPT-2
log-probabilities of the word's tokens and those after it are summed. Calibrated: probabilities divided by their means over
N/A, the mask token (of GPT-2 the text [MASK]) and an empty text, and by their sum (Zhao et al. 2021).
Versions: torch 2.15.0, transformers 5.23.0, tokenizers 0.23.1.
"""
import json
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import tokenizers as tk
import torch
import transformers as tr

TEXTS = [["the cat sat on the mat."], ["a dog"], ["unbelievable, it isn't the dog's bed!"], [""]]
PAIRS = [["the cat sat", "a dog"], ["hello", "the mat."]]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", tk.AddedToken("<mask>", lstrip=True, special=True)]
CASES = {
    "bert": [("X It sat on the [MASK].", [["mat"], ["dog"], ["bed"]], TEXTS, "pll-word-l2r"),
             ("[MASK], X", [["mat", "cat"], ["dog", "hello"]], TEXTS, "pll-word-l2r"),
             ("X? [MASK], Y", [["it"], ["un"]], PAIRS, "pll-word-l2r"),
             ("X the [MASK].", [["unbelievable", "dog"], ["sit on"]], TEXTS, "pll-word-l2r"),
             ("X the [MASK].", [["unbelievable", "dog"], ["sit on"]], TEXTS, "pll")],
    "roberta": [("X It was [MASK].", [["cat"], ["mat"]], TEXTS, "pll-word-l2r"),
                ("[MASK]: X", [["cat", "dog"], ["mat", "on"]], TEXTS, "pll-word-l2r"),
                ("X It was [MASK].", [["unbelievable"], ["naive dogs"]], TEXTS, "pll-word-l2r")],
    "gpt2": [("X the [MASK]", [["cat"], ["dogs"]], TEXTS, "causal"),
             ("X the [MASK] sat.", [["cat", "sit"], ["mat"]], TEXTS, "causal")],
}
FOLDERS = {"bert": "words/bert", "roberta": "choose/roberta", "gpt2": "words/gpt2"}
LINES = ["the cat sat on the mat.", "The unbelievable dogs sit", "a", "hello cats, it was a dog"]


def make_roberta(folder):
    rules = tk.Tokenizer(tk.models.BPE(unk_token="<unk>"))
    rules.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = tk.decoders.ByteLevel()
    rules.train_from_iterator(LINES * 3, tk.trainers.BpeTrainer(
        vocab_size=300, special_tokens=SPECIAL, initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    # RobertaProcessing trims the space off the offsets.
    rules.post_processor = tk.processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer = tr.PreTrainedTokenizerFast(
        tokenizer_object=rules, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>",
        unk_token="<unk>", mask_token=SPECIAL[-1])
    model = tr.RobertaForMaskedLM(tr.RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=66, pad_token_id=1, bos_token_id=0, eos_token_id=2))
    generator = torch.Generator().manual_seed(8)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def filled(pattern, texts, word):
    """The text, and where the word is in it. X, Y and [MASK] are found from left to right."""
    text, at = "", 0
    while at < len(pattern):
        if pattern.startswith("[MASK]", at):
            begin = len(text)
            text += word
            place, at = (begin, len(text)), at + 6
        elif pattern[at] in "XY":
            text, at = text + texts["XY".index(pattern[at])], at + 1
        else:
            text, at = text + pattern[at], at + 1
    return text, place


class Scorer:
    def __init__(self, folder, causal):
        self.tokenizer = tr.AutoTokenizer.from_pretrained(folder)
        kind = tr.AutoModelForCausalLM if causal else tr.AutoModelForMaskedLM
        self.model = kind.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()

    @torch.no_grad()
    def logs(self, ids):
        return self.model(torch.tensor([ids])).logits[0].log_softmax(-1)

    def tokens(self, text, place):
        encoded = self.tokenizer(text, return_offsets_mapping=True)
        mine = [i for i, (begin, end) in enumerate(encoded["offset_mapping"]) if begin < place[1] and end > place[0]]
        return encoded["input_ids"], mine

    def masked(self, pattern, texts, word, kind):
        ids, mine = self.tokens(*filled(pattern, texts, word))
        if len(mine) == 1:
            gap = self.tokenizer(filled(pattern, texts, self.tokenizer.mask_token)[0])["input_ids"]
            # A mask token in a text without content is not the gap.
            at = [i for i, t in enumerate(gap) if t == self.tokenizer.mask_token_id and i == mine[0]]
            assert len(at) == 1, (pattern, texts, word)
            return self.logs(gap)[at[0], ids[mine[0]]].item()
        total = 0.0
        for t in mine:
            copy = list(ids)
            for u in mine:
                if u == t or (kind == "pll-word-l2r" and u > t):
                    copy[u] = self.tokenizer.mask_token_id
            total += self.logs(copy)[t, ids[t]].item()
        return total

    def causal(self, pattern, texts, word, _):
        ids, mine = self.tokens(*filled(pattern, texts, word))
        logs = self.logs([self.tokenizer.bos_token_id] + ids)
        return sum(logs[t, ids[t]].item() for t in range(mine[0], len(ids)))

    def scores(self, pattern, labels, texts, kind):
        score = self.causal if kind == "causal" else self.masked
        return [sum(score(pattern, texts, word, kind) for word in words) / len(words) for words in labels]


def main():
    root = pathlib.Path(sys.argv[1])
    make_roberta(root / "choose/roberta")
    out = []
    for name, cases in CASES.items():
        scorer = Scorer(root / FOLDERS[name], name == "gpt2")
        for pattern, labels, texts, kind in cases:
            scores = [scorer.scores(pattern, labels, one, kind) for one in texts]
            mask = scorer.tokenizer.mask_token or "[MASK]"
            free = [scorer.scores(pattern, labels, [text] * len(texts[0]), kind) for text in ("N/A", mask, "")]
            prior = torch.tensor(free, dtype=torch.float64).softmax(-1).mean(0)
            calibrated = torch.tensor(scores, dtype=torch.float64).softmax(-1) / prior
            calibrated /= calibrated.sum(-1, keepdim=True)
            out.append({"model": FOLDERS[name], "pattern": pattern, "labels": ",".join("|".join(w) for w in labels),
                        "kind": kind, "texts": texts, "scores": scores, "calibrated": calibrated.tolist()})
    with open(root / "choose.json", "w", encoding="utf-8") as f:
        json.dump(out, f)
        f.write("\n")


if __name__ == "__main__":
    main()
