#!/usr/bin/env python3
"""Writes tests/data/family: what transformers saves for a small language model of every family.

Per family and variant, a model is built from a config, saved with tied embeddings and saved again
with tie_word_embeddings=False:

  <family>-<variant>.config.json  the config.json of the tied save
  <family>-<variant>.tensors.tsv  name, shape ("101,30"), "tied" or "untied-only"; sorted by name

  starts.tsv                      how the tied tensors start, by 100 models of each case

"tied" rows are all tensors of the tied save; "untied-only" rows appear only in the untied one. No
sizes of a config are equal by chance, so that mixed-up dimensions show. Nothing is downloaded, and
no weights are kept. The same rows with the dtype go to standard output. With arguments: only the cases whose
<family>-<variant> begins with one of them.

A row of starts.tsv is case, tensor, number of values, mean, standard deviation, the largest distance
from 0 in standard deviations, and the rows that are 0 in every model ("-": none, they are left out of the
numbers). Layers after the first start as that does and have no rows.

Written with transformers 5.23.0, torch 2.15.0, safetensors 0.8.0. Run from anywhere:
  HF_HUB_OFFLINE=1 python scripts/goldens/family_tensors.py
"""

import pathlib
import sys
import tempfile

import numpy
import safetensors
import torch
import transformers as tr

import diffusion_classes as diffusion
import model_runs as runs

MODELS = 100
# What a file calls otherwise than the model.
RENAMED = {"embed_out.weight": "lm_head.weight"}
# What a file of NomicBERT calls otherwise.
NOMIC = {"encoder.layers": "layers", "emb_ln": "embeddings.LayerNorm", "attn.out_proj": "self_attn.o_proj",
         "fc11": "up_proj", "fc12": "gate_proj", "fc2": "down_proj", "norm1": "post_attention_layernorm",
         "norm2": "post_mlp_layernorm"}
# Tensors of ESM that predict contacts, one that transformers 5.24 saves under a name with a star, and poolers of language
# models (BigBird, FNet), which nothing reads.
LEFT_OUT = ("contact_head.", "*", ".pooler.")
OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "family"

# Shared by the families with BERT's field names. Heads 3 of width 10.
BERT = dict(
    vocab_size=101, hidden_size=30, num_hidden_layers=2, num_attention_heads=3,
    intermediate_size=47, max_position_embeddings=37, type_vocab_size=2,
)
# Another set for the second variant. Heads 2 of width 11.
BERT_B = dict(
    vocab_size=89, hidden_size=22, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=17, max_position_embeddings=41, type_vocab_size=3,
)

# No padding token, which would lie beyond these vocabularies.
LLAMA = dict(
    vocab_size=101, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=47, max_position_embeddings=37, tie_word_embeddings=True,
)
DECODER = LLAMA | dict(num_key_value_heads=2, pad_token_id=None)
NEOX = dict(
    vocab_size=89, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=47, max_position_embeddings=37, tie_word_embeddings=True,
)
MODERN = dict(
    vocab_size=101, hidden_size=24, num_hidden_layers=3, num_attention_heads=4,
    intermediate_size=47, max_position_embeddings=37, local_attention=8,
    pad_token_id=1, bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3,
)
LLADA = dict(
    d_model=24, n_heads=4, n_kv_heads=2, n_layers=2, mlp_hidden_size=47, activation_type="silu", block_type="llama",
    rope=True, layer_norm_type="rms", max_sequence_length=37, vocab_size=101, embedding_size=101, weight_tying=True,
    pad_token_id=3, eos_token_id=3, mask_token_id=4, init_fn="mitchell")
T5 = dict(
    vocab_size=101, d_model=24, d_kv=5, num_heads=3, d_ff=47, num_layers=2,
    relative_attention_num_buckets=10, relative_attention_max_distance=16,
)

# (family, variant, model class, config fields)
BART = dict(vocab_size=40, d_model=24, encoder_layers=2, decoder_layers=1, encoder_attention_heads=3,
            decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=20, max_position_embeddings=20)
