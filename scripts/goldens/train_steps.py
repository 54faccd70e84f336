#!/usr/bin/env python3
"""Ten steps of training by PyTorch, from the checkpoints of tests/data/model and tests/data/encoder_decoder that
lm-train starts with.

    train_steps.py [CASE...]

Writes tests/data/train/steps/CASE.json: a batch, made here and the same at each step, and what training on
it gives, all in float64. AdamW (lr 1e-3, betas 0.9 0.999, eps 1e-8, weight decay 0.01 for matrices and
tables, none for biases, norms and other vectors), gradients clipped to norm 1, the loss the mean over all
rows of the batch. Models are transformers' with eager attention, without dropout; T-TA and GAU-alpha, which
it lacks, are written here from their equations (tests/data/model/README.md).

  objective, sequences   what lm-train calls it; `ids`, `seg` and `mask` as in records, and `rows` with a loss
                         and their `targets`; `source`: what the encoder reads
  block_size             of xlnet_memory, whose blocks read 3 tokens before them; transformers keeps these
                         states as `mems`, and no gradient goes to them
  losses, norms          of each step; norms of all gradients before clipping
  tensors                by name in the checkpoint: whether it decays; `gradient`, of the first step: its
                         norm, then pairs of index and value; `end`, after the last step: sum, sum of
                         squares, the same pairs. Indices count the tensor as it lies in the file

Versions: torch 2.15.0, transformers 5.23.0, safetensors 0.8.0, numpy 2.4.6.
"""
import json
import math
import os
import pathlib
import sys
import zlib

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import safetensors.torch
import torch
import transformers as tr

import diffusion_classes as diffusion
import model_runs as runs

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
OUT = DATA / "train" / "steps"
LENGTHS = [7, 5, 11]
STEPS = 10
# (case, class or one of those below, objective)
CASES = [
    ("bert", tr.BertForMaskedLM, "mlm"),
    ("roberta", tr.RobertaForMaskedLM, "mlm"),
    ("xlm_roberta", tr.XLMRobertaForMaskedLM, "mlm"),
    ("distilbert", tr.DistilBertForMaskedLM, "mlm"),
    ("albert", tr.AlbertForMaskedLM, "mlm"),
    ("electra_generator", tr.ElectraForMaskedLM, "mlm"),
    ("roformer", tr.RoFormerForMaskedLM, "mlm"),
    ("modernbert", tr.ModernBertForMaskedLM, "mlm"),
    ("gpt2", tr.GPT2LMHeadModel, "clm"),
    ("gpt2_layer_scale", tr.GPT2LMHeadModel, "clm"),
    ("gpt_neox", tr.GPTNeoXForCausalLM, "clm"),
    ("llama", tr.LlamaForCausalLM, "clm"),
    ("qwen3", tr.Qwen3ForCausalLM, "clm"),
    ("gemma2", tr.Gemma2ForCausalLM, "clm"),
    ("gemma3", tr.Gemma3ForCausalLM, "clm"),
    ("olmo", tr.OlmoForCausalLM, "clm"),
    ("olmo2", tr.Olmo2ForCausalLM, "clm"),
    ("phi", tr.PhiForCausalLM, "clm"),
    ("phi3", tr.Phi3ForCausalLM, "clm"),
    ("stablelm", tr.StableLmForCausalLM, "clm"),
    ("granite", tr.GraniteForCausalLM, "clm"),
    ("cohere", tr.CohereForCausalLM, "clm"),
    ("esm", tr.EsmForMaskedLM, "mlm"),
    ("gpt_neo", tr.GPTNeoForCausalLM, "clm"),
    ("bloom", tr.BloomForCausalLM, "clm"),
    ("mpt", tr.MptForCausalLM, "clm"),
    ("opt", tr.OPTForCausalLM, "clm"),
    ("falcon_groups", tr.FalconForCausalLM, "clm"),
    ("opt_narrow", tr.OPTForCausalLM, "clm"),
    ("falcon_rw", tr.FalconForCausalLM, "clm"),
    ("longformer", tr.LongformerForMaskedLM, "mlm"),
    ("big_bird", tr.BigBirdForMaskedLM, "mlm"),
    ("fnet", tr.FNetForMaskedLM, "mlm"),
    ("neobert", "NeoBert", "mlm"),
    ("deberta_v3_longer", tr.DebertaV2ForMaskedLM, "mlm"),
    ("mixtral", tr.MixtralForCausalLM, "clm"),
    ("qwen2_moe", tr.Qwen2MoeForCausalLM, "clm"),
    ("olmoe", tr.OlmoeForCausalLM, "clm"),
    ("gpt_oss", tr.GptOssForCausalLM, "clm"),
    ("llada", diffusion.LLaDAModelLM, "mlm"),
    ("llada_bias", diffusion.LLaDAModelLM, "mlm"),
    ("dream", diffusion.DreamModel, "mlm"),
    ("gau_alpha", "GauAlpha", "mlm"),
    ("tta", "Tta", "tta"),
    ("mpnet", tr.MPNetForMaskedLM, "mlm"),
    ("deberta_v3", tr.DebertaV2ForMaskedLM, "mlm"),
    ("t5_encoder", tr.T5EncoderModel, "mlm"),
    ("t5_gated", tr.T5EncoderModel, "mlm"),
    ("t5", tr.T5ForConditionalGeneration, "seq2seq"),
    ("t5_untied", tr.T5ForConditionalGeneration, "seq2seq"),
    ("mt5", tr.MT5ForConditionalGeneration, "seq2seq"),
    ("bart", tr.BartForConditionalGeneration, "seq2seq"),
    ("bart_scaled", tr.BartForConditionalGeneration, "seq2seq"),
    ("mbart", tr.MBartForConditionalGeneration, "seq2seq"),
    ("xlnet", tr.XLNetLMHeadModel, "plm"),
    ("xlnet_memory", tr.XLNetLMHeadModel, "plm"),  # of the checkpoint xlnet, block by block with `mems`
]
BLOCK, MEMORY = 4, 3


