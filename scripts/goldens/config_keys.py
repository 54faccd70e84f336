#!/usr/bin/env python3
"""Writes tests/data/config_keys/values.jsonl: what transformers computes when one key of config.json changes.

A line is one case of tests/data/model, or of tests/data/encoder_decoder, whose encoder reads SOURCE, with its ids and

  base     the last state of the last token, its first three numbers, then three of its logits
  same     [key, value]: each alone gives exactly these numbers; [key]: without the key
  other    [key, value, numbers] or [key, null, numbers] (without the key): other numbers

Changes with which transformers fails or makes random weights are left out. Every key of the config is changed and removed, and keys of other families are added. Computed in float64.
With arguments: only the lines of these cases are made anew.
Run with HF_HUB_OFFLINE=1. Versions: torch 2.15.0, transformers 5.24.0.
"""

import contextlib
import io
import json
import logging
import pathlib
import sys
import tempfile
import warnings

import torch
import transformers

import diffusion_classes

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "model"
CASES = ("albert_groups bert bert_relu_untied deberta_v2_conv deberta_v3 distilbert electra_discriminator "
         "electra_generator gpt2 gpt_neox gpt_neox_serial llama_bias llama_scaled modernbert modernbert_bias mpnet "
         "roberta roformer_value t5_encoder t5_gated xlm_roberta xlnet "
         "mistral ministral qwen2 qwen3 qwen3_windows gemma gemma2 gemma3 gemma3_hub olmo olmo2 phi phi_tied phi3 "
         "phi3_window stablelm stablelm_serial smollm3 smollm3_windows granite cohere cohere_plain starcoder2 "
         "esm esm_absolute eurobert eurobert_bias nomic_bert gptj gpt_neo gpt_neo_local bloom mpt mpt_plain opt opt_post "
         "falcon falcon_groups falcon_one_norm falcon_serial falcon_rw opt_narrow longformer big_bird big_bird_long big_bird_full fnet "
         "mixtral qwen2_moe qwen2_moe_windows qwen3_moe qwen3_moe_windows olmoe gpt_oss gpt_oss_plain "
         "llada llada_bias llada_tied llada_plain dream dream_tied "
         "encoder_decoder/t5 encoder_decoder/t5_untied encoder_decoder/mt5 encoder_decoder/bart "
         "encoder_decoder/bart_scaled encoder_decoder/mbart").split()
