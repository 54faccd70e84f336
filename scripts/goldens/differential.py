#!/usr/bin/env python3
"""Damages files and compares who reads them: `ckpt check`, `ckpt hash` and `tok encode` against the official readers.

  differential.py BIN_DIR [--count N] [--seed S] [--only FORMAT,…] [--python PYTHON] [--tensorflow PYTHON] [--keep FOLDER]

--count N            damaged files in all [10000]
--python PYTHON      one with safetensors, torch, numpy, gguf and tokenizers [this one]
--tensorflow PYTHON  one with tensorflow; without it that format is left out
--keep FOLDER        keeps an example of each class of differences

Prints a table of outcomes by format, then every class of differences with its count and its explanation, as the page
lib/store/README.md has them. Explanations stand in differential.tsv: format, who accepts, a pattern of `our rule | their
error` (or of what differs), the reason. Exit code 1 if a class has none. Run with safetensors 0.8.0, torch 2.15.0, numpy 2.4.6,
gguf 0.19.0, tokenizers 0.23.3, tensorflow-cpu 2.21.0.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import differential_mutants
from differential_peers import TEXTS

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parents[1] / "tests" / "data"
SEEDS = {
    "safetensors": "safetensors/good/*.safetensors",
    "torch": "torch/good/*.[pl][te]*",
    "npy": "npy/good/*.npy",
    "npz": "npy/good/*.npz",
    "gguf": "gguf/good/*.gguf",
    "tensorflow": "tensorflow/good/*.index",
    "tokenizer": "text/tokenizers/*[a-z].json",
}
SIDES = ["same", "different", "only ours", "only theirs", "both refuse"]


class Peer:
    """The official reader, under the Python that has it."""

    def __init__(self, python, kind):
        command = [python, str(HERE / "differential_peers.py"), kind]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit(f"differential: {' '.join(command)} does not start")

    def read(self, path):
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, errors="replace")
    if done.returncode not in (0, 1, 3):
        sys.exit(f"differential: {' '.join(command)}: exit code {done.returncode}: {done.stderr}")
    return done


def lines_of(text):
    """One JSON object a line; U+2028 ends no line."""
    return [json.loads(line) for line in text.split("\n") if line]


def ours(bin_dir, kind, path):
    """As a peer answers; an error is `rule: message`."""
    if kind == "tokenizer":
        done = run([f"{bin_dir}/tok", "encode", path, "-q"], "\n".join(TEXTS) + "\n")
        if done.returncode != 0:
            return {"error": "tokenizer: " + done.stderr.strip()[:400]}
        return {"ids": [[int(id) for id in line.split()] for line in done.stdout.split("\n")[:len(TEXTS)]]}
    done = run([f"{bin_dir}/ckpt", "check", path, "--json", "-q"])
    lines = lines_of(done.stdout)
    if not lines:
        return {"error": "refused: " + done.stderr.strip()}
    if lines[0]["result"] != "ok":
        return {"error": f"{lines[0]['rule']}: {lines[0]['message']}"}
    done = run([f"{bin_dir}/ckpt", "hash", path, "--json"])
    if done.returncode != 0:
        return {"tensors": {}, "unreadable": done.stderr.strip()}
    return {"tensors": {t["name"]: [t["dtype"], t["shape"], t["hash"]] for t in lines_of(done.stdout)}}


def difference(mine, theirs):
    """What differs between two that accept; nothing if nothing does."""
    if "unreadable" in mine:
        return "checked, but not readable: " + mine["unreadable"]
    if "ids" in theirs:
        return "" if mine["ids"] == theirs["ids"] else "other ids"
    a, b = mine["tensors"], theirs["tensors"]
    if set(a) != set(b):
        return "other names"
    for name, (kind, shape, digest) in b.items():
        if a[name][1] != shape:
            return "other shape"
        if digest and a[name][0] != kind:
            return f"other type: {a[name][0]} and {kind}"
        if digest and a[name][2] != digest:
            return "other values"
    return ""


def compare(mine, theirs):
    """Side, and a text that says of what class it is."""
    if "error" in mine or "error" in theirs:
        side = "both refuse" if "error" in mine and "error" in theirs else "only theirs" if "error" in mine else "only ours"
        return side, f"{mine.get('error', '-')} | {theirs.get('error', '-')}"
    what = difference(mine, theirs)
    return ("different", what) if what else ("same", "")


def short(text):
    """One text for all of a class: without numbers, names and paths."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|[0-9a-f]{6,}|-?[0-9]+", "…", text)
    return text[:140]


def place(folder, kind, seed, data):
    """Writes the damaged file where a reader expects it; the path."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if kind == "tensorflow":
        for part in seed.parent.glob(seed.stem + ".data-*"):
            shutil.copy(part, folder)
    path = folder / ("tokenizer.json" if kind == "tokenizer" else seed.name)
    path.write_bytes(data)
    return path


def explanations():
    rows = [line.split("\t") for line in (HERE / "differential.tsv").read_text().splitlines()[1:]]
    return [(kind, side, re.compile(pattern, re.S), reason) for kind, side, pattern, reason in rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(SEEDS))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--tensorflow")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    kinds = [kind for kind in options.only.split(",") if kind != "tensorflow" or options.tensorflow]
    known = explanations()
    table = {kind: collections.Counter() for kind in kinds}
    classes = collections.Counter()
    unknown = collections.Counter()
    folder = pathlib.Path(tempfile.mkdtemp())
    for kind in kinds:
        generator = random.Random(f"{options.seed} {kind}")
        peer = Peer(options.tensorflow if kind == "tensorflow" else options.python, kind)
        seeds = sorted(DATA.glob(SEEDS[kind]))
        for i in range(options.count // len(kinds)):
            seed = generator.choice(seeds)
            data, how = differential_mutants.mutant(kind, seed.read_bytes(), generator)
            path = place(folder / "case", kind, seed, data)
            side, text = compare(ours(options.bin_dir, kind, str(path)), peer.read(path))
            table[kind][side] += 1
            if side in ("same", "both refuse"):
                continue
            reason = next((r for k, s, p, r in known if k in (kind, "*") and s == side and p.search(text)), None)
            (classes if reason else unknown)[kind, side, reason or short(text)] += 1
            if options.keep:
                name = re.sub(r"[^A-Za-z0-9]+", "-", f"{kind} {side} {reason or short(text)}")[:120]
                if not (options.keep / name).exists():
                    shutil.copytree(folder / "case", options.keep / name)
                    (options.keep / name / "how").write_text(f"{seed.name}: {how}\n{text}\n")
    shutil.rmtree(folder)
    print("| format | " + " | ".join(SIDES) + " |\n| --- |" + " ---: |" * len(SIDES))
    for kind in kinds:
        print(f"| {kind} | " + " | ".join(str(table[kind][side]) for side in SIDES) + " |")
    print("\n| format | accepts | files | why |\n| --- | --- | ---: | --- |")
    for (kind, side, reason), count in sorted(classes.items(), key=lambda c: (c[0][0], c[0][1], -c[1])):
        print(f"| {kind} | {side} | {count} | {reason} |")
    for (kind, side, text), count in sorted(unknown.items(), key=lambda c: (c[0][0], c[0][1], -c[1])):
        print(f"unexplained: {kind}: {side}: {count}: {text}")
    sys.exit(1 if unknown else 0)


if __name__ == "__main__":
    main()
