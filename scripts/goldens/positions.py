#!/usr/bin/env python3
"""Loads what `embed-fix positions`, `types`, `tie` and `untie` write in transformers, and compares logits.

    python scripts/goldens/positions.py [BIN_DIR]        (build/bin)

Tiny random BERT, RoBERTa, XLM-R, ALBERT, ELECTRA, DistilBERT and GPT-2 are saved by transformers, some with the buffers that
old files have. For every way: the output loads without missing or unexpected tensors, gives the same logits for texts within the
old length (not interpolate, which moves them), runs at the new length and not one token further, and its table is what numpy
makes of the old one by the published formula. One line a case; exit 1 if one is bad. Run with transformers 5.23.0, torch 2.15.0,
numpy 2.4.6, safetensors 0.8.0 on 2026-11-22.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy
import torch
import transformers as tr
from safetensors.torch import load_file, save_file

tr.logging.set_verbosity_error()
tr.utils.logging.disable_progress_bar()

ROOT = pathlib.Path(__file__).resolve().parents[2]
OLD = 12
BERT = dict(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
            max_position_embeddings=OLD)
WITH_OFFSET = BERT | dict(max_position_embeddings=OLD + 2, pad_token_id=1, type_vocab_size=1)
# name, class, config, rows in front of the first position, buffers of old files
CASES = [
    ("bert", tr.BertForMaskedLM, tr.BertConfig(**BERT), 0, True),
    ("bert-untied", tr.BertForMaskedLM, tr.BertConfig(**BERT, tie_word_embeddings=False), 0, False),
    ("roberta", tr.RobertaForMaskedLM, tr.RobertaConfig(**WITH_OFFSET), 2, True),
    ("xlm-roberta", tr.XLMRobertaForMaskedLM, tr.XLMRobertaConfig(**WITH_OFFSET), 2, False),
    ("albert", tr.AlbertForMaskedLM, tr.AlbertConfig(**BERT, embedding_size=13), 0, False),
    ("electra", tr.ElectraForMaskedLM, tr.ElectraConfig(**BERT, embedding_size=13), 0, False),
    ("distilbert", tr.DistilBertForMaskedLM, tr.DistilBertConfig(
        vocab_size=61, dim=24, n_layers=2, n_heads=3, hidden_dim=20, max_position_embeddings=OLD), 0, False),
    ("gpt2", tr.GPT2LMHeadModel, tr.GPT2Config(
        vocab_size=61, n_positions=OLD, n_embd=24, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=1), 0, True),
]
TABLES = ("position_embeddings.weight", "wpe.weight")


def hierarchical(p, n, alpha):
    u = (p - alpha * p[0]) / (1 - alpha)
    return numpy.stack([p[k] if k < len(p) else alpha * u[k // len(p)] + (1 - alpha) * u[k % len(p)] for k in range(n)])


def interpolated(p, n):
    places = numpy.arange(n) * (len(p) - 1) / (n - 1)
    return numpy.stack([numpy.interp(places, numpy.arange(len(p)), p[:, d]) for d in range(p.shape[1])], axis=1)


WAYS = {
    "truncate": (7, lambda p, n: p[:n]),
    "repeat": (31, lambda p, n: p[numpy.arange(n) % len(p)]),
    "last": (31, lambda p, n: p[numpy.minimum(numpy.arange(n), len(p) - 1)]),
    "interpolate": (31, interpolated),
    "hierarchical": (OLD * OLD, lambda p, n: hierarchical(p, n, 0.4)),
    "hierarchical:0.2": (50, lambda p, n: hierarchical(p, n, 0.2)),
}


def save(name, model_class, config, buffers, folder):
    torch.manual_seed(7)
    model = model_class(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    path = os.path.join(folder, "model.safetensors")
    tensors = load_file(path)
    if buffers:
        table = next(k for k in tensors if k.endswith(TABLES))
        rows = len(tensors[table])
        if name == "gpt2":
            for layer in range(config.n_layer):
                tensors[f"transformer.h.{layer}.attn.bias"] = torch.ones(rows, rows).tril()[None, None].to(torch.uint8)
        else:
            stem = table.removesuffix("position_embeddings.weight")
            tensors[stem + "position_ids"] = torch.arange(rows)[None]
            tensors[stem + "token_type_ids"] = torch.zeros(1, rows, dtype=torch.int64)
        save_file(tensors, path, metadata={"format": "pt"})
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump({"model_max_length": OLD}, file)


def load(model_class, folder):
    model, info = model_class.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    unexpected = [k for k in info["unexpected_keys"] if not k.endswith(("position_ids", "token_type_ids", ".attn.bias"))]
    assert not info["missing_keys"] and not unexpected and not info["mismatched_keys"], info
    return model.eval()


def logits(model, length):
    ids = (torch.arange(length) * 7 % 50 + 5)[None]
    with torch.no_grad():
        return model(input_ids=ids).logits


def runs_at(model, length):
    try:
        return bool(torch.isfinite(logits(model, length)).all())
    except (IndexError, RuntimeError):
        return False


def table_of(folder):
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    return next(v for k, v in tensors.items() if k.endswith(TABLES)), tensors


def check_way(model_class, folder, out, way, offset, fix):
    length, formula = WAYS[way]
    fix("positions", folder, str(length), "--how", way, "-o", out)
    before, after = load(model_class, folder), load(model_class, out)
    short = min(length, OLD)
    same = way == "interpolate" or torch.equal(logits(before, short), logits(after, short))
    long = runs_at(after, length) and not runs_at(after, length + 1)
    old, new = table_of(folder)[0].double().numpy(), table_of(out)[0].double().numpy()
    expected = numpy.concatenate([old[:offset], formula(old[offset:], length)])
    error = numpy.abs(new - expected).max() if new.shape == expected.shape else numpy.inf
    buffers = True
    for name, tensor in table_of(out)[1].items():
        if name.endswith("position_ids"):
            buffers &= tensor.tolist() == [list(range(len(new)))]
        if name.endswith(".attn.bias"):
            buffers &= torch.equal(tensor, torch.ones(length, length).tril()[None, None].to(torch.uint8))
    with open(os.path.join(out, "tokenizer_config.json"), encoding="utf-8") as file:
        limit = json.load(file)["model_max_length"] == length
    return dict(same=same, long=long, table=bool(error <= 1e-6), buffers=buffers, limit=limit)


def check_types(model_class, folder, out, fix):
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    types = next((len(v) for k, v in tensors.items() if k.endswith("token_type_embeddings.weight")), None)
    if types is None:
        return {}
    fix("types", folder, str(types + 2), "--init", "copy:0", "-o", out)
    before, after = load(model_class, folder), load(model_class, out)
    ids = torch.arange(5, 13)[None]
    with torch.no_grad():
        new = after(input_ids=ids, token_type_ids=torch.full_like(ids, types + 1)).logits
        old = before(input_ids=ids, token_type_ids=torch.zeros_like(ids)).logits
    return dict(types=torch.equal(old, new), same=torch.equal(logits(before, 8), logits(after, 8)))


def check_head(model_class, folder, work, fix):
    untied, tied = os.path.join(work, "untied"), os.path.join(work, "tied")
    before = load(model_class, folder)
    expected = logits(before, 8)
    results = {}
    if before.config.tie_word_embeddings:
        fix("untie", folder, "-o", untied)
        fix("tie", untied, "-o", tied)
        a, b = load(model_class, untied), load(model_class, tied)
        results["untied"] = torch.equal(logits(a, 8), expected)
        results["own"] = a.get_output_embeddings().weight.data_ptr() != a.get_input_embeddings().weight.data_ptr()
    else:
        refused = subprocess.run(fix.command("tie", folder, "-o", tied), capture_output=True, check=False)
        results["refused"] = refused.returncode == 3
        fix("tie", folder, "-o", tied, "--drop")
        b = load(model_class, tied)
        before.get_output_embeddings().weight = before.get_input_embeddings().weight
        expected = logits(before, 8)
    results["tied"] = torch.equal(logits(b, 8), expected)
    results["one"] = b.get_output_embeddings().weight.data_ptr() == b.get_input_embeddings().weight.data_ptr()
    return results


class Fix:
    def __init__(self, bin_dir):
        self.tool = os.path.join(bin_dir, "embed-fix")

    def command(self, *arguments):
        return [self.tool, *arguments]

    def __call__(self, *arguments):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def main():
    fix = Fix(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "bin")
    bad = 0
    for name, model_class, config, offset, buffers in CASES:
        with tempfile.TemporaryDirectory() as work:
            folder = os.path.join(work, "in")
            save(name, model_class, config, buffers, folder)
            results = {way: check_way(model_class, folder, os.path.join(work, way.replace(":", "")), way, offset, fix)
                       for way in WAYS}
            results["types"] = check_types(model_class, folder, os.path.join(work, "types"), fix)
            results["head"] = check_head(model_class, folder, work, fix)
        for what, result in results.items():
            good = all(result.values())
            bad += not good
            print(f"{name}\t{what}\t{'ok' if good else 'BAD'}\t{' '.join(f'{k}={v}' for k, v in result.items())}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