CASES = [
    ("bert", "plain", tr.BertForMaskedLM, BERT),
    ("bert", "nopad", tr.BertForMaskedLM, BERT_B | dict(pad_token_id=None)),
    ("roberta", "plain", tr.RobertaForMaskedLM, BERT | dict(type_vocab_size=1)),
    ("roberta", "xlm", tr.XLMRobertaForMaskedLM, BERT_B | dict(type_vocab_size=1)),
    ("roberta", "camembert", tr.CamembertForMaskedLM, BERT_B),
    ("distilbert", "plain", tr.DistilBertForMaskedLM, dict(
        vocab_size=101, dim=30, n_layers=2, n_heads=3, hidden_dim=47, max_position_embeddings=37)),
    ("distilbert", "sinusoid", tr.DistilBertForMaskedLM, dict(
        vocab_size=89, dim=22, n_layers=1, n_heads=2, hidden_dim=17, max_position_embeddings=41,
        sinusoidal_pos_embds=True)),
    ("albert", "plain", tr.AlbertForMaskedLM, BERT | dict(embedding_size=13)),
    # Its mapping from 22 to 22 stays; 5 layers in 2 groups of 3 different inner layers.
    ("albert", "groups", tr.AlbertForMaskedLM, BERT_B | dict(
        embedding_size=22, num_hidden_layers=5, num_hidden_groups=2, inner_group_num=3)),
    ("electra", "plain", tr.ElectraForMaskedLM, BERT | dict(embedding_size=13)),
    ("electra", "square", tr.ElectraForMaskedLM, BERT_B | dict(embedding_size=22)),
    ("roformer", "plain", tr.RoFormerForMaskedLM, BERT),
    # An even head: rotations need pairs.
    ("roformer", "factorised", tr.RoFormerForMaskedLM, BERT_B | dict(
        embedding_size=13, hidden_size=20)),
    ("gpt2", "plain", tr.GPT2LMHeadModel, dict(
        vocab_size=101, n_positions=37, n_embd=30, n_layer=2, n_head=3,
        bos_token_id=1, eos_token_id=1)),
    ("gpt2", "inner", tr.GPT2LMHeadModel, dict(
        vocab_size=89, n_positions=41, n_embd=22, n_layer=1, n_head=2, n_inner=17,
        bos_token_id=1, eos_token_id=1)),
    ("xlnet", "plain", tr.XLNetLMHeadModel, dict(
        vocab_size=101, d_model=30, n_layer=2, n_head=3, d_inner=47)),
    ("xlnet", "uni", tr.XLNetLMHeadModel, dict(
        vocab_size=89, d_model=28, n_layer=1, n_head=7, d_head=4, d_inner=17, attn_type="uni")),
    ("llama", "plain", tr.LlamaForCausalLM, LLAMA | dict(num_key_value_heads=2)),
    ("llama", "bias", tr.LlamaForCausalLM, LLAMA | dict(
        attention_bias=True, mlp_bias=True, head_dim=8, pad_token_id=3)),
    ("llama", "mistral", tr.MistralForCausalLM, DECODER | dict(head_dim=8)),
    ("llama", "qwen2", tr.Qwen2ForCausalLM, DECODER),
    ("llama", "qwen3", tr.Qwen3ForCausalLM, DECODER | dict(head_dim=8, attention_bias=True)),
    ("llama", "gemma", tr.GemmaForCausalLM, DECODER | dict(head_dim=8, pad_token_id=3)),
    ("llama", "gemma2", tr.Gemma2ForCausalLM, DECODER | dict(head_dim=8)),
    ("llama", "gemma3", tr.Gemma3ForCausalLM, DECODER | dict(head_dim=8)),
    ("llama", "olmo", tr.OlmoForCausalLM, DECODER),
    ("llama", "olmo2", tr.Olmo2ForCausalLM, DECODER),
    ("llama", "phi", tr.PhiForCausalLM, DECODER | dict(
        qk_layernorm=True, num_attention_heads=3, num_key_value_heads=3)),
    ("llama", "phi3", tr.Phi3ForCausalLM, DECODER),
    ("llama", "stablelm", tr.StableLmForCausalLM, DECODER | dict(
        num_attention_heads=6, qk_layernorm=True, use_qkv_bias=True, partial_rotary_factor=0.5)),
    ("llama", "stablelm_parallel", tr.StableLmForCausalLM, DECODER | dict(
        num_attention_heads=6, use_parallel_residual=True, partial_rotary_factor=0.5)),
    ("llama", "smollm3", tr.SmolLM3ForCausalLM, DECODER | dict(mlp_bias=True)),
    ("llama", "granite", tr.GraniteForCausalLM, DECODER | dict(attention_bias=True)),
    ("llama", "cohere", tr.CohereForCausalLM, DECODER | dict(use_qk_norm=True)),
    ("llama", "mixtral", tr.MixtralForCausalLM, DECODER | dict(num_local_experts=3, head_dim=8)),
    ("llama", "qwen2_moe", tr.Qwen2MoeForCausalLM, DECODER | dict(
        num_experts=3, num_experts_per_tok=2, moe_intermediate_size=9, shared_expert_intermediate_size=11, mlp_only_layers=[1])),
    ("llama", "qwen3_moe", tr.Qwen3MoeForCausalLM, DECODER | dict(
        num_experts=3, num_experts_per_tok=2, moe_intermediate_size=9, head_dim=8, attention_bias=True)),
    ("llama", "olmoe", tr.OlmoeForCausalLM, DECODER | dict(num_experts=3, num_experts_per_tok=2)),
    ("llama", "gpt_oss", tr.GptOssForCausalLM, DECODER | dict(num_local_experts=3, num_experts_per_tok=2, head_dim=8)),
    ("llama", "starcoder2", tr.Starcoder2ForCausalLM, DECODER),
    ("llama", "eurobert", tr.EuroBertForMaskedLM, DECODER | dict(attention_bias=True, mlp_bias=True)),
    ("esm", "rotary", tr.EsmForMaskedLM, BERT | dict(
        position_embedding_type="rotary", token_dropout=True, emb_layer_norm_before=True, pad_token_id=1, mask_token_id=4)),
    ("esm", "absolute", tr.EsmForMaskedLM, BERT_B | dict(pad_token_id=1, mask_token_id=4)),
    ("nomic_bert", "plain", tr.NomicBertForMaskedLM, BERT),
    ("gptj", "plain", tr.GPTJForCausalLM, dict(
        vocab_size=101, n_positions=37, n_embd=30, n_layer=2, n_head=3, n_inner=47, rotary_dim=4, bos_token_id=1,
        eos_token_id=1, tie_word_embeddings=True)),
    ("gpt_neo", "plain", tr.GPTNeoForCausalLM, dict(
        vocab_size=101, max_position_embeddings=37, hidden_size=30, num_layers=2, num_heads=3, intermediate_size=47,
        attention_types=[[["global", "local"], 1]], bos_token_id=1, eos_token_id=1)),
    ("bloom", "plain", tr.BloomForCausalLM, dict(
        vocab_size=101, hidden_size=30, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=1)),
    ("falcon", "groups", tr.FalconForCausalLM, dict(
        vocab_size=101, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, num_kv_heads=2, ffn_hidden_size=47,
        max_position_embeddings=37, bos_token_id=1, eos_token_id=1, new_decoder_architecture=True, bias=True)),
    ("falcon", "serial", tr.FalconForCausalLM, dict(
        vocab_size=101, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, ffn_hidden_size=47,
        max_position_embeddings=37, bos_token_id=1, eos_token_id=1, multi_query=False, parallel_attn=False, bias=True)),
    ("mpt", "plain", tr.MptForCausalLM, dict(vocab_size=101, d_model=30, n_layers=2, n_heads=3, max_seq_len=37)),
    ("opt", "plain", tr.OPTForCausalLM, dict(
        vocab_size=101, hidden_size=30, num_hidden_layers=2, num_attention_heads=3, ffn_dim=47, word_embed_proj_dim=30,
        max_position_embeddings=37, bos_token_id=1, eos_token_id=1, pad_token_id=1)),
    ("opt", "narrow", tr.OPTForCausalLM, dict(
        vocab_size=89, hidden_size=22, num_hidden_layers=1, num_attention_heads=2, ffn_dim=17, word_embed_proj_dim=13,
        max_position_embeddings=41, bos_token_id=1, eos_token_id=1, pad_token_id=1, do_layer_norm_before=False)),
    ("falcon", "rw", tr.FalconForCausalLM, dict(
        vocab_size=89, hidden_size=24, num_hidden_layers=1, num_attention_heads=6, ffn_hidden_size=17, alibi=True,
        max_position_embeddings=41, bos_token_id=1, eos_token_id=1, multi_query=False, parallel_attn=False, bias=True)),
    ("longformer", "plain", tr.LongformerForMaskedLM, BERT | dict(attention_window=4, pad_token_id=1)),
    ("big_bird", "plain", tr.BigBirdForMaskedLM, BERT | dict(block_size=4, num_random_blocks=0)),
    ("big_bird", "full", tr.BigBirdForMaskedLM, BERT_B | dict(attention_type="original_full", use_bias=False)),
    ("fnet", "plain", tr.FNetForMaskedLM, dict(
        vocab_size=101, hidden_size=30, num_hidden_layers=2, intermediate_size=47, max_position_embeddings=37)),
    ("gpt_neox", "plain", tr.GPTNeoXForCausalLM, NEOX),
    ("gpt_neox", "serial", tr.GPTNeoXForCausalLM, NEOX | dict(
        use_parallel_residual=False, attention_bias=False)),
    ("modernbert", "plain", tr.ModernBertForMaskedLM, MODERN),
    ("modernbert", "bias", tr.ModernBertForMaskedLM, MODERN | dict(
        norm_bias=True, attention_bias=True, mlp_bias=True, classifier_bias=True,
        initializer_cutoff_factor=1.5)),
    ("llada", "plain", diffusion.LLaDAModelLM, LLADA),
    ("llada", "options", diffusion.LLaDAModelLM, LLADA | dict(
        init_fn="normal", init_std=0.05, init_cutoff_factor=2.0, n_layers=1, attention_layer_norm=True, scale_logits=True,
        include_qkv_bias=True)),
    ("llama", "dream", diffusion.DreamModel, DECODER),
    ("mpnet", "plain", tr.MPNetForMaskedLM, {
        k: v for k, v in BERT.items() if k != "type_vocab_size"}),
    ("deberta_v2", "v3", tr.DebertaV2ForMaskedLM, BERT | dict(
        type_vocab_size=0, relative_attention=True, position_buckets=9, share_att_key=True,
        norm_rel_ebd="layer_norm", pos_att_type="p2c|c2p", position_biased_input=False)),
    ("deberta_v2", "conv", tr.DebertaV2ForMaskedLM, BERT_B | dict(
        relative_attention=True, pos_att_type="p2c|c2p", conv_kernel_size=3)),
    ("t5", "encoder", tr.T5EncoderModel, T5),
    ("t5", "gated", tr.MT5EncoderModel, T5 | dict(
        num_layers=1, feed_forward_proj="gated-gelu", initializer_factor=0.5)),
    ("t5", "whole", tr.T5ForConditionalGeneration, T5 | dict(num_decoder_layers=1)),
    ("t5", "mt5", tr.MT5ForConditionalGeneration, T5 | dict(num_layers=1, feed_forward_proj="gated-gelu")),
    ("bart", "plain", tr.BartForConditionalGeneration, BART),
    ("bart", "mbart", tr.MBartForConditionalGeneration, BART | dict(init_std=0.05)),
]


