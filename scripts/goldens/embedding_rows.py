#!/usr/bin/env python3
"""Compares transformers before and after embed-fix changed the rows of a vocabulary.

    embedding_rows.py BIN_DIR [--only NAME]

Makes tiny random BERT, RoBERTa, GPT-2 and ALBERT folders, tied and untied, with tokenizers trained on a few
lines, and runs add (every initializer), remove, keep, permute and resize on them. Every output must load in
transformers without a missing, unexpected or mismatched tensor; its tokenizer must give the same tokens for
text that holds none of the touched tokens, and the new token for text that does; logits of every token that
stayed must be those of before. New rows are compared with numpy. Exit 1 if anything differs.
Versions: torch 2.15.0, transformers 5.23.0, tokenizers 0.23.3.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import tokenizers
import torch
import transformers as tr
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

tr.logging.set_verbosity_error()
tr.utils.logging.disable_progress_bar()

LINES = ["the king of the court saw the queen", "a queen and a king walk to the old court",
         "the old man and the sea and the wind", "wind and rain and wind again on the sea",
         "to walk or to run to the king of rain", "an old queen ran from the court to the sea"] * 20
TEXTS = ["the king and the queen", "rain on the old sea", "a man ran again"]
SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24)


def word_piece(folder, special):
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(LINES, trainers.WordPieceTrainer(vocab_size=70, special_tokens=special))
    return tokenizer


def byte_pairs(folder, special):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(LINES, trainers.BpeTrainer(
        vocab_size=320, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def unigram(folder, special):
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(LINES, trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="<unk>"))
    return tokenizer


def template(tokenizer, first, last):
    ids = tokenizer.get_vocab()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", pair=f"{first} $A {last} $B {last}",
        special_tokens=[(first, ids[first]), (last, ids[last])])


def bert(folder, tied, padding, plain=False):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = word_piece(folder, special)
    template(tokenizer, "[CLS]", "[SEP]")
    ids = tokenizer.get_vocab()
    if plain:
        (folder / "vocab.txt").write_text("".join(f"{t}\n" for t in sorted(ids, key=ids.get)))
    else:
        tr.BertTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return tr.BertForMaskedLM(tr.BertConfig(vocab_size=len(ids) + padding, max_position_embeddings=40,
                                            tie_word_embeddings=tied, **SIZES))


def roberta(folder, tied, padding):
    tokenizer = byte_pairs(folder, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tr.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>",
                               pad_token="<pad>", unk_token="<unk>", mask_token="<mask>").save_pretrained(folder)
    return tr.RobertaForMaskedLM(tr.RobertaConfig(vocab_size=tokenizer.get_vocab_size() + padding, max_position_embeddings=42,
                                                  tie_word_embeddings=tied, **SIZES))


def gpt2(folder, tied, padding):
    tokenizer = byte_pairs(folder, ["<|endoftext|>"])
    tr.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>",
                               unk_token="<|endoftext|>").save_pretrained(folder)
    end = tokenizer.token_to_id("<|endoftext|>")
    return tr.GPT2LMHeadModel(tr.GPT2Config(vocab_size=tokenizer.get_vocab_size() + padding, n_positions=40, n_embd=16, n_layer=2,
                                            n_head=2, tie_word_embeddings=tied, bos_token_id=end, eos_token_id=end))


def albert(folder, tied, padding):
    tokenizer = unigram(folder, ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])
    template(tokenizer, "[CLS]", "[SEP]")
    tr.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", cls_token="[CLS]",
                               sep_token="[SEP]", mask_token="[MASK]").save_pretrained(folder)
    return tr.AlbertForMaskedLM(tr.AlbertConfig(vocab_size=tokenizer.get_vocab_size() + padding, embedding_size=8,
                                                max_position_embeddings=40, tie_word_embeddings=tied, pad_token_id=0,
                                                bos_token_id=2, eos_token_id=3, **SIZES))


MAKERS = {"bert": bert, "bert-vocab-txt": lambda *a: bert(*a, plain=True), "roberta": roberta, "gpt2": gpt2, "albert": albert}


def load(folder):
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model, info = getattr(tr, name).from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    left = {kind: list(names) for kind, names in info.items() if names}
    if left:
        raise AssertionError(f"loading says {left}")
    return model.eval(), tr.AutoTokenizer.from_pretrained(folder)


def logits(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0].numpy()


def vocabulary_tensors(model):
    head = model.get_output_embeddings()
    parts = [model.get_input_embeddings().weight, head.weight, getattr(head, "bias", None)]
    return [p.detach().numpy().astype(np.float64) for p in parts if p is not None]


def compare(before, after, gone=(), new=()):
    """Raises AssertionError unless what stayed of the vocabulary is as it was. Returns the largest difference."""
    (old, old_tokenizer), (now, tokenizer) = before, after
    a, b = old_tokenizer.get_vocab(), tokenizer.get_vocab()
    assert set(a) - set(b) == set(gone), f"gone: {set(a) - set(b)}"
    assert set(b) - set(a) == set(new), f"new: {set(b) - set(a)}"
    assert len(tokenizer) == len(b) and max(b.values()) < now.config.vocab_size
    rows = now.get_input_embeddings().weight.shape[0]
    assert rows == now.config.vocab_size == now.get_output_embeddings().weight.shape[0]
    for role in ("pad", "bos", "eos", "cls", "sep", "mask", "unk"):
        assert getattr(old_tokenizer, f"{role}_token") == getattr(tokenizer, f"{role}_token"), role
        x, y = getattr(old.config, f"{role}_token_id", None), getattr(now.config, f"{role}_token_id", None)
        if x is not None:
            names = {i: t for t, i in a.items()}
            assert names[x] == {i: t for t, i in b.items()}[y], f"{role}_token_id"
    common = sorted(set(a) & set(b))
    from_ids, to_ids = [a[t] for t in common], [b[t] for t in common]
    worst = 0.0
    used = 0
    for text in TEXTS:
        x, y = old_tokenizer(text)["input_ids"], tokenizer(text)["input_ids"]
        names = old_tokenizer.convert_ids_to_tokens(x)
        if set(names) & set(gone):
            continue
        used += 1
        assert names == tokenizer.convert_ids_to_tokens(y), f"{names} {tokenizer.convert_ids_to_tokens(y)}"
        worst = max(worst, float(np.abs(logits(old, x)[:, from_ids] - logits(now, y)[:, to_ids]).max()))
    assert used > 0 and worst <= 2e-6, f"{used} texts, logits differ by {worst}"
    for left, right in zip(vocabulary_tensors(old), vocabulary_tensors(now), strict=True):
        assert np.array_equal(left[from_ids], right[to_ids]), "rows that stayed differ"
    return worst


def new_rows(old, tokenizer, how, tokens):
    """What `how` makes of every tensor, in double; nothing for random ones."""
    vocabulary = tokenizer.get_vocab()
    assigned = sorted(set(vocabulary.values()))
    rows = []
    for table in vocabulary_tensors(old):
        if how == "mean":
            rows.append([table[assigned].mean(0)] * len(tokens))
        elif how == "zero":
            rows.append([np.zeros_like(table[0])] * len(tokens))
        elif how.startswith("copy:"):
            rows.append([table[vocabulary[how[5:]]]] * len(tokens))
        elif how.startswith("compound:"):
            rows.append([table[[vocabulary[t] for t in how[9:].split(",")]].mean(0)] * len(tokens))
        elif how == "subword":
            rows.append([table[tokenizer(t, add_special_tokens=False)["input_ids"]].mean(0) for t in tokens])
    return rows


def check_add(run, before, work, name):
    old, old_tokenizer = before
    words = [t for t in old_tokenizer.get_vocab() if t.isalpha() and t.islower()][:2]
    tokens = ["kingsea", "oldrain", "windqueen"]
    for how in ["mean", "zero", f"copy:{words[0]}", f"compound:{words[0]},{words[1]}", "subword", "random", "cov"]:
        out = work / f"add-{how.split(':')[0]}"
        run("add", work / "in", *tokens, "--init", how, "--multiple", "4", "-o", out)
        after = load(out)
        worst = compare(before, after, new=tokens)
        now, tokenizer = after
        assert now.config.vocab_size % 4 == 0
        ids = [tokenizer.get_vocab()[t] for t in tokens]
        assert ids == list(range(len(old_tokenizer), len(old_tokenizer) + 3)), f"ids {ids}"
        for token, i in zip(tokens, ids):
            assert i in tokenizer(f"the {token} and")["input_ids"], f"'{token}' is not found in text"
        for tensor, rows in zip(vocabulary_tensors(now), new_rows(old, old_tokenizer, how, tokens)):
            difference = np.abs(tensor[ids] - np.array(rows)).max()
            assert difference < 1e-8, f"new rows differ by {difference}"
        print(f"ok   {name} add --init {how}: {worst:.1e}")


def check_others(run, before, work, name):
    old, tokenizer = before
    vocabulary = tokenizer.get_vocab()
    special = set(tokenizer.all_special_tokens)
    used = {t for text in TEXTS[:2] for t in tokenizer.tokenize(text)}
    in_merges = name in ("roberta", "gpt2")
    spare = sorted(t for t in vocabulary if t not in used | special and len(t) > 1)
    size = len(tokenizer)
    rows = old.config.vocab_size
    # Merges of a byte-pair model need their tokens: an added one can go.
    if in_merges:
        failed = run("remove", work / "in", spare[0], "-o", work / "refused", check=False)
        assert failed.returncode == 3 and not (work / "refused").exists(), failed.stderr
        print(f"ok   {name} remove is refused: {failed.stderr.strip()[-90:]}")
        run("remove", work / "add-zero", "oldrain", "-o", work / "remove")
        worst = compare(load(work / "add-zero"), load(work / "remove"), gone=["oldrain"])
    else:
        run("remove", work / "in", *spare[:3], "-o", work / "remove")
        worst = compare(before, load(work / "remove"), gone=spare[:3])
    print(f"ok   {name} remove: {worst:.1e}")
    keep = [t for t in vocabulary if t not in spare[:5]] if not in_merges else list(vocabulary)
    (work / "keep.txt").write_text("".join(f"{t}\n" for t in keep))
    run("keep", work / "in", f"@{work / 'keep.txt'}", "--as", "tokens", "-o", work / "keep")
    worst = compare(before, load(work / "keep"), gone=[] if in_merges else spare[:5])
    assert load(work / "keep")[0].config.vocab_size == len(set(keep) | special)
    print(f"ok   {name} keep: {worst:.1e}")
    order = np.random.default_rng(1).permutation(size).tolist()
    # RoBERTa counts positions from <pad>; transformers knows the number of ALBERT's <unk>.
    if name.startswith(("roberta", "albert")):
        order.remove(1)
        order.insert(1, 1)
    (work / "order.txt").write_text("".join(f"{i}\n" for i in order))
    run("permute", work / "in", f"@{work / 'order.txt'}", "-o", work / "permute")
    after = load(work / "permute")
    worst = compare(before, after)
    names = {i: t for t, i in vocabulary.items()}
    assert all(after[1].get_vocab()[names[i]] == at for at, i in enumerate(order)), "the order is another"
    print(f"ok   {name} permute: {worst:.1e}")
    for to, expected in ((size, size), (rows + 1, -(-(rows + 1) // 64) * 64)):
        out = work / f"resize-{to}"
        run("resize", work / "in", str(to), *(["--multiple", "64"] if to > rows else []), "-o", out)
        after = load(out)
        assert after[0].config.vocab_size == expected
        worst = compare(before, after)
        print(f"ok   {name} resize {to}: {worst:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--only")
    options = parser.parse_args()

    def run(command, *arguments, check=True):
        done = subprocess.run([options.bin_dir / "embed-fix", command, *map(str, arguments), *(["--verify"] if check else [])],
                              capture_output=True, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"{command} {arguments}: {done.returncode} {done.stderr}")
        return done

    bad = 0
    for name, make in MAKERS.items():
        if options.only and name != options.only:
            continue
        for tied in (True, False):
            torch.manual_seed(7)
            label = f"{name}{'' if tied else ' untied'}"
            with tempfile.TemporaryDirectory() as temporary:
                work = pathlib.Path(temporary)
                folder = work / "in"
                folder.mkdir()
                model = make(folder, tied, 2)
                for parameter in model.parameters():
                    parameter.data.normal_(0, 0.1)
                model.tie_weights()
                model.save_pretrained(folder)
                before = load(folder)
                for check in (check_add, check_others):
                    try:
                        check(run, before, work, label if check is check_add else name)
                    except AssertionError as error:
                        print(f"FAIL {label} {check.__name__}: {error}")
                        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
