#!/usr/bin/env python3
"""Checks what embed-fix does to tokenizer files, with transformers and tokenizers, and makes
tests/data/vocabulary/: small folders of tokenizers, and for each change the ids that transformers
gives for some lines afterwards.

For every folder and every change (add, remove, permute, rename, keep) embed-fix writes a new folder. Then
  * a line without changed tokens has its old ids, each moved as its token was;
  * a new token in the text is found with its id;
  * the fast tokenizer (tokenizer.json alone), the class of the model, and the folder without
    tokenizer.json give the same ids, where each of them can be loaded;
  * `tok encode` gives them too.

Usage: vocabulary_change.py BUILD_FOLDER
Ran with transformers 5.24.0, tokenizers 0.23.3. Needs no network.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import tokenizers
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "data" / "vocabulary"
CONVERSIONS = ROOT / "tests" / "data" / "text" / "conversions"
BIN = pathlib.Path(sys.argv[1]) / "bin"

# Folder, where it comes from, its class, whether tokenizer.json is part of it, the config to make a
# model of, and the changes with the lines that show them.
CASES = {
    "bert": dict(source="distilbert", cls="BertTokenizer", config="bert", json=True),
    "bert_slow": dict(source="distilbert", cls="BertTokenizer", config="bert", json=False),
    "roberta": dict(source="roberta", cls="RobertaTokenizer", config="roberta", json=True),
    "gpt2_slow": dict(source="roberta_prefix", cls="RobertaTokenizer", config="roberta", json=False),
    "albert": dict(source="albert", cls="AlbertTokenizer", config="albert", json=True),
    "t5": dict(source="t5", cls="T5Tokenizer", config="albert", json=True),
}
KEPT = 4  # how many lines keep their tokens with "keep"
LINES = ["the cat sat", "The cats, the mat and theca", "in the hat don't", "café été naïve x", "中国 the",
         "the <ent> cat", "a<ent>b", "covid the covids", "New York the", "[E1] the [E1]"]


def make_folder(name, case, folder):
    folder.mkdir(parents=True)
    loaded = getattr(transformers, case["cls"]).from_pretrained(str(CONVERSIONS / case["source"]))
    if case["json"]:
        loaded.save_pretrained(folder)
    source = CONVERSIONS / case["source"]
    for file in source.iterdir():
        if file.suffix == ".model" or (case["json"] and file.name == "tokenizer_config.json"):
            continue
        if not (folder / file.name).exists():
            shutil.copy(file, folder / file.name)
    config = json.loads((ROOT / "tests/data/family" / f"{case['config']}-plain.config.json").read_text())
    size = len(loaded)
    for key in list(config):
        if key.endswith("_token_id"):
            del config[key]
    config["vocab_size"] = size + 3
    config["tie_word_embeddings"] = True
    if loaded.pad_token_id is not None:
        config["pad_token_id"] = loaded.pad_token_id
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    return loaded


def run(*args):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, args))}: {done.stderr}")
    return done.stdout


def tokenizers_of(folder, case):
    """All ways to load a folder, by name."""
    out = {}
    if (folder / "tokenizer.json").exists():
        fast = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        out["tokenizer.json"] = lambda text: fast.encode(text, add_special_tokens=True).ids
    loaded = getattr(transformers, case["cls"]).from_pretrained(str(folder))
    out["class"] = lambda text: loaded(text)["input_ids"]
    if (folder / "tokenizer.json").exists() and ((folder / "vocab.txt").exists() or (folder / "merges.txt").exists()):
        slow = folder.parent / (folder.name + "-slow")
        shutil.copytree(folder, slow)
        (slow / "tokenizer.json").unlink()
        other = getattr(transformers, case["cls"]).from_pretrained(str(slow))
        out["without tokenizer.json"] = lambda text: other(text)["input_ids"]
    return out, loaded


def changes_of(loaded, kind):
    """Name, arguments of embed-fix, what becomes of each old id, new tokens."""
    vocab = loaded.get_vocab()
    names = {i: t for t, i in vocab.items()}
    size = max(names) + 1
    ids = list(range(size))
    specials = set(loaded.all_special_ids)
    merged = kind in ("roberta", "gpt2_slow")
    # A token that no merge makes or uses, and that no line needs.
    free = [i for i in ids if i in names and i not in specials and names[i] in ("É", "##ⅷ", "³", "rep", "3000", "line", "¤", "§", "##z", "z")]
    gone = free[:2] or [i for i in ids if i in names and i not in specials][-2:]
    assert gone
    yield "add", ["add", "<ent>", "covid", "New York"], {i: i for i in ids}, ["<ent>", "covid", "New York"]
    kept = [i for i in ids if i not in gone]
    yield "remove", ["remove", *[names[i] for i in gone]], {old: new for new, old in enumerate(kept)}, []
    order = list(reversed(ids))
    # Families with position offsets need the former where it was, classes of Unigram the latter.
    for fixed in sorted({loaded.pad_token_id, loaded.unk_token_id} - {None}):
        order.remove(fixed)
        order.insert(fixed, fixed)
    yield "permute", ["permute", "--as", "tokens", *[names[i] for i in order]], {old: new for new, old in enumerate(order)}, []
    yield "rename", ["rename", f"{names[gone[0]]}=[E1]"], {i: i for i in ids}, ["[E1]"]
    # The tokens of some lines: these keep them, the others fall into smaller ones.
    used = sorted({i for line in LINES[:KEPT] for i in loaded(line)["input_ids"]})
    yield "keep", ["keep", "--as", "tokens", *[names[i] for i in used]], None, []


def check(name, case, work):
    folder = work / name
    before = make_folder(name, case, folder)
    run(BIN / "ckpt", "new", "-q", folder / "config.json", "-o", work / f"{name}-model", "--seed", "3")
    for file in folder.iterdir():
        if file.name != "config.json":
            shutil.copy(file, work / f"{name}-model" / file.name)
    old, _ = tokenizers_of(folder, case)
    out = []
    for what, args, moved, new in changes_of(before, name):
        target = work / f"{name}-{what}"
        run(BIN / "embed-fix", args[0], work / f"{name}-model", *args[1:], "-o", target, "-q")
        ways, loaded = tokenizers_of(target, case)
        vocab = loaded.get_vocab()
        same = LINES if moved else LINES[:KEPT]
        if moved is None:
            moved = {i: vocab[t] for t, i in before.get_vocab().items() if t in vocab}
        lines = []
        for line in LINES:
            results = {way: encode(line) for way, encode in ways.items()}
            results["tok encode"] = [int(x) for x in run(
                "bash", "-c", f'printf "%s\\n" "$1" | {BIN}/tok encode --special {target}', "-", line).split()]
            first = results["class"]
            assert all(r == first for r in results.values()), (name, what, line, results)
            if line in same and not any(t in line for t in ["<ent>", "covid", "New York", "[E1]"]):
                assert first == [moved[i] for i in old["class"](line)], (name, what, line, first)
            for token in new:
                if token in line:
                    assert vocab[token] in first, (name, what, line, token, first)
            lines.append({"text": line, "ids": first})
        out.append({"folder": name, "change": what, "arguments": args[1:], "lines": lines})
        print(name, what, "ways:", ", ".join(results), "lines:", len(lines))
    (OUT / name).mkdir(parents=True)
    for file in folder.iterdir():
        shutil.copy(file, OUT / name / file.name)
    return out


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    cases = []
    with tempfile.TemporaryDirectory() as work:
        for name, case in CASES.items():
            cases += check(name, case, pathlib.Path(work))
    (OUT / "cases.json").write_text(json.dumps(cases, ensure_ascii=False, indent=0) + "\n")


main()
