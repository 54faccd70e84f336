#!/usr/bin/env python3
"""Writes tests/data/quantized_model: small models with quantised weights, what these mean, and the logits of that model.

  NAME/config.json, NAME/model.safetensors   as the program of the scheme lays them out
  NAME.golden.safetensors   two decoded weights (float32) by their names, ids and logits (computed in float64)

Numbers of F8 with blocks and of MXFP4 are decoded by transformers' own functions, which also open these folders; the others by the formulas below, from the
formats as their programs publish them. The packages bitsandbytes, gptqmodel, autoawq and compressed-tensors are not needed.

With arguments: only the cases whose names begin with one of them. Run with HF_HUB_OFFLINE=1.
Versions: torch 2.15.0, transformers 5.24.0, safetensors 0.8.0.
"""
import json
import pathlib
import sys
import zlib

import numpy as np
import safetensors.torch
import torch
import transformers as tr
from transformers.integrations.finegrained_fp8 import Fp8Dequantize
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import model_runs as runs

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "quantized_model"
IDS = [6, 17, 36, 8, 31, 22, 9, 13, 38, 7, 26, 12]
LLAMA = dict(vocab_size=45, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=4,
             intermediate_size=64, max_position_embeddings=40, bos_token_id=1, eos_token_id=2, pad_token_id=None)
GPT_OSS = dict(vocab_size=45, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
               intermediate_size=64, num_local_experts=3, num_experts_per_tok=2, max_position_embeddings=40, sliding_window=8,
               bos_token_id=1, eos_token_id=2, pad_token_id=None, rope_parameters=dict(rope_type="default", rope_theta=500.0))
F8 = torch.float8_e4m3fn


def f8_codes(rng, shape, dtype=F8):
    """Codes of all finite numbers."""
    codes = rng.integers(0, 256, shape, dtype=np.uint8)
    numbers = torch.tensor(codes).view(dtype)
    return torch.where(torch.isfinite(numbers.float()), numbers.view(torch.uint8), 0x38).to(torch.uint8).view(dtype)


def scales_of(rng, shape, largest):
    return torch.tensor(rng.uniform(0.1, 1.0, shape) / largest, dtype=torch.float32)


# Each scheme: (rng, name of the weight, rows, columns) → stored tensors, decoded weight as float32.

