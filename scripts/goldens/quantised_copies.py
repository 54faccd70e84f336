#!/usr/bin/env python3
"""Writes tests/data/quantised: a small Llama, its copies in llama.cpp's layout, and how far they are from it.

  source/             the model as transformers saves it, F32
  q8_0.gguf, q4_0.gguf   its copies: permuted rows of queries and keys, matrices quantised by the package gguf
  NAME.errors.safetensors   of each copy, float64: by tensor (names of transformers) norm(a - b) / norm(a) and the cosine; of
                      the texts `ids` (one a row) by text: distances and cosines of states (sums over tokens, by state),
                      of attention (total variation, sums over queries, by layer and head), and of predictions KL,
                      agreement and both losses (sums over tokens), computed by transformers in float64

Run with HF_HUB_OFFLINE=1. Versions: torch 2.15.0, transformers 5.24.0, gguf 0.19.0.
"""
import pathlib

import gguf
import numpy as np
import safetensors.numpy
import torch
import transformers as tr

import gguf_models as models
import model_runs as runs

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "quantised"
TEXTS, LENGTH = 6, 11


def write_copy(name, model, kind):
    """The copy, and the state that it stands for."""
    config = model.config
    writer = gguf.GGUFWriter(OUT / f"{name}.gguf", "llama")
    models.write_config(writer, config, "llama", model)
    state = {}
    for hf, tensor in model.state_dict().items():
        values, own, heads = tensor.numpy(), models.own_name(hf, models.LAYER), None
        if ".attn_q." in own or ".attn_k." in own:
            heads = config.num_attention_heads if ".attn_q." in own else config.num_key_value_heads
            values = models.permuted(values, heads)
        values = np.ascontiguousarray(values, np.float32)
        if values.ndim == 2:
            stored = gguf.quants.quantize(values, kind)
            writer.add_tensor(own, stored, raw_dtype=kind)
            values = gguf.quants.dequantize(stored, kind)
        else:
            writer.add_tensor(own, values)
        state[hf] = torch.tensor(np.ascontiguousarray(models.restored(values, heads) if heads else values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return state


def cosine(a, b):
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def results(model, ids):
    with torch.no_grad(), runs.doubled():
        out = model(torch.tensor(ids), output_hidden_states=True, output_attentions=True)
    return (np.stack([x.numpy() for x in out.hidden_states]), np.stack([x.numpy() for x in out.attentions]),
            torch.log_softmax(out.logits, -1).numpy())


def errors(model, state, ids):
    tensors = {}
    for name, value in model.state_dict().items():
        a, b = value.double().numpy().reshape(-1), state[name].double().numpy().reshape(-1)
        tensors[name] = np.array([np.linalg.norm(a - b) / np.linalg.norm(a), cosine(a, b)])
    copy = type(model)(model.config)
    copy.load_state_dict(state)
    states, weights, logs = results(model.double().eval(), ids)
    other_states, other_weights, other_logs = results(copy.double().eval(), ids)
    distance = np.linalg.norm(states - other_states, axis=-1) / np.linalg.norm(states, axis=-1)
    p, q = logs[:, :-1], other_logs[:, :-1]
    targets = np.array(ids)[:, 1:, None]
    loss, other_loss = (-np.take_along_axis(x, targets, -1)[..., 0].sum(-1) for x in (p, q))
    tensors |= {
        "ids": np.array(ids, np.int32),
        "distance": distance.sum(-1).T, "distance_largest": distance.max(-1).T,
        "cosine": cosine(states, other_states).sum(-1).T,
        "attention": (np.abs(weights - other_weights).sum(-1) / 2).sum(-1).transpose(1, 0, 2),
        "kl": (np.exp(p) * (p - q)).sum(-1).sum(-1),
        "agreement": (p.argmax(-1) == q.argmax(-1)).sum(-1).astype(np.float64), "loss": loss, "loss_against": other_loss}
    return {name: np.ascontiguousarray(value) for name, value in tensors.items()}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    model = tr.LlamaForCausalLM(tr.LlamaConfig(**models.LLAMA, attn_implementation="eager"))
    runs.randomise(model, "quantised", 0.3)
    model.eval().save_pretrained(OUT / "source")
    (OUT / "source" / "generation_config.json").unlink(missing_ok=True)
    draw = np.random.default_rng(3)
    ids = draw.integers(3, model.config.vocab_size, (TEXTS, LENGTH)).tolist()
    for kind in ("Q8_0", "Q4_0"):
        state = write_copy(kind.lower(), model, gguf.GGMLQuantizationType[kind])
        found = errors(model, state, ids)
        model.float()
        safetensors.numpy.save_file(found, OUT / f"{kind.lower()}.errors.safetensors")
        print(kind, {name: found[name].sum() for name in ("kl", "agreement", "loss", "loss_against")})


if __name__ == "__main__":
    main()