def save(model_class, fields):
    """Text of config.json, and {name: (shape, dtype)} of the one weight file."""
    model = model_class(model_class.config_class(**fields))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        folder = pathlib.Path(folder)
        config = (folder / "config.json").read_text()
        assert config == model.config.to_json_string()
        with safetensors.safe_open(folder / "model.safetensors", "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys() if not any(out in name for out in LEFT_OUT)}
            tensors = {n: (tuple(s.get_shape()), s.get_dtype()) for n, s in slices.items()}
    # transformers 5.24 saves ESM under the names of old files.
    return config, {n.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): t
                    for n, t in tensors.items()}


def tensor_of(state, name):
    """The tensor of a file's `name` in a model's `state`."""
    if "attn.Wqkv" in name and name not in state:
        name = name.replace("encoder.layers", "layers")
        return torch.cat([state[name.replace("attn.Wqkv", f"self_attn.{part}_proj")] for part in "qkv"])
    for own, tensor in state.items() if ".experts." in name and name not in state else ():
        parts = dict(runs.expert_parts(own, tensor)) if ".experts." in own else {}
        if name in parts:
            return parts[name](tensor)
    if name not in state:
        name = name.replace(".block_sparse_moe.gate.", ".mlp.gate.")
        for old, new in NOMIC.items():
            name = name.replace(old, new)
    return state[RENAMED.get(name, name)]