class Written(torch.nn.Module):
    """A model that transformers lacks: tensors by name, and logits of one sequence."""

    def __init__(self, folder):
        super().__init__()
        self.config = json.loads((folder / "config.json").read_text())
        tensors = safetensors.torch.load_file(folder / "model.safetensors")
        self.tensors = {n: torch.nn.Parameter(t.double()) for n, t in tensors.items()}

    def named_parameters(self, *_, **__):
        return self.tensors.items()

    def parameters(self, *_):
        return self.tensors.values()

    def dense(self, x, name):
        return torch.nn.functional.linear(x, self.tensors[name + ".weight"], self.tensors.get(name + ".bias"))

    def norm(self, x, name):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.tensors[name + ".weight"],
                                              self.tensors[name + ".bias"], self.config["layer_norm_eps"])


class Tta(Written):
    """Keys and values of every layer are made of M; queries start as the embedding of [MASK]."""
    mask_id = 4

    def embed(self, ids):
        at = "bert.embeddings."
        x = self.tensors[at + "word_embeddings.weight"][ids]
        return self.norm(x + self.tensors[at + "position_embeddings.weight"][: len(ids)], at + "LayerNorm")

    def heads(self, x):
        return x.reshape(len(x), self.config["num_attention_heads"], -1).transpose(0, 1)

    def forward(self, ids, seg=None):
        memory, x = self.embed(ids), self.embed([self.mask_id] * len(ids))
        for layer in range(self.config["num_hidden_layers"]):
            at = f"bert.encoder.layer.{layer}."
            q = self.heads(self.dense(x, at + "attention.self.query"))
            k, v = (self.heads(self.dense(memory, at + "attention.self." + name)) for name in ("key", "value"))
            scores = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).masked_fill(torch.eye(len(ids)).bool(), -math.inf)
            context = (scores.softmax(-1) @ v).transpose(0, 1).reshape(len(ids), -1)
            x = self.norm(x + self.dense(context, at + "attention.output.dense"), at + "attention.output.LayerNorm")
            inner = torch.nn.functional.gelu(self.dense(x, at + "intermediate.dense"))
            x = self.norm(x + self.dense(inner, at + "output.dense"), at + "output.LayerNorm")
        x = torch.nn.functional.gelu(self.dense(x, "cls.predictions.transform.dense"))
        x = self.norm(x, "cls.predictions.transform.LayerNorm")
        return x @ self.tensors["bert.embeddings.word_embeddings.weight"].T + self.tensors["cls.predictions.bias"]