SOURCE = [7, 21, 4, 30, 11]
IDS = [6, 17, 36, 8, 31, 22, 9, 13, 38, 7, 26, 12]
FOREIGN = {
    "add_cross_attention": [True], "alibi": [True], "attention_chunk_size": [4], "attention_multiplier": [0.5],
    "attn_logit_softcapping": [5.0], "attn_implementation": ["sdpa"], "classifier_pooling": ["mean"],
    "chunk_size_feed_forward": [3], "clip_qkv": [0.1], "embedding_multiplier": [2.0], "embedding_size": [24],
    "final_logit_softcapping": [1.0], "gradient_checkpointing": [True], "head_dim": [2, 4], "hidden_act": ["relu"],
    "hidden_activation": ["relu"], "is_causal": [True, False], "is_decoder": [True], "is_encoder_decoder": [True],
    "layer_types": [["full_attention"] * 2, ["sliding_attention"] * 2], "layer_norm_eps": [0.1],
    "logit_scale": [2.0], "logits_scaling": [2.0], "max_length": [3], "mlp_bias": [True], "attention_bias": [True],
    "model_max_length": [4], "n_ctx": [5], "num_key_value_heads": [1], "num_labels": [5], "output_past": [True],
    "partial_rotary_factor": [0.5], "position_embedding_type": ["relative_key", "absolute"], "pretraining_tp": [2],
    "problem_type": ["regression"], "pruned_heads": [{}], "quantization_config": [{"quant_method": "fp8"}],
    "query_pre_attn_scalar": [3.0], "reorder_and_upcast_attn": [True], "residual_multiplier": [2.0],
    "rms_norm_eps": [0.1], "rope_parameters": [{"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}],
    "rope_scaling": [{"type": "linear", "factor": 4.0}, {"rope_type": "default"}], "rope_theta": [100.0],
    "rotary_pct": [0.5], "rotary_emb_base": [100], "scale_embedding": [True], "sliding_window": [3, 4096],
    "summary_type": ["last"], "tie_encoder_decoder": [True], "tie_word_embeddings": [True, False],
    "torch_dtype": ["float32"], "type_vocab_size": [1], "use_bidirectional_attention": [True],
    "use_qk_norm": [True], "use_sliding_window": [True], "original_max_position_embeddings": [4],
    "max_window_layers": [0, 1], "no_rope_layer_interval": [1, 3], "no_rope_layers": [[1, 1], [0, 0, 1], [1]],
    "qk_layernorm": [True], "rope_local_base_freq": [50.0], "rope_interleaved": [True], "sliding_window_pattern": [2, 3],
    "token_dropout": [True, False], "emb_layer_norm_before": [True], "is_folding_model": [True],
    "apply_residual_connection_post_layernorm": [True], "slow_but_exact": [True], "rotary_dim": [2],
    "attention_layers": [["global"] * 2, ["local", "global"]], "window_size": [2],
    "attn_config": [{"alibi": False}, {"qk_ln": True}, {"prefix_lm": True}, {"alibi_bias_max": 4}, {"clip_qkv": 0.2}],
    "new_decoder_architecture": [True], "multi_query": [False], "parallel_attn": [False],
    "num_ln_in_parallel_attn": [1, 2], "num_kv_heads": [2, 1], "bias": [True], "ffn_hidden_size": [12],
    "no_bias": [False], "expansion_ratio": [2], "learned_pos_emb": [False], "max_seq_len": [64],
    "do_layer_norm_before": [False], "_remove_final_layer_norm": [True], "word_embed_proj_dim": [12],
    "enable_bias": [False], "layer_norm_elementwise_affine": [False],
    "num_experts": [2], "num_local_experts": [2], "num_experts_per_tok": [1], "norm_topk_prob": [True, False],
    "decoder_sparse_step": [2], "mlp_only_layers": [[0], [1]], "moe_intermediate_size": [6],
    "output_router_logits": [True], "router_jitter_noise": [0.5], "swiglu_alpha": [1.0], "swiglu_limit": [0.1],
    "use_bias": [False], "use_parallel_residual": [True], "use_qkv_bias": [True],
}
# Added to encoder–decoders alone.
OF_DECODERS = {
    "add_bias_logits": [True], "add_final_layer_norm": [True, False], "decoder_start_token_id": [3], "extra_pos_embeddings": [5],
    "normalize_before": [True, False], "normalize_embedding": [False], "num_decoder_layers": [1], "num_hidden_layers": [1, 2],
    "scale_decoder_outputs": [True, False], "static_position_embeddings": [True],
}


# Of one case only.
ACTIVATIONS = ["gelu", "gelu_10", "gelu_accurate", "gelu_fast", "gelu_python", "gelu_python_tanh", "gelu_pytorch_tanh", "hardswish",
               "laplace", "leaky_relu", "linear", "mish", "prelu", "quick_gelu", "relu2", "relu6", "sigmoid", "silu", "sqrtsoftplus",
               "swish", "tanh", "xielu"]
OF_CASE = {"bert": [("hidden_act", name) for name in ACTIVATIONS],
           "longformer": [("attention_window", width) for width in (2, 3, 0, [4, 4], [4])],
           "big_bird": [("attention_type", "original_full"), ("rescale_embeddings", True), ("use_bias", False)],
           "deberta_v3": [("max_position_embeddings", length) for length in (5, 9)]}


def values_of(key, value):
    """Other values of a key that the config has."""
    if key in ("architectures", "model_type", "dtype", "torch_dtype"):
        return []
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 2 * value] + ([value - 1] if value > 1 else [])
    if isinstance(value, float):
        return [value * 1.5 + 0.01]
    if isinstance(value, str):
        return ["relu", "gelu_new", "none"]
    if isinstance(value, list):
        return [value[::-1], value[:1]]
    if isinstance(value, dict):
        return [{k: v * 2 if isinstance(v, float) else v for k, v in value.items()}, {}]
    return [1, True, 0.5]


def numbers_of(folder, config, model_class):
    """The numbers, and all outputs; nothing where there are none."""
    with tempfile.TemporaryDirectory() as temp:
        temp = pathlib.Path(temp)
        (temp / "config.json").write_text(json.dumps(config))
        (temp / "model.safetensors").symlink_to(folder / "model.safetensors")
        try:
            with contextlib.redirect_stderr(io.StringIO()), torch.no_grad():
                # XLNet makes its positions in float32, and so runs in it alone.
                dtype = torch.float32 if config["model_type"] == "xlnet" else torch.float64
                model, info = model_class.from_pretrained(temp, dtype=dtype, experts_implementation="eager",
                                                          output_loading_info=True)
                # RoFormer's table of sinusoids is no weight.
                if any("embed_positions" not in key for key in info["missing_keys"]) or info["mismatched_keys"]:
                    return None
                model.eval()
                xlnet = config["model_type"] == "xlnet"
                if folder.parent.name == "encoder_decoder":
                    out = model(torch.tensor([SOURCE]), decoder_input_ids=torch.tensor([IDS]), output_hidden_states=True)
                    out.hidden_states = out.decoder_hidden_states
                else:
                    out = model(torch.tensor([IDS]), output_hidden_states=not xlnet, return_dict=True)
                decoder = getattr(model.base_model, "decoder", None)
                if getattr(decoder, "project_out", None) is not None:  # OPT: states in front of it
                    decoder.project_out = None
                    out.hidden_states = model.base_model(torch.tensor([IDS]), output_hidden_states=True).hidden_states
                if xlnet:  # whose lists of states are empty
                    out.last_hidden_state = model.transformer(torch.tensor([IDS]), return_dict=True).last_hidden_state
        except Exception:  # noqa: BLE001 - whatever a config can break
            return None
    last = out.last_hidden_state if hasattr(out, "last_hidden_state") else out.hidden_states[-1]
    if len(last) == 0:  # of XLNet with some changes
        return None
    states = last[0]
    logits = out.logits[0] if hasattr(out, "logits") else states[:, :0]
    if logits.dim() == 1:
        logits = logits[:, None]
    if not (torch.isfinite(states).all() and torch.isfinite(logits).all()):
        return None
    return [round(x, 8) for x in states[-1, :3].tolist() + logits[-1, :3].tolist()], torch.cat([states, logits], 1)


def line_of(name):
    folder = (DATA.parent if "/" in name else DATA) / name
    config = json.loads((folder / "config.json").read_text())
    name_of_class = config["architectures"][0]
    model_class = getattr(transformers, name_of_class, None) or getattr(diffusion_classes, name_of_class)
    base, whole = numbers_of(folder, config, model_class)
    line = {"case": name, "ids": IDS, "base": base, "same": [], "other": []}
    changes = [(key, value) for key in config for value in values_of(key, config[key])]
    changes += OF_CASE.get(name, [])
    changes += [(key, None) for key in config if key not in ("architectures", "model_type")]
    foreign = FOREIGN | (OF_DECODERS if "/" in name else {})
    changes += [(key, value) for key, values in foreign.items() for value in values
                if key not in config or value not in [config[key]] + values_of(key, config[key])]
    failed = 0
    for key, value in changes:
        changed = dict(config)
        if value is None:
            del changed[key]
        else:
            changed[key] = value
        found = numbers_of(folder, changed, model_class)
        change = [key] if value is None else [key, value]
        if found is None:
            failed += 1
        elif found[1].shape == whole.shape and (found[1] - whole).abs().max() < 1e-12:
            line["same"].append(change)
        else:
            line["other"].append([key, value, found[0]])
    print(name, *(f"{kind} {len(line[kind])}" for kind in ("same", "other")), "failed", failed, flush=True)
    return json.dumps(line, separators=(",", ":"))


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    path = DATA.parent / "config_keys/values.jsonl"
    lines = {json.loads(line)["case"]: line for line in path.read_text().splitlines()} if path.exists() else {}
    for name in sys.argv[1:] or CASES:
        lines[name] = line_of(name)
        path.write_text("".join(lines[name] + "\n" for name in CASES if name in lines))


if __name__ == "__main__":
    main()
