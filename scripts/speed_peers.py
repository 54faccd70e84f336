#!/usr/bin/env python3
"""Runs the work of scripts/speed in other libraries; scripts/speed starts it. Needs torch and transformers; uses openvino if installed.

Reads one request per line from standard input; answers each with a JSON line: {"peer", "ms", "ms_min", "ms_max"} or {"failed"}.
Each request runs once to warm up, then REPEATS times.

  packages                                         versions
  forward BACKEND DTYPE BxN REPEATS                BERT-base, last hidden states: openvino, sdpa, eager; f32, bf16
  training CASE MODE DTYPE REPEATS                 a step with AdamW of the cases of `bench training`: eager, sdpa, compile
  memory CASE MODE DTYPE                           MiB, as "ms": the most that this process has held after three such steps, of which
                                                   "base" before there was a model. Ask a process that has done nothing else
  objective NAME CASE REPEATS                      the same in f32 with another objective: mlm75 (75 % are predicted), mae (75 % are
                                                   hidden from the encoder), drop (15 % of the tokens are left out of the input)
  attention N REPEATS                              causal attention of 8 heads of 64 columns
  pll DTYPE FOLDER TEXT OUTPUT                     scores of the lines of a text, once
  generate FOLDER IDS NEW REPEATS OUTPUT           greedy texts of a GPT-2, all lines of ids together, each NEW tokens; the new ids

  speed_peers.py --threads N --once FOLDER < TEXT  scores one line and ends: for the time of a start
"""
import argparse
import json
import os
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--once", metavar="FOLDER")
arguments = parser.parse_args()

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # fixed once the libraries are loaded
    os.environ[name] = str(arguments.threads)
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
# Answers alone go to standard output, whatever the libraries print.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def timed(call, repeats):
    call()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e3)
    return {"ms": statistics.median(times), "ms_min": min(times), "ms_max": max(times)}


def torch_module():
    import torch
    torch.set_num_threads(arguments.threads)
    return torch


def packages():
    from importlib import metadata
    found = {}
    for package in ("torch", "transformers", "openvino"):
        try:
            found[package] = metadata.version(package).split("+")[0]
        except metadata.PackageNotFoundError:
            pass
    return found


# --- forward ---

models = {}


def bert(attention):
    torch = torch_module()
    from transformers import BertConfig, BertModel
    if attention not in models:
        torch.manual_seed(1)
        models[attention] = BertModel(BertConfig(attn_implementation=attention), add_pooling_layer=False).eval()
    return models[attention]


