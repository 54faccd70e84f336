#!/usr/bin/env python3
"""Writes tests/data/gguf_model: small models in llama.cpp's layout, and what transformers computes of the same weights.

  NAME.gguf            as llama.cpp's converter lays them out: names, permuted rows of Llama, norms plus one of Gemma
  NAME.logits.safetensors   ids and logits (of encoders types and last states; float64, stored in float32) of the model with the numbers that the file has,
                            dequantised by the package gguf where they are quantised
  split/*.gguf         the file llama.gguf as the package gguf splits it
  encoded.safetensors  numbers, and the blocks that the package makes of them
  blocks.safetensors   random blocks of each quantised type, and the bits of their numbers as that package gives them

With arguments: only those whose names begin with one of them. Run with HF_HUB_OFFLINE=1.
Versions: torch 2.15.0, transformers 5.24.0, gguf 0.19.0.
"""
import pathlib
import re
import sys

import gguf
import numpy as np
import safetensors.numpy
import torch
import transformers as tr

import model_runs as runs

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "gguf_model"
IDS = [6, 17, 36, 8, 31, 22, 9, 13, 38, 7, 26, 12]
LLAMA = dict(vocab_size=45, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=32, max_position_embeddings=40, bos_token_id=1, eos_token_id=2, pad_token_id=None)
GEMMA = LLAMA | dict(head_dim=8, pad_token_id=0)
LAYER = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.qkv_proj": "attn_qkv", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up", "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down"}
NORMS = LAYER | {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                 "post_feedforward_layernorm": "post_ffw_norm"}
MIXTURE = LAYER | {"mlp.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
                   "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
                   "mlp.shared_expert.down_proj": "ffn_down_shexp"}
