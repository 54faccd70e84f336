#!/usr/bin/env python3
"""Statistics of attention heads in numpy, from what transformers computes.

    attention_stats.py make
        writes tests/data/attn_probe/CASE.json from the tiny models of tests/data/model, in float64
    attention_stats.py compare STATS.jsonl MODEL TEXT [--lines N] [--rank N] [--tolerance X]
        prints per field the largest difference from `attn-probe stats MODEL --json --pairs < TEXT`

Maps and states are output_attentions and output_hidden_states; the partition function comes from queries
and keys, taken by hooks on the layers that make them. A difference is |a - b| / max(1, |b|). Exit 1 if one
exceeds the tolerance (1e-5; ten times that for standard errors; of `sink` what weights within 1e-5 of its
threshold can make), or counts differ. `token_9` is the field of the token with the id 9. `make` takes ids divisible by 5 as special and ids
divisible by 7 as punctuation; lines of records.jsonl with `pos` are left out. `compare` runs in float32 as
people do, with sums in float64, and leaves out lines that are empty or too long (--policy skip). Versions: torch 2.15.0, transformers 5.24.0, numpy 2.4.6. HF_HUB_OFFLINE=1.
"""

import argparse
import collections
import json
import math
import pathlib
import sys
import unicodedata

import numpy as np
import torch
import transformers as tr

import model_runs as runs

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
CASES = ("bert", "gpt2", "roberta")
SINK = 0.3
NEAR = 2


def entropy(p):
    """Of the last axis, nats."""
    return -(p * np.log(np.maximum(p, 1e-300))).sum(-1)


class Scores:
    """Scores s_ij of every layer of one run, from queries and keys: (heads, n, n)."""

    def __init__(self, model):
        self.config = model.config
        self.made = {}
        for name, module in model.named_modules():
            if name.endswith(("attention.self.query", "attention.self.key", "attn.c_attn")):
                module.register_forward_hook(lambda m, i, out, name=name: self.made.__setitem__(name, out))

    def heads_of(self, x):
        n, width = x.shape[1:]
        heads = self.config.num_attention_heads
        return x[0].double().numpy().reshape(n, heads, width // heads).transpose(1, 0, 2)

    def layers(self):
        """In the order of the layers, which is that of the hooks."""
        made = list(self.made.items())
        self.made = {}
        if made[0][0].endswith("c_attn"):
            pairs = [torch.chunk(out, 3, dim=-1)[:2] for _, out in made]
        else:
            pairs = [(q, k) for (_, q), (_, k) in zip(made[0::2], made[1::2])]
        result = []
        for query, key in pairs:
            q, k = self.heads_of(query), self.heads_of(key)
            result.append(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]))
        return result


def ranks(x):
    values = np.linalg.svd(x, compute_uv=False)
    share = values / values.sum()
    return float((values > 1e-6 * values[0]).sum()), float(np.exp(entropy(share)))


def row_fields(p, ids, special, punctuation, seen):
    """Per field the numbers of the rows of a map (n, n); NaN: left out."""
    n = len(ids)
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    h = entropy(p)
    visible = seen.sum(-1)
    away, step = np.abs(j - i), j - i
    distance, offset = (p * away).sum(-1), (p * step).sum(-1)
    same = (ids[:, None] == ids[None, :]) & (j < i)
    after = np.zeros((n, n), bool)
    after[:, 1:] = same[:, :-1]
    after &= j < i
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(visible > 1, h / np.log(visible), np.nan)

    def mass_on(keys):
        return np.where(keys.any(-1), (p * keys).sum(-1), np.nan)

    return {
        "entropy": h, "entropy_relative": relative, "support": np.exp(h),
        "distance": distance, "distance_spread": np.sqrt((p * (away - distance[:, None]) ** 2).sum(-1)),
        "offset": offset, "offset_spread": np.sqrt((p * (step - offset[:, None]) ** 2).sum(-1)),
        "diagonal": np.diagonal(p), "previous": np.diagonal(p, -1), "next": np.diagonal(p, 1), "first": p[:, 0],
        "last": p[:, -1], "token_9": mass_on(np.broadcast_to(ids == 9, (n, n))),
        "special": p @ special, "punctuation": p @ punctuation, "max_weight": p.max(-1),
        "sparsity": p.sum(-1) ** 2 / (visible * (p**2).sum(-1)),
        "induction": mass_on(after), "duplicate": mass_on(same), "near": (p * (away <= NEAR)).sum(-1),
    }


def sentence_fields(p):
    """Per field one number of a map (n, n)."""
    column, row = p.std(0), p.std(1)
    return {
        "sink": (p > SINK).mean(0).max(), "d1": column.mean(), "d2": column.std(), "row_std": row.mean(), "d3": row.std(),
        "mi": entropy(p.mean(0)) - entropy(p).mean(),
    }