def fp8_block(block, kind="float"):
    def make(rng, name, rows, columns):
        codes = f8_codes(rng, (rows, columns))
        shape = (-(-rows // block[0]), -(-columns // block[1]))
        scales = scales_of(rng, shape, 500)
        if kind == "bytes":
            exponents = torch.tensor(rng.integers(114, 119, shape), dtype=torch.uint8)
            scales = exponents
        if kind == "e8m0":
            scales = torch.tensor(rng.integers(114, 119, shape), dtype=torch.uint8).view(torch.float8_e8m0fnu)
        if rows % block[0] == 0 and columns % block[1] == 0:
            decoded = Fp8Dequantize(None)._dequantize_one(codes, scales, torch.float32)
        else:  # blocks at the edges are smaller
            wide = scales.repeat_interleave(block[0], 0)[:rows].repeat_interleave(block[1], 1)[:, :columns]
            decoded = codes.float() * wide
        return {name + "_scale_inv": scales, name: codes}, decoded
    return make


def fp8_tensor(rng, name, rows, columns):
    codes = f8_codes(rng, (rows, columns), torch.float8_e5m2)
    codes = torch.where(codes.float().abs() < 900, codes.view(torch.uint8), 0x40).to(torch.uint8).view(torch.float8_e5m2)
    scale = scales_of(rng, (), 900).to(torch.bfloat16)
    stem = name.removesuffix("weight")
    return {name: codes, name + "_scale_inv": scale, stem + "activation_scale": torch.tensor(0.5)}, codes.float() * scale.float()


def fbgemm(rng, name, rows, columns):
    codes = f8_codes(rng, (rows, columns))
    scales = scales_of(rng, (rows, 1), 500)
    return {name: codes, name + "_scale": scales}, codes.float() * scales


def number_map(kind):
    if kind == "nf4":  # Dettmers et al. 2023, appendix E
        return torch.tensor([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                             -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                             0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                             0.7229568362236023, 1.0])
    half = [0.0, 0.0052083333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25]
    return torch.tensor(half + [-x for x in half])


def bnb4(kind, nested):
    def make(rng, name, rows, columns):
        size, outer = 64, 4
        codes = rng.integers(0, 16, rows * columns)
        packed = torch.tensor((codes[0::2] << 4 | codes[1::2]).astype(np.uint8)).reshape(-1, 1)
        blocks = rows * columns // size
        state = dict(quant_type=kind, blocksize=size, dtype="bfloat16", shape=[rows, columns])
        stored = {name: packed, name + ".quant_map": number_map(kind)}
        if nested:
            inner = rng.integers(0, 256, blocks)
            table = torch.linspace(-0.9, 0.9, 256)
            scales = torch.tensor(rng.uniform(0.3, 0.5, -(-blocks // outer)), dtype=torch.float32)
            state |= dict(nested_blocksize=outer, nested_dtype="float32", nested_offset=0.5)
            stored |= {name + ".absmax": torch.tensor(inner, dtype=torch.uint8), name + ".nested_absmax": scales,
                       name + ".nested_quant_map": table}
            absmax = table[torch.tensor(inner)] * scales.repeat_interleave(outer)[:blocks] + 0.5
        else:
            absmax = torch.tensor(rng.uniform(0.2, 1.0, blocks), dtype=torch.float32)
            absmax[0] = 0
            stored[name + ".absmax"] = absmax
        text = np.frombuffer(json.dumps(state).encode(), np.uint8).copy()
        stored[f"{name}.quant_state.bitsandbytes__{kind}"] = torch.tensor(text)
        decoded = number_map(kind)[torch.tensor(codes)] * absmax.repeat_interleave(size)
        return stored, decoded.reshape(rows, columns)
    return make


def bnb8(rng, name, rows, columns):
    codes = torch.tensor(rng.integers(-127, 128, (rows, columns)), dtype=torch.int8)
    scb = torch.tensor(rng.uniform(0.3, 1.0, rows), dtype=torch.float32)
    stem = name.removesuffix("weight")
    stored = {name: codes, stem + "SCB": scb, name + "_format": torch.tensor(0, dtype=torch.uint8)}
    return stored, codes * scb.view(-1, 1) * 7.874015718698502e-3


def bit_stream(numbers, bits, axis):
    """`numbers` along `axis` as one stream of bits in 32-bit words, lowest bits first."""
    numbers = np.moveaxis(numbers, axis, 0)
    every = ((numbers[:, None] >> np.arange(bits).reshape(1, -1, *[1] * (numbers.ndim - 1))) & 1).reshape(-1, *numbers.shape[1:])
    words = every.reshape(-1, 32, *numbers.shape[1:]).astype(np.uint64)
    words = (words << np.arange(32, dtype=np.uint64).reshape(1, -1, *[1] * (numbers.ndim - 1))).sum(1)
    return torch.tensor(np.moveaxis(words, 0, axis).astype(np.uint32).view(np.int32).copy())


def gptq(bits, group, v2=False, shuffled=False, with_groups=True):
    def make(rng, name, rows, columns):
        size = columns if group == -1 else group
        groups = -(-columns // size)
        codes = rng.integers(0, 1 << bits, (columns, rows))
        zeros = rng.integers(1, 1 << bits, (groups, rows))
        scales = scales_of(rng, (groups, rows), 1 << bits).to(torch.float16)
        of_input = np.arange(columns) // size
        if shuffled:
            of_input = rng.permutation(of_input)
        stem = name.removesuffix("weight")
        stored = {stem + "qweight": bit_stream(codes, bits, 0), stem + "qzeros": bit_stream(zeros - (0 if v2 else 1), bits, 1),
                  stem + "scales": scales}
        if with_groups:
            stored[stem + "g_idx"] = torch.tensor(of_input, dtype=torch.int32)
        decoded = torch.tensor(codes - zeros[of_input], dtype=torch.float32) * scales.float()[torch.tensor(of_input)]
        return stored, decoded.T.contiguous()
    return make


AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def awq_words(numbers):
    words = np.zeros((numbers.shape[0], numbers.shape[1] // 8), np.uint32)
    for i, place in enumerate(AWQ_ORDER):
        words |= numbers[:, place::8].astype(np.uint32) << np.uint32(4 * i)
    return torch.tensor(words.view(np.int32).copy())


def awq(group):
    def make(rng, name, rows, columns):
        groups = columns // group
        codes = rng.integers(0, 16, (columns, rows))
        zeros = rng.integers(0, 16, (groups, rows))
        scales = scales_of(rng, (groups, rows), 16).to(torch.float16)
        stem = name.removesuffix("weight")
        stored = {stem + "qweight": awq_words(codes), stem + "qzeros": awq_words(zeros), stem + "scales": scales}
        of_input = np.arange(columns) // group
        decoded = torch.tensor(codes - zeros[of_input], dtype=torch.float32) * scales.float()[torch.tensor(of_input)]
        return stored, decoded.T.contiguous()
    return make


def ct_plain(kind, strategy, symmetric=True):
    def make(rng, name, rows, columns):
        codes = f8_codes(rng, (rows, columns)) if kind == "float" else torch.tensor(
            rng.integers(-128, 128, (rows, columns)), dtype=torch.int8)
        shape = {"tensor": (1,), "channel": (rows, 1), "group": (rows, columns // 16), "block": (rows // 16, columns // 16)}[strategy]
        scales = scales_of(rng, shape, 500 if kind == "float" else 128).to(torch.bfloat16)
        stored = {name: codes, name + "_scale": scales}
        zeros = torch.zeros(shape, dtype=torch.int8)
        if not symmetric:
            zeros = torch.tensor(rng.integers(-30, 30, shape), dtype=torch.int8)
            stored[name + "_zero_point"] = zeros
        steps = (rows // (shape[0] if len(shape) == 2 else 1), columns // shape[-1])
        grid = [x.float().reshape(-1, shape[-1]).repeat_interleave(steps[0], 0).repeat_interleave(steps[1], 1) for x in (scales, zeros)]
        return stored, (codes.float() - grid[1]) * grid[0]
    return make


def ct_packed(bits, group, symmetric=True, shuffled=False):
    def make(rng, name, rows, columns):
        half = 1 << (bits - 1)
        groups = columns // group
        codes = rng.integers(0, 2 * half, (rows, columns))
        scales = scales_of(rng, (rows, groups), half).to(torch.bfloat16)
        of_column = np.arange(columns) // group
        stored = {name + "_packed": bit_stream(codes, bits, 1), name + "_scale": scales,
                  name + "_shape": torch.tensor([rows, columns], dtype=torch.int64)}
        zeros = np.zeros((rows, groups), int)
        if not symmetric:
            zeros = rng.integers(-half, half, (rows, groups))
            stored[name + "_zero_point"] = bit_stream(zeros + half, bits, 0)
        if shuffled:
            of_column = rng.permutation(of_column)
            stored[name + "_g_idx"] = torch.tensor(of_column, dtype=torch.int32)
        return stored, torch.tensor(codes - half - zeros[:, of_column], dtype=torch.float32) * scales.float()[:, torch.tensor(of_column)]
    return make


def ct_config(form, **weights):
    group = dict(targets=["Linear"], weights=dict(num_bits=8, type="float", symmetric=True, dynamic=False, observer="minmax",
                                                  observer_kwargs={}, group_size=None, block_structure=None, actorder=None) | weights,
                 input_activations=None, output_activations=None)
    return dict(quant_method="compressed-tensors", format=form, quantization_status="compressed", kv_cache_scheme=None,
                global_compression_ratio=None, ignore=["lm_head"], config_groups=dict(group_0=group))


FP8 = dict(quant_method="fp8", activation_scheme="dynamic")
BNB = dict(quant_method="bitsandbytes", load_in_4bit=True, load_in_8bit=False, _load_in_4bit=True, _load_in_8bit=False,
           llm_int8_threshold=6.0, llm_int8_skip_modules=None, llm_int8_enable_fp32_cpu_offload=False,
           llm_int8_has_fp16_weight=False, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=False,
           bnb_4bit_compute_dtype="bfloat16", bnb_4bit_quant_storage="uint8")
GPTQ = dict(quant_method="gptq", bits=4, group_size=16, damp_percent=0.01, desc_act=False, sym=False, true_sequential=True)
AWQ = dict(quant_method="awq", bits=4, group_size=16, zero_point=True, version="gemm", modules_to_not_convert=None)
CASES = [
    ("fp8-blocks", FP8 | dict(weight_block_size=[16, 16]), fp8_block((16, 16))),
    ("fp8-ragged", FP8 | dict(weight_block_size=[24, 20], fmt="e4m3"), fp8_block((24, 20))),
    ("fp8-bytes", FP8 | dict(weight_block_size=[16, 16], scale_fmt="ue8m0"), fp8_block((16, 16), "bytes")),
    ("fp8-e8m0", FP8 | dict(weight_block_size=[1, 32], scale_fmt="ue8m0"), fp8_block((1, 32), "e8m0")),
    ("fp8-tensor", dict(quant_method="fp8", activation_scheme="static", weight_block_size=None), fp8_tensor),
    ("fbgemm", dict(quant_method="fbgemm_fp8", activation_scale_ub=1200.0, modules_to_not_convert=["lm_head"]), fbgemm),
    ("bnb-nf4", BNB, bnb4("nf4", False)),
    ("bnb-nf4-nested", BNB | dict(bnb_4bit_use_double_quant=True), bnb4("nf4", True)),
    ("bnb-fp4", BNB | dict(bnb_4bit_quant_type="fp4"), bnb4("fp4", False)),
    ("bnb-int8", BNB | dict(load_in_4bit=False, load_in_8bit=True, bnb_4bit_quant_type="fp4"), bnb8),
    ("gptq-4", GPTQ, gptq(4, 16)),
    ("gptq-4-plain", GPTQ | dict(group_size=-1), gptq(4, -1, with_groups=False)),
    ("gptq-3-order", GPTQ | dict(bits=3, desc_act=True), gptq(3, 16, shuffled=True)),
    ("gptq-8-v2", GPTQ | dict(bits=8, checkpoint_format="gptq_v2"), gptq(8, 16, v2=True)),
    ("gptq-2", GPTQ | dict(bits=2, format="gptq"), gptq(2, 16)),
    ("awq", AWQ, awq(16)),
    ("ct-float", ct_config("float-quantized", strategy="channel"), ct_plain("float", "channel")),
    ("ct-float-block", ct_config("float-quantized", strategy="block", block_structure=[16, 16]), ct_plain("float", "block")),
    ("ct-float-tensor", ct_config("naive-quantized", strategy="tensor"), ct_plain("float", "tensor")),
    ("ct-int8", ct_config("int-quantized", type="int", strategy="channel", symmetric=False), ct_plain("int", "channel", False)),
    ("ct-pack-4", ct_config("pack-quantized", type="int", num_bits=4, strategy="group", group_size=16), ct_packed(4, 16)),
    ("ct-pack-4-order", ct_config("pack-quantized", type="int", num_bits=4, strategy="group", group_size=16, symmetric=False,
                                  actorder="group"), ct_packed(4, 16, False, True)),
    ("ct-pack-8", ct_config("pack-quantized", type="int", num_bits=8, strategy="group", group_size=32), ct_packed(8, 32)),
]


def is_quantised(name, tensor):
    return tensor.ndim == 2 and name.startswith("model.layers.")


def write(name, model, quantization, stored, decoded, golden):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    config = model.config.to_dict() | dict(architectures=[type(model).__name__], dtype="float32", quantization_config=quantization)
    keep = {k: v for k, v in config.items() if v is not None and k not in (
        "transformers_version", "return_dict", "output_hidden_states", "problem_type", "id2label", "label2id", "is_encoder_decoder",
        "chunk_size_feed_forward", "output_attentions")}
    (folder / "config.json").write_text(json.dumps(keep, indent=1) + "\n")
    safetensors.torch.save_file({k: v.contiguous() for k, v in stored.items()}, folder / "model.safetensors", {"format": "pt"})
    model.load_state_dict(decoded)
    model = model.double().eval()
    with torch.no_grad(), runs.doubled():
        logits = model(torch.tensor([IDS])).logits[0]
    assert torch.isfinite(logits).all()
    golden |= dict(ids=torch.tensor(IDS, dtype=torch.int32), logits=logits.float())
    safetensors.torch.save_file({k: v.contiguous() for k, v in golden.items()}, OUT / f"{name}.golden.safetensors")
    print(name, (folder / "model.safetensors").stat().st_size, f"largest logit {logits.abs().max():.3g}", flush=True)
    whole = {"fp8": tr.FineGrainedFP8Config, "mxfp4": tr.Mxfp4Config}.get(quantization["quant_method"])
    if whole and name != "fp8-ragged":  # blocks that transformers does not read
        theirs = tr.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, quantization_config=whole(dequantize=True),
                                                         attn_implementation="eager", experts_implementation="eager")
        with torch.no_grad():
            difference = (theirs(torch.tensor([IDS])).logits[0] - logits).abs().max() / logits.abs().max()
        assert difference < 1e-5, difference


def make(name, quantization, scheme):
    model = tr.LlamaForCausalLM(tr.LlamaConfig(**LLAMA))
    runs.randomise(model, name, 0.3)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    stored, decoded, golden = {}, {}, {}
    for key, tensor in model.state_dict().items():
        if not is_quantised(key, tensor):
            stored[key] = decoded[key] = tensor.to(torch.bfloat16)
            continue
        parts, decoded[key] = scheme(rng, key, *tensor.shape)
        stored |= parts
        if "q_proj" in key or "down_proj" in key:
            golden[key] = decoded[key]
    write(name, model, quantization, stored, decoded, golden)


def make_mxfp4(name):
    model = tr.GptOssForCausalLM._from_config(tr.GptOssConfig(**GPT_OSS), attn_implementation="eager",
                                              experts_implementation="eager")
    runs.randomise(model, name, 0.3)
    rng = np.random.default_rng(3)
    stored, decoded, golden = {}, {}, {}
    for key, tensor in model.state_dict().items():
        if not key.endswith(("gate_up_proj", "down_proj")):
            stored[key] = decoded[key] = tensor.to(torch.bfloat16)
            continue
        experts, inputs, outputs = tensor.shape
        blocks = torch.tensor(rng.integers(0, 256, (experts, outputs, inputs // 32, 16)), dtype=torch.uint8)
        scales = torch.tensor(rng.integers(122, 126, (experts, outputs, inputs // 32)), dtype=torch.uint8)
        stored |= {key + "_blocks": blocks, key + "_scales": scales}
        decoded[key] = golden[key] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
        assert torch.equal(decoded[key], convert_moe_packed_tensors(blocks, scales).float())
    quantization = dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn", "lm_head"])
    write(name, model, quantization, stored, decoded, golden)


def main():
    chosen = tuple(sys.argv[1:]) or ("",)
    for case in CASES:
        if case[0].startswith(chosen):
            make(*case)
    if "mxfp4".startswith(chosen):
        make_mxfp4("mxfp4")


if __name__ == "__main__":
    main()