GPT_OSS_LAYER = MIXTURE | {"post_attention_layernorm": "post_attention_norm", "mlp.router": "ffn_gate_inp", "self_attn": "attn_sinks"}
EXPERTS = dict(num_experts=5, num_local_experts=5, num_experts_per_tok=2)
ENCODER = dict(vocab_size=45, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32, max_position_embeddings=40)
BERT_LAYER = {"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
              "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
              "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}
NOMIC_LAYER = {"self_attn.qkv_proj": "attn_qkv", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "attn_output_norm",
               "mlp.up_proj": "ffn_up", "mlp.gate_proj": "ffn_gate", "mlp.down_proj": "ffn_down",
               "post_mlp_layernorm": "layer_output_norm"}
T5 = dict(vocab_size=45, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_decoder_layers=3, num_heads=4, relative_attention_num_buckets=8,
          decoder_start_token_id=0, eos_token_id=2, pad_token_id=0)
GPT2_LAYER = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
              "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=12)
# (name, class, fields, architecture, names of layers, type of the matrices)
CASES = [
    ("llama", tr.LlamaForCausalLM, LLAMA, "llama", LAYER, "F32"),
    ("llama-tied", tr.LlamaForCausalLM, LLAMA | dict(tie_word_embeddings=True, rope_parameters=LLAMA3), "llama", LAYER, "F16"),
    ("llama-yarn", tr.LlamaForCausalLM, LLAMA | dict(rope_parameters=dict(
        rope_type="yarn", rope_theta=700.0, factor=4.0, original_max_position_embeddings=10)), "llama", LAYER, "BF16"),
    ("qwen2", tr.Qwen2ForCausalLM, LLAMA, "qwen2", LAYER, "F32"),
    ("qwen3", tr.Qwen3ForCausalLM, LLAMA | dict(head_dim=10), "qwen3", LAYER, "F32"),
    ("gemma", tr.GemmaForCausalLM, GEMMA, "gemma", LAYER, "F32"),
    ("gemma2", tr.Gemma2ForCausalLM, GEMMA | dict(sliding_window=4, query_pre_attn_scalar=8), "gemma2", NORMS, "F32"),
    ("gemma3", tr.Gemma3ForCausalLM, GEMMA | dict(sliding_window=4, query_pre_attn_scalar=8, num_hidden_layers=6),
     "gemma3", NORMS, "Q8_0"),
    ("olmo2", tr.Olmo2ForCausalLM, LLAMA, "olmo2", NORMS, "F32"),
    ("phi3", tr.Phi3ForCausalLM, LLAMA | dict(sliding_window=5, original_max_position_embeddings=12, rope_parameters=dict(
        rope_type="longrope", rope_theta=500.0, short_factor=[1.0, 1.1, 1.3, 2.0], long_factor=[1.3, 4.0, 5.0, 6.0],
        original_max_position_embeddings=12, partial_rotary_factor=1.0)), "phi3", LAYER, "F32"),
    ("starcoder2", tr.Starcoder2ForCausalLM, LLAMA, "starcoder2", LAYER, "F32"),
    ("mixtral", tr.MixtralForCausalLM, LLAMA | EXPERTS, "llama", MIXTURE, "F32"),
    ("mixtral-q8_0", tr.MixtralForCausalLM, LLAMA | EXPERTS, "llama", MIXTURE, "Q8_0"),
    ("qwen2moe", tr.Qwen2MoeForCausalLM, LLAMA | EXPERTS | dict(moe_intermediate_size=7, shared_expert_intermediate_size=14),
     "qwen2moe", MIXTURE, "F32"),
    ("qwen3moe", tr.Qwen3MoeForCausalLM, LLAMA | EXPERTS | dict(head_dim=10, moe_intermediate_size=7, norm_topk_prob=True),
     "qwen3moe", MIXTURE, "F16"),
    ("olmoe", tr.OlmoeForCausalLM, LLAMA | EXPERTS, "olmoe", MIXTURE, "F32"),
    ("gpt-oss", tr.GptOssForCausalLM, LLAMA | EXPERTS | dict(head_dim=8, sliding_window=4, intermediate_size=24, rope_parameters=dict(
        rope_type="yarn", rope_theta=700.0, factor=4.0, original_max_position_embeddings=10, beta_fast=32.0, beta_slow=1.0,
        truncate=False)), "gpt-oss", GPT_OSS_LAYER, "F32"),
    ("gpt-oss-mxfp4", tr.GptOssForCausalLM, LLAMA | EXPERTS | dict(head_dim=8, sliding_window=4), "gpt-oss", GPT_OSS_LAYER, "MXFP4"),
    ("bert", tr.BertModel, ENCODER, "bert", BERT_LAYER, "F32"),
    ("bert-q8_0", tr.BertModel, ENCODER | dict(type_vocab_size=3), "bert", BERT_LAYER, "Q8_0"),
    ("nomic-bert", tr.NomicBertModel, ENCODER, "nomic-bert", NOMIC_LAYER, "F16"),
    ("t5", tr.T5ForConditionalGeneration, T5 | dict(feed_forward_proj="relu"), "t5", {}, "F32"),
    ("t5-gated-q8_0", tr.T5ForConditionalGeneration, T5 | dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False,
                                                               scale_decoder_outputs=False), "t5", {}, "Q8_0"),
    ("t5encoder", tr.T5EncoderModel, T5 | dict(feed_forward_proj="gated-gelu"), "t5encoder", {}, "F16"),
    ("gpt2", tr.GPT2LMHeadModel, dict(vocab_size=45, n_positions=40, n_embd=32, n_layer=2, n_head=4, bos_token_id=1,
                                      eos_token_id=1), "gpt2", GPT2_LAYER, "F32"),
] + [(f"llama-{kind.lower()}", tr.LlamaForCausalLM, LLAMA, "llama", LAYER, kind)
     for kind in ("Q4_0", "Q8_0", "MXFP4")]
BLOCKS = ["IQ4_NL", "IQ4_XS", "MXFP4", "Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0"]


def t5_name(name):
    """As convert_hf_to_gguf.py calls them."""
    ends = {"shared.weight": "token_embd.weight", "lm_head.weight": "output.weight"}
    if name in ends:
        return ends[name]
    stack, rest = name.split(".", 1)
    if rest == "final_layer_norm.weight":
        return f"{stack[:3]}.output_norm.weight"
    _, layer, _, number, module, *inner = rest.split(".")
    forward = "1" if stack == "encoder" else "2"
    if module == "layer_norm":
        part = "ffn_norm" if number == forward else "attn_norm" if number == "0" else "cross_attn_norm"
    elif module == "DenseReluDense":
        part = {"wi": "ffn_up", "wi_0": "ffn_gate", "wi_1": "ffn_up", "wo": "ffn_down"}[inner[0]]
    else:
        what = "rel_b" if inner[0] == "relative_attention_bias" else inner[0]
        part = ("cross_" if module == "EncDecAttention" else "") + f"attn_{what}"
    return f"{stack[:3]}.blk.{layer}.{part}.weight"