class Totals:
    def __init__(self):
        self.values = collections.defaultdict(list)  # (layer, head, field): numbers
        self.points = collections.defaultdict(list)  # (layer, head): (log mean visible, log mean Z)
        self.states = collections.defaultdict(list)  # (state, field): numbers

    def put(self, layer, head, field, numbers):
        numbers = np.atleast_1d(np.asarray(numbers, np.float64))
        self.values[layer, head, field].append(numbers[~np.isnan(numbers)])

    def add(self, ids, special, punctuation, maps, scores, states, causal, ranked):
        n = len(ids)
        seen = np.tril(np.ones((n, n), bool)) if causal else np.ones((n, n), bool)
        for layer, (heads, s) in enumerate(zip(maps, scores)):
            heads = heads / heads.sum(-1, keepdims=True)
            count = len(heads)
            own = [entropy(p) for p in heads]
            if layer == 0:
                lowest = heads
                for h in range(count):
                    for name in ("below_cosine", "below_js", "lowest_cosine", "lowest_js"):
                        self.put(layer, h, name, [])
            else:
                for name, other in (("below", below), ("lowest", lowest)):
                    for h in range(count):
                        p, q = heads[h], other[h]
                        self.put(layer, h, name + "_cosine", (p * q).sum() / np.sqrt((p * p).sum() * (q * q).sum()))
                        self.put(layer, h, name + "_js", (entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2).mean())
            below = heads
            js = np.zeros((count, count))
            for h in range(count):
                for g in range(h + 1, count):
                    js[h, g] = js[g, h] = (entropy((heads[h] + heads[g]) / 2) - (own[h] + own[g]) / 2).mean()
            for h, p in enumerate(heads):
                for field, numbers in row_fields(p, ids, special, punctuation, seen).items():
                    self.put(layer, h, field, numbers)
                for field, number in sentence_fields(p).items():
                    self.put(layer, h, field, number)
                if count > 1:
                    self.put(layer, h, "js", js[h].sum() / (count - 1))
                for g in range(count):
                    if g != h:
                        self.put(layer, h, f"js_to.{g}", js[h, g])
                z = np.where(seen, np.exp(s[h]), 0).sum(-1)
                self.points[layer, h].append((np.log(seen.sum(-1).mean()), np.log(z.mean())))
                if ranked:
                    for name, matrix in (("map", p),) + ((("logits", s[h]),) if seen.all() else ()):
                        numeric, effective = ranks(matrix)
                        self.put(layer, h, name + "_rank", numeric)
                        self.put(layer, h, name + "_effective_rank", effective)
        for state, x in enumerate(states):
            unit = x / np.linalg.norm(x, axis=1, keepdims=True)
            self.states[state, "residual"].append(np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x))
            if n > 1:
                self.states[state, "cosine"].append(((unit.sum(0) ** 2).sum() - n) / (n * (n - 1)))

    def lines(self):
        """As `attn-probe stats --json --pairs` prints them."""
        layers = 1 + max(layer for layer, _, _ in self.values)
        heads = 1 + max(head for _, head, _ in self.values)
        out = [{"layer": None, "head": None, **self.state(0)}]
        for layer in range(layers):
            for head in range(heads):
                line = {"layer": layer, "head": head}
                for (at, of, field), parts in self.values.items():
                    if (at, of) != (layer, head) or field.startswith("js_to"):
                        continue
                    line[field] = summary(np.concatenate(parts))
                line["partition_slope"] = slope(np.array(self.points[layer, head]))
                line.update(self.state(layer + 1))
                line["js_to"] = [0.0 if g == head else float(np.mean(self.values[layer, head, f"js_to.{g}"]))
                                 for g in range(heads)]
                out.append(line)
        return out

    def state(self, state):
        return {field: summary(np.array(self.states[state, field])) for field in ("residual", "cosine")}


def summary(x):
    n = len(x)
    return {"n": n, "mean": float(x.mean()) if n else None,
            "se": float(x.std(ddof=1) / math.sqrt(n)) if n > 1 else None}


def slope(points):
    x, y = points.T
    n = len(x)
    dx, dy = x - x.mean(), y - y.mean()
    if (x == x[0]).all():
        return {"n": n, "mean": None, "se": None}
    xx, xy, yy = (dx * dx).sum(), (dx * dy).sum(), (dy * dy).sum()
    rest = max(0.0, yy - xy * xy / xx)
    return {"n": n, "mean": float(xy / xx), "se": math.sqrt(rest / (n - 2) / xx) if n > 2 else None}