class GauAlpha(Written):
    """softmax_plus, adjacent pairs rotated, norms without weights, no biases, tied decoder."""

    def bare(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.config["layer_norm_eps"])

    @staticmethod
    def rotate(x):
        size = x.shape[-1]
        angle = torch.arange(len(x)).double()[:, None] * 10000.0 ** (-torch.arange(0, size, 2).double() / size)
        turned = torch.view_as_complex(x.reshape(len(x), -1, 2).contiguous()) * torch.polar(torch.ones_like(angle), angle)
        return torch.view_as_real(turned).reshape(x.shape)

    def forward(self, ids, seg):
        at = "gau_alpha.embeddings."
        table = self.tensors[at + "word_embeddings.weight"]
        x = self.bare(table[ids] + self.tensors[at + "token_type_embeddings.weight"][seg])
        inner, size = self.config["intermediate_size"], self.config["attention_key_size"]
        factor = math.log(max(len(ids), 16)) / math.log(512) / math.sqrt(size)
        for layer in range(self.config["num_hidden_layers"]):
            at = f"gau_alpha.encoder.layer.{layer}.gau."
            u, v, z = torch.nn.functional.silu(self.dense(x, at + "i_dense")).split([inner, inner, size], -1)
            q, k = (self.rotate(z * self.tensors[at + which + "_scaleoffset.weight"]) for which in "qk")
            x = self.bare(x + self.dense(u * ((q @ k.T * factor).softmax(-1) @ v), at + "o_dense"))
        return x @ table.T


class NeoBert(Written):
    """Pre-norm layers without biases, RMS norms, SwiGLU; adjacent pairs rotated; an untied vocabulary."""

    @staticmethod
    def rotate(x):
        """By angles in float32, as the authors' code has them."""
        size = x.shape[-1]
        frequencies = 1.0 / (10000.0 ** (torch.arange(0, size, 2).to(torch.float32) / size))
        angle = torch.outer(torch.arange(x.shape[-2]).to(torch.float32), frequencies).to(torch.float64)
        turned = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous()) * torch.polar(torch.ones_like(angle), angle)
        return torch.view_as_real(turned).reshape(x.shape)

    def rms(self, x, name):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.config["norm_eps"]) * self.tensors[name + ".weight"]

    def forward(self, ids, seg=None):
        x = self.tensors["model.encoder.weight"][ids]
        heads = self.config["num_attention_heads"]
        for layer in range(self.config["num_hidden_layers"]):
            at = f"model.transformer_encoder.{layer}."
            qkv = self.dense(self.rms(x, at + "attention_norm"), at + "qkv").reshape(len(ids), heads, -1).transpose(0, 1)
            q, k, v = qkv.chunk(3, -1)
            q, k = self.rotate(q), self.rotate(k)
            weights = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).softmax(-1)
            x = x + self.dense((weights @ v).transpose(0, 1).reshape(len(ids), -1), at + "wo")
            gate, up = self.dense(self.rms(x, at + "ffn_norm"), at + "ffn.w12").chunk(2, -1)
            x = x + self.dense(torch.nn.functional.silu(gate) * up, at + "ffn.w3")
        return self.dense(self.rms(x, "model.layer_norm"), "decoder")


class RotaryAngles(torch.nn.Module):
    """Cosines and sines in float64 of the angles as transformers computes them, in float32."""

    def __init__(self, own):
        super().__init__()
        self.own = own

    def forward(self, x, position_ids, layer_type=None):
        frequencies = getattr(self.own, "inv_freq" if layer_type is None else layer_type + "_inv_freq")
        angle = (position_ids[:, :, None].to(torch.float32) * frequencies.to(torch.float32)).to(torch.float64)
        own = type(self.own).__name__
        if "Cohere" in own:  # neighbouring features are pairs
            angle = torch.repeat_interleave(angle, 2, dim=-1)
        elif "GptOss" not in own:  # which takes the angles of pairs
            angle = torch.cat([angle, angle], -1)
        scaling = getattr(self.own, "attention_scaling", 1.0)
        return angle.cos() * scaling, angle.sin() * scaling


def folder_of(case):
    folder = DATA / "model" / case.removesuffix("_memory")
    return folder if folder.is_dir() else DATA / "encoder_decoder" / case


def load(case, model_class):
    folder = folder_of(case)
    if isinstance(model_class, str):
        return globals()[model_class](folder)
    model = runs.load(folder, model_class, torch.float64)
    if case == "roformer":  # its table, which transformers keeps in float32
        table = model.roformer.encoder.embed_positions.weight
        half = table.shape[1] // 2
        angle = torch.arange(len(table)).double()[:, None] * 10000.0 ** (-torch.arange(half).double() / half)
        assert torch.allclose(table.double(), torch.cat([angle.sin(), angle.cos()], 1), atol=1e-6)
        table.data = torch.cat([angle.sin(), angle.cos()], 1)
    for module in list(model.modules()):
        if torch.is_tensor(getattr(module, "embed_scale", None)):  # the number of a model in float32
            module.embed_scale = module.embed_scale.float().double()
        for name in ("rotary_emb", "rotary_embeddings"):
            own = getattr(module, name, None)
            if own is not None and not isinstance(own, RotaryAngles):
                setattr(module, name, RotaryAngles(own))
    return model