def own_name(name, layers):
    ends = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "transformer.wte": "token_embd",
            "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
            "embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
            "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm"}
    stem, _, what = name.rpartition(".")
    if what == "sinks":
        what = "weight"
    if stem in ends:
        return f"{ends[stem]}.{what}"
    for prefix in ("model.layers.", "transformer.h.", "encoder.layer.", "layers."):
        stem = stem.removeprefix(prefix)
    layer, _, stem = stem.partition(".")
    return f"blk.{layer}.{layers[stem]}.{what}"


def permuted(tensor, heads):
    """Pairs of features as neighbours."""
    shape = tensor.shape
    return tensor.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def experts_of(hf, values, architecture):
    """What transformers has of all experts of a layer, as (llama.cpp's name, a view of its part of `values`)."""
    _, _, layer, _, _, what = hf.split(".")
    own = f"blk.{layer}.ffn_{{}}_exps.{'bias' if what.endswith('_bias') else 'weight'}"
    if what.startswith("down_proj"):
        parts = [("down", values)]
    elif architecture == "gpt-oss":
        parts = [("gate", values[..., 0::2]), ("up", values[..., 1::2])]
    else:
        parts = list(zip(("gate", "up"), np.split(values, 2, axis=1)))
    turned = architecture == "gpt-oss" and values.ndim == 3
    return [(own.format(part), view.swapaxes(1, 2) if turned else view) for part, view in parts]