def run(model, scores, ids, segments=None):
    extra = {"token_type_ids": torch.tensor([segments])} if segments is not None else {}
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]), output_attentions=True, output_hidden_states=True, **extra)
    maps = [a[0].double().numpy() for a in out.attentions]
    states = [h[0].double().numpy() for h in out.hidden_states]
    return maps, scores.layers(), states


def make():
    folder = DATA / "attn_probe"
    folder.mkdir(exist_ok=True)
    for case in CASES:
        source = DATA / "model" / case
        model = tr.AutoModel.from_pretrained(source, dtype=torch.float64, attn_implementation="eager").double().eval()
        scores = Scores(model)
        totals = Totals()
        for text in (source / "records.jsonl").read_text().splitlines():
            record = json.loads(text)
            if "pos" in record:
                continue
            ids = np.array(record["ids"])
            with runs.doubled():
                maps, made, states = run(model, scores, record["ids"], record.get("seg"))
            totals.add(ids, (ids % 5 == 0) * 1.0, (ids % 7 == 0) * 1.0, maps, made, states, case == "gpt2", True)
        lines = [json.dumps(line, separators=(",", ":")) for line in rounded(totals.lines())]
        (folder / (case + ".json")).write_text("".join(line + "\n" for line in lines))
        print(case, len(lines), "lines")


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def is_punctuation(part):
    """Of BERT's pre-tokenizer: ASCII symbols and category P; spaces do not count."""
    part = "".join(part.split())
    ascii_symbols = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    return bool(part) and all(c in ascii_symbols or unicodedata.category(c).startswith("P") for c in part)


def compare(o):
    tokenizer = tr.AutoTokenizer.from_pretrained(o.model)
    model = tr.AutoModel.from_pretrained(o.model, dtype=torch.float32, attn_implementation="eager").eval()
    scores = Scores(model)
    totals = Totals()
    near = collections.Counter()
    with open(o.text, encoding="utf-8") as text:
        for number, line in enumerate(text):
            if number == o.lines:
                break
            line = line.rstrip("\n")
            encoded = tokenizer(line, return_offsets_mapping=True)
            ids = np.array(encoded["input_ids"])
            if len(ids) > model.config.max_position_embeddings or not line:
                continue
            special = np.isin(ids, tokenizer.all_special_ids)
            punctuation = np.array([not s and is_punctuation(line[b:e])
                                    for s, (b, e) in zip(special, encoded["offset_mapping"])])
            maps, made, states = run(model, scores, encoded["input_ids"])
            for layer, heads in enumerate(maps):
                for head, p in enumerate(heads):
                    near[layer, head] += (np.abs(p - SINK) < 1e-5).any(1).mean()
            totals.add(ids, special * 1.0, punctuation * 1.0, maps, made, states,
                       model.config.model_type == "gpt2", number < o.rank)
    found = [json.loads(line) for line in open(o.stats, encoding="utf-8")]
    found = {(line["layer"], line["head"]): line for line in found if "layer" in line}
    worst = collections.defaultdict(float)
    bad = False
    for line in totals.lines():
        other = found[line["layer"], line["head"]]
        for field, value in line.items():
            if field in ("layer", "head", "token_9"):
                continue
            if field == "js_to":
                worst[field] = max([worst[field]] + [abs(a - b) for a, b in zip(value, other[field])])
                continue
            if value["n"] != other[field]["n"]:
                print(f"{line['layer']} {line['head']} {field}: n {other[field]['n']}, expected {value['n']}")
                bad = True
            for part in ("mean", "se"):
                a, b = other[field][part], value[part]
                if (a is None) != (b is None):
                    print(f"{line['layer']} {line['head']} {field}: {part} {a}, expected {b}")
                    bad = True
                elif b is not None:
                    key = field if part == "mean" else field + " se"
                    # A weight at the threshold falls on either side of it by rounding.
                    excused = near[line["layer"], line["head"]] / value["n"] if field == "sink" else 0
                    worst[key] = max(worst[key], max(0, abs(a - b) / max(1, abs(b)) - excused))
    for field, difference in worst.items():
        if not field.endswith(" se"):
            print(f"{field:24}{difference:10.1e}{worst.get(field + ' se', 0):10.1e}")
    print(f"largest{max(worst.values()):27.1e}")
    beyond = [f for f, x in worst.items() if x > o.tolerance * (10 if f.endswith(" se") else 1)]
    sys.exit(1 if bad or beyond else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    commands.add_parser("make").set_defaults(run=lambda o: make())
    c = commands.add_parser("compare")
    c.add_argument("stats")
    c.add_argument("model")
    c.add_argument("text")
    c.add_argument("--lines", type=int, default=-1)
    c.add_argument("--rank", type=int, default=0)
    c.add_argument("--tolerance", type=float, default=1e-5)
    c.set_defaults(run=compare)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
