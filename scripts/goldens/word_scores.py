#!/usr/bin/env python3
"""Log-probabilities of words by white space, of a random GPT-2 and a random BERT.

    word_scores.py FOLDER [--authors CLONE]

FOLDER is tests/data/evaluate/words: gets the models gpt2 and bert with tokenizers made here, and
expected.json. Of GPT-2: for each word of a line the sum over its tokens in float64, the begin token in
front, and the same corrected for tokens that begin with the space, as Pimentel and Meister 2024
(arXiv:2406.14561) have it and tpimentelms/probability-of-a-word computes it: a word that begins with a
space loses log P(such a token or the end stands here), the first word log P(any other token or the end
stands here), and each gets log P(such a token or the end comes next). Their program counts the end
twice where the first word begins; here, as in the paper, it counts once. With a clone of that program its
largest differences are printed instead (float32): of later words, of first words, and of first words
when it counts the end once. Of BERT: the sums for pll and pll-word-l2r. Versions: torch 2.15.0, transformers 5.23.0, tokenizers 0.23.1.
"""
import json
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import tokenizers as tk
import torch
import transformers as tr

LINES = ["the cat sat on the mat.", "The unbelievable dogs sit", "a", "hello cats, na\u00efve \u4e2d\u56fd \U0001f600 x",
         "mat mat mat", "it isn't the dog's bed!"]
END = "<|endoftext|>"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "cat", "dog", "##s", "sat", "sit", "on", "mat",
          ".", ",", "'", "!", "un", "##believ", "##able", "it", "isn", "t", "s", "bed", "hello", "x"]


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return model.eval()


def make_gpt2(folder):
    rules = tk.Tokenizer(tk.models.BPE())
    rules.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = tk.decoders.ByteLevel()
    rules.train_from_iterator(LINES[:4] * 2, tk.trainers.BpeTrainer(
        vocab_size=290, special_tokens=[END], initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    tokenizer = tr.PreTrainedTokenizerFast(tokenizer_object=rules, bos_token=END, eos_token=END)
    size = len(tokenizer) + 3  # rows of the matrix without a token
    model = randomise(tr.GPT2LMHeadModel(tr.GPT2Config(
        vocab_size=size, n_positions=48, n_embd=12, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)), 5)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.double(), tokenizer


def make_bert(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    tokenizer = tr.BertTokenizer(str(folder / "vocab.txt"))
    model = randomise(tr.BertForMaskedLM(tr.BertConfig(
        vocab_size=len(PIECES), hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=48)), 6)
    model.save_pretrained(folder)
    return model.double(), tokenizer


def words_of(line):
    """The words between white space, as (begin, end)."""
    places, at = [], 0
    for word in line.split():
        begin = line.index(word, at)
        at = begin + len(word)
        places.append((begin, at))
    return places


def gpt2_words(model, tokenizer, line):
    encoded = tokenizer(line, return_offsets_mapping=True)
    ids = encoded["input_ids"]
    with torch.no_grad():
        logs = model(torch.tensor([[tokenizer.bos_token_id] + ids])).logits[0].log_softmax(-1)
    spaced = [i for t, i in tokenizer.get_vocab().items() if t.startswith("\u0120")]
    end = tokenizer.eos_token_id
    begins = torch.logsumexp(logs[:, spaced + [end]], -1)
    others = [i for i in range(len(tokenizer)) if i not in spaced]
    starts = torch.logsumexp(logs[0, others], -1)
    words, before = [], 0
    for begin, stop in words_of(line):
        # The tokens of a word; a space in front belongs to it.
        mine = [i for i, (at, _) in enumerate(encoded["offset_mapping"]) if before <= at < stop]
        before = stop
        total = sum(logs[i, ids[i]].item() for i in mine)
        assert (ids[mine[0]] in spaced) == (mine[0] > 0)
        corrected = total - (starts if mine[0] == 0 else begins[mine[0]]).item() + begins[mine[-1] + 1].item()
        words.append({"text": line[begin:stop], "tokens": len(mine), "log_probability": total, "corrected": corrected})
    assert sum(word["tokens"] for word in words) == len(ids)
    return words


def bert_words(model, tokenizer, line, within_word):
    encoded = tokenizer(line, return_offsets_mapping=True, return_special_tokens_mask=True)
    ids, pieces = encoded["input_ids"], encoded.word_ids()
    logs = {}
    for t, special in enumerate(encoded["special_tokens_mask"]):
        if special:
            continue
        copy = torch.tensor([ids])
        hidden = [u for u in range(t, len(ids)) if u == t or (within_word and pieces[u] == pieces[t])]
        copy[0, hidden] = tokenizer.mask_token_id
        with torch.no_grad():
            logs[t] = model(copy).logits[0, t].log_softmax(-1)[ids[t]].item()
    words = []
    for begin, stop in words_of(line):
        mine = [t for t in logs if begin <= encoded["offset_mapping"][t][0] < stop]
        words.append({"text": line[begin:stop], "tokens": len(mine), "log_probability": sum(logs[t] for t in mine)})
    assert sum(word["tokens"] for word in words) == len(logs)
    return words


def compare_with_authors(folder, clone):
    sys.path.insert(0, clone)
    import pandas
    from wordsprobability import main as program
    from wordsprobability.models import bow_lm

    class Model(bow_lm.GPT2BaseModel):
        model_name = str(folder / "gpt2")
        tokenizer_cls = tr.PreTrainedTokenizerFast

    model, name = Model(), "gpt2-small"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))

    def differences(line, words):
        results, _ = model.get_predictions(line)
        theirs = program.agg_surprisal_per_word(pandas.DataFrame(results | {"text_id": 0}), name)
        return [abs(-a - b["corrected"]) for a, b in zip(theirs.surprisal, words, strict=True)]

    found = [differences(*pair) for pair in zip(expected["lines"], expected["gpt2"])]
    later, first = max(max(row[1:], default=0) for row in found), max(row[0] for row in found)
    model.vocab_masks["mid"][model.eos_token_id] = 0
    once = max(differences(*pair)[0] for pair in zip(expected["lines"], expected["gpt2"]))
    print(f"later words {later:.1e}, first words {first:.1e}, the end once {once:.1e}")


def main():
    folder = pathlib.Path(sys.argv[1])
    if sys.argv[2:3] == ["--authors"]:
        compare_with_authors(folder, sys.argv[3])
        return
    gpt2 = make_gpt2(folder / "gpt2")
    bert = make_bert(folder / "bert")
    expected = {"lines": LINES, "gpt2": [gpt2_words(*gpt2, line) for line in LINES]}
    for kind, within_word in (("pll", False), ("pll-word-l2r", True)):
        expected[kind] = [bert_words(*bert, line, within_word) for line in LINES]
    with open(folder / "expected.json", "w", encoding="utf-8") as file:
        json.dump(expected, file)
        file.write("\n")
    for path in folder.glob("*/generation_config.json"):
        path.unlink()


if __name__ == "__main__":
    main()