def restored(tensor, heads):
    shape = tensor.shape
    return tensor.reshape(heads, shape[0] // heads // 2, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def make_blocks():
    """Random bytes as blocks of each type, and their numbers: all codes, and scales that are not finite."""
    rng = np.random.default_rng(5)
    tensors = {}
    for name in BLOCKS:
        kind = gguf.GGMLQuantizationType[name]
        raw = rng.integers(0, 256, (6, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
        with np.errstate(all="ignore"):
            tensors[name + ".numbers"] = gguf.quants.dequantize(raw.reshape(1, -1), kind).reshape(-1).view(np.uint32)
        tensors[name + ".bytes"] = raw.reshape(-1)
    safetensors.numpy.save_file(tensors, OUT / "blocks.safetensors")


def make_encoded():
    """Numbers of many sizes, with ties, zeros and tiny ones, and the blocks that the package makes of them."""
    rng = np.random.default_rng(6)
    numbers = rng.standard_normal((20, 256), dtype=np.float32) * np.exp2(rng.integers(-20, 12, (20, 1))).astype(np.float32)
    numbers[0] = 0
    numbers[1] = 3.25
    numbers[2] = -0.75
    numbers[3] = rng.integers(-254, 255, 256) / 2  # with a scale of 1 halves are ties
    numbers[3, ::32] = 127
    numbers[4] = rng.integers(-16, 17, 256) / 2
    numbers[4, ::32] = -8
    numbers[5] *= np.float32(1e-30)
    numbers[6, 40:] = 0
    tensors = {"numbers": numbers.reshape(-1)}
    for name in ("Q8_0", "Q4_0"):
        tensors[name] = gguf.quants.quantize(numbers, gguf.GGMLQuantizationType[name]).reshape(-1)
    safetensors.numpy.save_file(tensors, OUT / "encoded.safetensors")


def write_config(writer, config, architecture, model):
    if architecture.startswith("t5"):
        writer.add_context_length(512)
        writer.add_embedding_length(config.d_model)
        writer.add_feed_forward_length(config.d_ff)
        writer.add_block_count(config.num_layers)
        if architecture == "t5":
            writer.add_decoder_block_count(config.num_decoder_layers)
        writer.add_head_count(config.num_heads)
        writer.add_key_length(config.d_kv)
        writer.add_value_length(config.d_kv)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        writer.add_relative_attn_buckets_count(config.relative_attention_num_buckets)
        writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
        writer.add_decoder_start_token_id(config.decoder_start_token_id)
        writer.add_pad_token_id(config.pad_token_id)
        return writer.add_eos_token_id(config.eos_token_id)
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    if architecture == "gpt2":
        writer.add_feed_forward_length(4 * config.n_embd)
        return writer.add_layer_norm_eps(config.layer_norm_epsilon)
    writer.add_feed_forward_length(config.intermediate_size)
    if architecture in ("bert", "nomic-bert"):
        writer.add_layer_norm_eps(config.layer_norm_eps)
        writer.add_causal_attention(False)
        writer.add_pooling_type(gguf.PoolingType.MEAN)
        writer.add_token_type_count(config.type_vocab_size)
        if architecture == "nomic-bert":
            writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
        return None
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_vocab_size(config.vocab_size)
    if architecture == "starcoder2":
        writer.add_layer_norm_eps(config.norm_epsilon)
    else:
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if getattr(config, "num_experts_per_tok", None):
        writer.add_expert_count(EXPERTS["num_experts"])
        writer.add_expert_used_count(config.num_experts_per_tok)
    if architecture in ("qwen2moe", "qwen3moe"):
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if architecture == "qwen2moe":
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    if architecture == "gpt-oss":
        writer.add_expert_feed_forward_length(config.intermediate_size)
    if architecture not in ("qwen2", "qwen2moe", "starcoder2", "olmo2", "olmoe"):
        writer.add_key_length(head)
        writer.add_value_length(head)
    rope = config.rope_parameters
    if architecture == "gemma3":
        writer.add_rope_freq_base(rope["full_attention"]["rope_theta"])
    else:
        writer.add_rope_freq_base(rope["rope_theta"])
    if architecture in ("llama", "phi3"):
        writer.add_rope_dimension_count(head)
    if architecture in ("gemma2", "gemma3", "phi3", "gpt-oss"):
        writer.add_sliding_window(config.sliding_window)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    kind = "default" if architecture == "gemma3" else rope["rope_type"]
    if kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        for name in ("beta_fast", "beta_slow"):
            if name in rope:
                getattr(writer, f"add_rope_scaling_yarn_{name}")(rope[name])
    if kind == "longrope":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_attn_factors(model.model.rotary_emb.attention_scaling)
        for name in ("long", "short"):
            writer.add_tensor(f"rope_factors_{name}.weight", np.array(rope[name + "_factor"], np.float32))
    if kind == "llama3":
        plain = 1.0 / (rope["rope_theta"] ** (np.arange(0, head, 2, dtype=np.float32) / head))
        writer.add_tensor("rope_freqs.weight", (plain / model.model.rotary_emb.inv_freq.numpy()).astype(np.float32))


def store(writer, own, values, kind):
    """Adds a tensor, and returns the numbers that the file has of it."""
    values = np.ascontiguousarray(values, np.float32)
    in_float = values.ndim < 2 or not own.endswith(".weight") or own.startswith(("position_embd", "token_types")) or ".ffn_gate_inp." in own
    if in_float or kind == "F32":
        writer.add_tensor(own, values)
        return values
    if values.shape[-1] % 32 != 0 and kind != "BF16":  # as the converter does
        kind = "F16"
    own_type = gguf.GGMLQuantizationType[kind]
    stored = gguf.quants.quantize(values, own_type)
    writer.add_tensor(own, stored, raw_dtype=None if kind == "F16" else own_type)
    if kind in ("F16", "BF16"):
        return torch.tensor(values).to(torch.float16 if kind == "F16" else torch.bfloat16).float().numpy()
    return gguf.quants.dequantize(stored, own_type)


def make(name, model_class, fields, architecture, layers, kind):
    model = model_class(model_class.config_class(experts_implementation="eager", **fields))
    runs.randomise(model, name, 0.3)
    model.eval()
    config = model.config
    writer = gguf.GGUFWriter(OUT / f"{name}.gguf", architecture)
    write_config(writer, config, architecture, model)
    state = model.state_dict()
    tied = getattr(config, "tie_word_embeddings", False)
    for hf, tensor in list(state.items()):
        if hf.startswith("pooler.") or hf.endswith(".embed_tokens.weight"):  # as llama.cpp's converter does
            continue
        if architecture == "t5" and hf == "lm_head.weight" and config.scale_decoder_outputs:
            continue  # a file of T5 1.0 has no head of its own
        if architecture.startswith("t5"):
            state[hf] = torch.tensor(store(writer, t5_name(hf), tensor.numpy(), kind))
            continue
        if hf == "lm_head.weight" and tied:
            continue
        values = tensor.numpy()
        if ".experts." in hf:
            for own, part in experts_of(hf, values, architecture):
                part[...] = store(writer, own, part, kind)
            continue
        if architecture == "nomic-bert" and re.search("[qkv]_proj", hf):
            if "q_proj" in hf:
                names = [hf.replace("q_proj", f"{part}_proj") for part in "qkv"]
                joined = store(writer, own_name(hf.replace("q_proj", "qkv_proj"), layers),
                               np.concatenate([state[name].numpy() for name in names]), kind)
                state |= {name: torch.tensor(part.copy()) for name, part in zip(names, np.split(joined, 3))}
            continue
        own = own_name(hf, layers)
        if own.endswith("ffn_gate_inp_shexp.weight"):
            values = store(writer, own, values[0], kind)[None]
            state[hf] = torch.tensor(values)
            continue
        matrix = values.ndim == 2
        transposed = architecture == "gpt2" and matrix and own.startswith("blk.")
        if transposed:
            values = values.T
        heads = None
        if architecture == "llama" and (".attn_q." in own or ".attn_k." in own):
            heads = config.num_attention_heads if ".attn_q." in own else config.num_key_value_heads
            values = permuted(values, heads)
        plus_one = architecture.startswith("gemma") and own.endswith("norm.weight")
        if plus_one:
            values = values + 1
        values = store(writer, own, values, kind)
        if plus_one:
            values = values - 1
        if heads:
            values = restored(values, heads)
        if transposed:
            values = values.T
        state[hf] = torch.tensor(np.ascontiguousarray(values))
    if architecture == "t5":
        state["decoder.embed_tokens.weight"] = state["shared.weight"]
    if architecture.startswith("t5"):
        state["encoder.embed_tokens.weight"] = state["shared.weight"]
    if tied and "lm_head.weight" in state:
        state["lm_head.weight"] = state[next(iter(state))]
    model.load_state_dict(state)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model = model.double()
    ids = [i % config.vocab_size for i in IDS]
    if architecture in ("bert", "nomic-bert", "t5encoder"):
        types = [i % getattr(config, "type_vocab_size", 1) for i in range(len(ids))]
        more = {} if architecture == "t5encoder" else dict(token_type_ids=torch.tensor([types]))
        with torch.no_grad(), runs.doubled():
            states = model(input_ids=torch.tensor([ids]), **more).last_hidden_state[0].numpy()
        safetensors.numpy.save_file({"ids": np.array(ids, np.int32), "types": np.array(types, np.int32),
                                     "states": states.astype(np.float32)}, OUT / f"{name}.logits.safetensors")
        print(name, (OUT / f"{name}.gguf").stat().st_size, f"largest state {abs(states).max():.3g}", flush=True)
        return
    if architecture == "t5":
        with torch.no_grad(), runs.doubled():
            logits = model(input_ids=torch.tensor([ids[::-1]]), decoder_input_ids=torch.tensor([ids])).logits[0].numpy()
        safetensors.numpy.save_file({"ids": np.array(ids, np.int32), "source": np.array(ids[::-1], np.int32),
                                     "logits": logits.astype(np.float32)}, OUT / f"{name}.logits.safetensors")
        print(name, (OUT / f"{name}.gguf").stat().st_size, f"largest logit {abs(logits).max():.3g}", flush=True)
        return
    with torch.no_grad(), runs.doubled():
        logits = model(torch.tensor([ids])).logits[0].numpy()
    assert np.isfinite(logits).all()
    safetensors.numpy.save_file({"ids": np.array(ids, np.int32), "logits": logits.astype(np.float32)},
                                OUT / f"{name}.logits.safetensors")
    print(name, (OUT / f"{name}.gguf").stat().st_size, f"largest logit {abs(logits).max():.3g}", flush=True)


def make_split():
    """llama.gguf in parts of at most 8 tensors."""
    reader = gguf.GGUFReader(OUT / "llama.gguf")
    (OUT / "split").mkdir(exist_ok=True)
    writer = gguf.GGUFWriter(OUT / "split" / "llama.gguf", "llama", split_max_tensors=8)
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            writer.add_key_value(field.name, field.contents(), field.types[0])
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print("split", sorted(path.name for path in (OUT / "split").iterdir()))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    make_blocks()
    for case in CASES:
        if case[0].startswith(tuple(sys.argv[1:]) or ("",)):
            make(*case)
    make_split()
    make_encoded()


if __name__ == "__main__":
    main()