def starts(model_class, fields, names):
    """Rows of starts.tsv of one case, without the case."""
    values = {name: [] for name in names if not any(f".{l}." in name for l in range(1, 9))}
    for seed in range(MODELS):
        torch.manual_seed(seed)
        state = model_class(model_class.config_class(**fields)).state_dict()
        for name, list_ in values.items():
            list_.append(tensor_of(state, name).double().numpy())
    values.pop("final_logits_bias", None)  # a buffer of zeros
    for name, list_ in values.items():
        all_ = numpy.stack(list_)
        zero = []
        if all_.ndim == 3 and all_.any():
            zero = [row for row in range(all_.shape[1]) if not all_[:, row].any()]
            all_ = numpy.delete(all_, zero, axis=1)
        deviation = all_.std()
        largest = abs(all_).max() / deviation if deviation > 1e-9 else 0
        zero = ",".join(map(str, zero)) or "-"
        yield f"{name}\t{all_.size}\t{all_.mean():.3g}\t{deviation:.4g}\t{largest:.3g}\t{zero}\n"


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    old = list(open(OUT / "starts.tsv")) if sys.argv[1:] else []
    started = []
    for family, variant, model_class, fields in CASES:
        stem = OUT / f"{family}-{variant}"
        if sys.argv[1:] and not any(stem.name.startswith(name) for name in sys.argv[1:]):
            started += [line for line in old if line.split("\t", 1)[0] == stem.name]
            continue
        config, tied = save(model_class, fields)
        tie = getattr(model_class, "TIE", "tie_word_embeddings")
        _, untied = save(model_class, fields | {tie: False})
        assert tied.items() <= untied.items(), "untying changed a tensor"
        rows = []
        print(f"== {stem.name} {model_class.__name__}", flush=True)
        for name, (shape, dtype) in sorted(untied.items()):
            state = "tied" if name in tied else "untied-only"
            shape = ",".join(map(str, shape))
            rows.append(f"{name}\t{shape}\t{state}\n")
            print(f"{name}\t{dtype}\t{shape}\t{state}")
        stem.with_suffix(".config.json").write_text(config)
        stem.with_suffix(".tensors.tsv").write_text("".join(rows))
        started += [f"{stem.name}\t{row}" for row in starts(model_class, fields, tied)]
    (OUT / "starts.tsv").write_text("".join(started))


if __name__ == "__main__":
    main()