def decays(name, tensor):
    """lm-train's rule: matrices and tables."""
    vector = name.endswith("_bias") or "scaleoffset" in name or name.endswith("mask_emb") or "_norm." in name
    return tensor.dim() >= 2 and not vector


def parameters_of(model, stored):
    """By name in the file, with a function that takes its part of the parameter: a tied one has several names, of
    which one is there; experts are one parameter."""
    named = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if ".experts." in name and name not in stored:
            named |= {n: (parameter, take) for n, take in runs.expert_parts(name, parameter) if n in stored}
            continue
        name = name.replace(".mlp.gate.", ".block_sparse_moe.gate.") if name not in stored else name
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        names = [name, old] + (["embed_out.weight"] if name == "lm_head.weight" else [])
        name = next((n for n in names if n in stored), None)
        if parameter.requires_grad and name in stored:
            named[name] = parameter, lambda t: t
    assert {id(p) for p, _ in named.values()} == {id(p) for p in model.parameters() if p.requires_grad}
    return named


def setting(config, name, default=0):
    value = config.get(name) if isinstance(config, dict) else getattr(config, name, None)
    return default if value is None else value


def make_batch(case, model, objective):
    """Sequences with rows and targets; no padding id."""
    rng = np.random.default_rng(zlib.crc32(b"steps " + case.encode()))
    config = model.config
    pad = setting(config, "pad_token_id")
    tokens = [i for i in range(setting(config, "vocab_size")) if i != pad]
    types = 2 if objective == "plm" else setting(config, "type_vocab_size")
    batch = []
    for n in LENGTHS:
        one = dict(ids=rng.choice(tokens, n).tolist())
        if case == "xlnet_memory":
            batch.append(one | memory_targets(rng, one["ids"]))
            continue
        if types > 1:
            one["seg"] = np.sort(rng.integers(0, 2, n)).tolist()
        if objective == "seq2seq":
            one |= dict(source=rng.choice(tokens, n + 2).tolist(), rows=list(range(n)),
                        targets=rng.choice(tokens, n).tolist())
        elif objective == "clm":
            one |= dict(rows=list(range(n - 1)), targets=one["ids"][1:])
        elif objective == "tta":
            one |= dict(rows=list(range(n)), targets=one["ids"])
        elif objective == "plm":
            listed = rng.permutation(n)[: n * 2 // 3].tolist()
            one["mask"] = f"xlnet_order({','.join(map(str, listed))})"
            one["rows"] = sorted(listed)
            one["targets"] = [one["ids"][i] for i in one["rows"]]
        else:
            one["rows"] = np.sort(rng.permutation(n)[: n // 2]).tolist()
            one["targets"] = rng.choice(tokens, n // 2).tolist()
        batch.append(one)
    return batch


def memory_targets(rng, ids):
    """An order within each block; transformers takes remembered tokens for those of segment 0."""
    listed, n = [], len(ids)
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        listed += (first + rng.permutation(size)[: max(1, size * 2 // 3)]).tolist()
    last = (n - 1) // BLOCK * BLOCK
    seg = [0] * last + np.sort(rng.integers(0, 2, n - last)).tolist()
    order = f"xlnet_order({','.join(map(str, listed))})"
    rows = sorted(listed)
    return dict(seg=seg, mask=f"({order} & chunk({BLOCK})) | (block_memory({BLOCK},{MEMORY}) & ~chunk({BLOCK}))",
                rows=rows, targets=[ids[i] for i in rows], listed=listed)


def logits_with_memory(model, one):
    """Block by block, each with the states before it."""
    logits, memory = [], None
    model.config.mem_len = model.transformer.mem_len = MEMORY
    for first in range(0, len(one["ids"]), BLOCK):
        places = list(range(first, min(first + BLOCK, len(one["ids"]))))
        rank = {t: one["listed"].index(t) for t in places if t in one["listed"]}
        blocked = [[j in rank and not (i in rank and rank[j] < rank[i]) for j in places] for i in places]
        rows = [t for t in one["rows"] if t in places]
        mapping = torch.zeros(1, len(rows), len(places), dtype=torch.float64)
        mapping[0, range(len(rows)), [t - first for t in rows]] = 1
        out = model(torch.tensor([[one["ids"][t] for t in places]]), mems=memory, use_mems=True,
                    token_type_ids=torch.tensor([[one["seg"][t] for t in places]]),
                    perm_mask=torch.tensor(blocked)[None].double(), target_mapping=mapping)
        memory = out.mems
        logits.append(out.logits[0])
    return torch.cat(logits)


def logits_of(model, one):
    """Of the rows with a loss."""
    if "listed" in one:
        return logits_with_memory(model, one)
    if isinstance(model, Written):
        return model(one["ids"], one.get("seg"))[one["rows"]]
    ids = torch.tensor([one["ids"]])
    arguments = dict(token_type_ids=torch.tensor([one["seg"]])) if "seg" in one else {}
    if "source" in one:
        return model(torch.tensor([one["source"]]), decoder_input_ids=ids).logits[0]
    if model.config.model_type == "t5":  # the encoder, decoded with the table
        states = model.encoder(input_ids=ids).last_hidden_state[0, one["rows"]]
        return states @ model.shared.weight.T
    if "mask" in one:
        arguments["perm_mask"] = torch.tensor(~runs.visible_pairs(one))[None].double()
        mapping = torch.zeros(1, len(one["rows"]), ids.shape[1], dtype=torch.float64)
        mapping[0, range(len(one["rows"])), one["rows"]] = 1
        return model(ids, target_mapping=mapping, **arguments).logits[0]
    return model(ids, **arguments).logits[0, one["rows"]]


def loss_of(model, batch):
    total = sum(torch.nn.functional.cross_entropy(logits_of(model, one), torch.tensor(one["targets"]), reduction="sum")
                for one in batch)
    return total / sum(len(one["rows"]) for one in batch)


def some_places(gradient):
    """The largest element, and one in the middle of those that are not 0."""
    flat = gradient.flatten()
    nonzero = flat.nonzero().flatten().tolist() or [0]  # of an expert without tokens
    return sorted({int(flat.abs().argmax()), nonzero[len(nonzero) // 2]})


def short(x):
    return float(f"{float(x):.13g}")


def pairs(tensor, places):
    return [number for i in places for number in (i, short(tensor.flatten()[i]))]


def train(case, model_class, objective):
    torch.manual_seed(0)
    model = load(case, model_class)
    stored = safetensors.torch.load_file(folder_of(case) / "model.safetensors")
    named = parameters_of(model, stored)
    every = {id(p): (n, p) for n, (p, _) in named.items()}.values()
    deep = [p for n, p in every if decays(n, p)]
    flat = [p for n, p in every if not decays(n, p)]
    optimizer = torch.optim.AdamW([{"params": deep, "weight_decay": 0.01}, {"params": flat, "weight_decay": 0.0}],
                                  lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    batch = make_batch(case, model, objective)
    losses, norms, tensors, places = [], [], {}, {}
    for step in range(STEPS):
        optimizer.zero_grad()
        with runs.doubled():
            loss = loss_of(model, batch)
        assert loss.dtype == torch.float64
        loss.backward()
        for name, (p, take) in named.items() if step == 0 else ():
            if p.grad is None:
                continue
            grad = take(p.grad)
            assert stored[name].shape == grad.shape, name
            places[name] = some_places(grad)
            tensors[name] = dict(decays=decays(name, p), gradient=[short(grad.norm())] + pairs(grad, places[name]))
        losses.append(float(loss.detach()))
        norms.append(float(torch.nn.utils.clip_grad_norm_([p for _, p in every], 1.0)))
        optimizer.step()
    for name, tensor in tensors.items():
        parameter, take = named[name]
        end = take(parameter.detach())
        tensor["end"] = [short(end.sum()), short((end * end).sum())] + pairs(end, places[name])
    for one in batch:
        one.pop("listed", None)
    memory = dict(block_size=BLOCK) if case == "xlnet_memory" else {}
    return memory | dict(objective=objective, sequences=batch, losses=losses, norms=norms, tensors=tensors)


def write(path, result):
    """A line a sequence and a tensor."""
    def lines(items):
        return ",\n".join(items)

    def text(x):
        return json.dumps(x, separators=(",", ":"))
    first = [f'"block_size":{result["block_size"]}'] if "block_size" in result else []
    body = first + [f'"objective":{text(result["objective"])}',
            '"sequences":[\n' + lines(map(text, result["sequences"])) + "]",
            f'"losses":{text(result["losses"])}', f'"norms":{text(result["norms"])}',
            '"tensors":{\n' + lines(f"{text(n)}:{text(t)}" for n, t in result["tensors"].items()) + "}"]
    path.write_text("{" + lines(body) + "}\n")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for case, model_class, objective in CASES:
        if not sys.argv[1:] or case in sys.argv[1:]:
            result = train(case, model_class, objective)
            write(OUT / f"{case}.json", result)
            print(f'{case}: {result["losses"][0]:.6g} to {result["losses"][-1]:.6g}, '
                  f'{len(result["tensors"])} tensors, {(OUT / f"{case}.json").stat().st_size} bytes', flush=True)


if __name__ == "__main__":
    main()