def forward(backend, dtype, shape, repeats):
    torch = torch_module()
    batch, length = map(int, shape.split("x"))
    ids = torch.randint(1000, 30522, (batch, length), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(batch, length, dtype=torch.long)
    key = (backend, dtype)
    if backend == "openvino":
        if key not in models:
            import openvino

            class Encoder(torch.nn.Module):
                def __init__(self, model):
                    super().__init__()
                    self.model = model

                def forward(self, input_ids, attention_mask):
                    return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

            example = {"input_ids": torch.full((2, 16), 1000), "attention_mask": torch.ones(2, 16, dtype=torch.long)}
            with torch.no_grad():
                converted = openvino.convert_model(Encoder(bert("sdpa")), example_input=example)
            models[key] = openvino.Core().compile_model(converted, "CPU", {
                "INFERENCE_NUM_THREADS": arguments.threads, "INFERENCE_PRECISION_HINT": dtype, "PERFORMANCE_HINT": "LATENCY",
                "NUM_STREAMS": 1}).create_infer_request()
        feed = [ids.numpy(), mask.numpy()]
        return timed(lambda: models[key].infer(feed, share_inputs=True, share_outputs=True)[0], int(repeats))
    if key not in models:
        models[key] = bert(backend)
        if dtype == "bf16":
            import copy
            models[key] = copy.deepcopy(models[key]).to(torch.bfloat16)

    def run():
        with torch.inference_mode():
            models[key](input_ids=ids, attention_mask=mask)
    return timed(run, int(repeats))


# --- training: the models of apps/bench/training.cpp ---

CASES = {  # layers, width, heads, inner, vocabulary, batch, length, causal, masked, kind
    "mlm_masked": (4, 256, 4, 1024, 30522, 32, 128, False, True, "bert"),
    "mlm_all": (4, 256, 4, 1024, 30522, 32, 128, False, False, "bert"),
    "small64": (2, 256, 4, 1024, 8192, 32, 64, True, False, "gpt"),
    "small512": (2, 256, 4, 1024, 8192, 16, 512, True, False, "gpt"),
    "gau": (4, 256, 1, 512, 8192, 32, 64, False, True, "gau"),
    "bert_base": (12, 768, 12, 3072, 30522, 8, 128, False, True, "bert"),
    "gpt2": (12, 768, 12, 3072, 50257, 4, 64, True, False, "gpt"),
}


def training_model(case, eager):
    torch = torch_module()
    from torch import nn
    from torch.nn import functional as F
    layers, width, heads, inner, vocabulary, _, length, causal, masked, kind = CASES[case]

    def attention(q, k, v):
        if not eager:
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if causal:
            n = q.shape[-2]
            scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), float("-inf"))
        return torch.softmax(scores, -1) @ v

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

        def attend(self, x):
            b, n, _ = x.shape
            q, k, v = self.qkv(x).view(b, n, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            return self.out(attention(q, k, v).transpose(1, 2).reshape(b, n, width))

        def forward(self, x):
            if kind == "gpt":
                x = x + self.attend(self.first(x))
                return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))
            x = self.first(x + self.attend(x))
            return self.second(x + self.down(F.gelu(self.up(x))))

    class GatedUnit(nn.Module):
        def __init__(self, key=128):
            super().__init__()
            self.sizes = (inner, inner, key)
            self.norm = nn.LayerNorm(width)
            self.into, self.out = nn.Linear(width, sum(self.sizes)), nn.Linear(inner, width)
            self.gamma, self.beta = nn.Parameter(torch.ones(2, key)), nn.Parameter(torch.zeros(2, key))

        def forward(self, x):
            u, v, z = F.silu(self.into(self.norm(x))).split(self.sizes, -1)
            return x + self.out(u * attention(z * self.gamma[0] + self.beta[0], z * self.gamma[1] + self.beta[1], v))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.layers = nn.ModuleList(GatedUnit() if kind == "gau" else Layer() for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            if kind == "bert":
                self.dense, self.last = nn.Linear(width, width), nn.LayerNorm(width)
            self.bias = nn.Parameter(torch.zeros(vocabulary))
            for p in self.parameters():
                if p.dim() == 2:
                    nn.init.normal_(p, 0, 0.02)

        def forward(self, ids, where, target):
            x = self.tokens(ids) + self.positions.weight[:ids.shape[1]]
            if kind == "bert":
                x = self.norm(x)
            for layer in self.layers:
                x = layer(x)
            x = x.flatten(0, 1)
            if masked:
                x = x.index_select(0, where)
            x = self.last(F.gelu(self.dense(x))) if kind == "bert" else self.norm(x)
            return F.cross_entropy(F.linear(x, self.tokens.weight, self.bias).float(), target)

    return Model()


steps = {}  # of one case and dtype: the optimizer's state of the next one takes its memory


def training(case, mode, dtype, repeats):
    torch = torch_module()
    for key in [k for k in steps if k[:2] != (case, dtype)]:
        del steps[key]
    key = (case, dtype, mode)
    if key not in steps:
        _, _, _, _, vocabulary, batch, length, _, masked, _ = CASES[case]
        torch.manual_seed(1)
        model = training_model(case, mode == "eager")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        run = torch.compile(model) if mode == "compile" else model
        ids = torch.randint(0, vocabulary, (batch, length))
        count = round(batch * length * 0.15) if masked else batch * length
        where = torch.randperm(batch * length)[:count].sort().values
        target = ids.flatten()[where]

        def step():
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
                loss = run(ids, where, target)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        step()
        steps[key] = step
    return timed(steps[key], int(repeats))


def memory(case, mode, dtype):
    import resource
    torch_module()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    training(case, mode, dtype, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"ms": peak, "ms_min": peak, "ms_max": peak, "base": base}


def objective(name, case, repeats):
    torch = torch_module()
    from torch import nn
    from torch.nn import functional as F
    _, width, _, _, vocabulary, batch, length, _, _, _ = CASES[case]
    torch.manual_seed(1)
    seen = {"mlm": length, "mlm75": length, "drop": round(length * 0.85), "mae": round(length * 0.25)}[name]
    encoder, decoder = training_model(case, False), None
    if name == "mae":  # one layer of half the widths, the tables of the encoder
        CASES["decoder"] = (1, width // 2, CASES[case][2], CASES[case][3] // 2, 1, batch, length, False, True, "bert")
        decoder = training_model("decoder", False)
        decoder.into, decoder.back = nn.Linear(width, width // 2), nn.Linear(width // 2, width)
    parameters = [*encoder.parameters(), *(decoder.parameters() if decoder else ())]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)
    ids = torch.randint(0, vocabulary, (batch, length))
    order = torch.rand(batch, length).argsort(1)
    kept, hidden = order[:, :seen].sort(1).values, order[:, seen:].sort(1).values
    chosen = {"mlm": 0.15, "mlm75": 0.75, "drop": 0.15, "mae": 0}[name]
    where = torch.randperm(batch * seen)[:round(batch * seen * chosen)].sort().values

    def states(model, x):
        x = model.norm(x)
        for layer in model.layers:
            x = layer(x)
        return x

    def step():
        some = ids.gather(1, kept)
        x = states(encoder, encoder.tokens(some) + encoder.positions(kept))
        if decoder is None:
            x, target = x.flatten(0, 1).index_select(0, where), some.flatten()[where]
        else:
            places = encoder.tokens.weight[0].expand(batch, length, width).scatter(1, kept[..., None].expand_as(x), x)
            x = states(decoder, decoder.into(places + encoder.positions.weight))
            x = decoder.back(x.gather(1, hidden[..., None].expand(-1, -1, width // 2)).flatten(0, 1))
            target = ids.gather(1, hidden).flatten()
        x = encoder.last(F.gelu(encoder.dense(x)))
        loss = F.cross_entropy(F.linear(x, encoder.tokens.weight, encoder.bias), target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    steps.clear()
    return timed(step, int(repeats))


# --- attention and scores ---


def attention(length, repeats):
    torch = torch_module()
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, 8, int(length), 64) for _ in range(3))

    def run():
        with torch.inference_mode():
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return timed(run, int(repeats))


def scorer(folder, dtype="f32"):
    torch = torch_module()
    from transformers import BertForMaskedLM, BertTokenizerFast
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    model = BertForMaskedLM.from_pretrained(folder, attn_implementation="sdpa").eval()
    return tokenizer, model.to(torch.bfloat16) if dtype == "bf16" else model


def scores(tokenizer, model, sentences, batch_tokens=2048):
    """Pseudo-log-likelihoods: all masked copies by length, the vocabulary at the masked places alone."""
    torch = torch_module()
    rows, place, owner = [], [], []
    for k, ids in enumerate(tokenizer(sentences)["input_ids"]):
        for j in range(1, len(ids) - 1):
            rows.append(ids[:j] + [tokenizer.mask_token_id] + ids[j + 1:])
            place.append((j, ids[j]))
            owner.append(k)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    batches = [[]]
    for i in order:
        if batches[-1] and (len(batches[-1]) + 1) * len(rows[i]) > batch_tokens:
            batches.append([])
        batches[-1].append(i)
    total = [0.0] * len(sentences)
    with torch.inference_mode():
        for batch in filter(None, batches):
            width = max(len(rows[i]) for i in batch)
            ids = torch.full((len(batch), width), tokenizer.pad_token_id)
            mask = torch.zeros(len(batch), width, dtype=torch.long)
            for r, i in enumerate(batch):
                ids[r, :len(rows[i])] = torch.tensor(rows[i])
                mask[r, :len(rows[i])] = 1
            states = model.bert(input_ids=ids, attention_mask=mask).last_hidden_state
            at = torch.arange(len(batch))
            logs = torch.log_softmax(model.cls(states[at, torch.tensor([place[i][0] for i in batch])]).float(), -1)
            for i, value in zip(batch, logs[at, torch.tensor([place[i][1] for i in batch])].tolist()):
                total[owner[i]] += value
    return total


def pll(dtype, folder, text, output):
    key = ("pll", folder, dtype)
    with open(text, encoding="utf-8") as lines:
        sentences = [line.rstrip("\n") for line in lines]
    if key not in models:
        models[key] = scorer(folder, dtype)
        scores(*models[key], sentences[:8])
    begin = time.perf_counter()
    got = scores(*models[key], sentences)
    ms = (time.perf_counter() - begin) * 1e3
    with open(output, "w") as out:
        for i, value in enumerate(got):
            print(i, value, sep="\t", file=out)
    return {"ms": ms, "ms_min": ms, "ms_max": ms}


def generate(folder, ids, new, repeats, output):
    torch = torch_module()
    from transformers import GPT2LMHeadModel
    key = ("generate", folder)
    if key not in models:
        models[key] = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="sdpa").eval()
        models[key].generation_config.eos_token_id = None
    with open(ids) as lines:
        prompts = torch.tensor([[int(word) for word in line.split()] for line in lines])
    found = []

    def run():
        with torch.inference_mode():
            found[:] = models[key].generate(prompts, attention_mask=torch.ones_like(prompts), do_sample=False, max_new_tokens=int(new),
                                            pad_token_id=0)[:, prompts.shape[1]:].tolist()
    answer = timed(run, int(repeats))
    with open(output, "w") as out:
        for line in found:
            print(*line, file=out)
    return answer


if arguments.once:
    print(scores(*scorer(arguments.once), [line.rstrip("\n") for line in sys.stdin]), file=answers)
    sys.exit(0)

commands = {f.__name__: f for f in (packages, forward, training, memory, objective, attention, pll, generate)}
for request in sys.stdin:
    words = request.split()
    if not words:
        continue
    try:
        answer = {"peer": " ".join(words[:2]), **commands[words[0]](*words[1:])}
    except Exception as error:  # a row that failed, not the end of the run
        reason = " ".join(f"{type(error).__name__}: {error}".replace('"', "'").replace("\\", "/").split())
        answer = {"failed": reason[:200]}
    print(json.dumps(answer, ensure_ascii=True), file=answers, flush=True)
