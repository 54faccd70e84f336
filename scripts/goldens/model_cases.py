"""The cases of models.py and compare_models.py: configurations of every family that transformers has."""

import dataclasses
import typing

import torch
import transformers as tr

import diffusion_classes as diffusion


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    model_class: type
    fields: dict
    pos: bool = False  # accepts positions of a caller
    config_edit: typing.Callable = None  # of the parsed config.json, in place: how other versions write it
    other_config: typing.Callable = None  # the same, of files that transformers does not read
    tensors_edit: typing.Callable = None  # of the tensors: how other programs name them
    two_streams: bool = False
    zeroed: tuple = ()  # parameters whose names end so are 0, where other files lack them
    by_batch: bool = False  # the longest text of a batch changes what others give

    @property
    def model_type(self):
        return self.model_class.config_class.model_type


def grown(old, **new):
    return old | new


# Sizes are unequal wherever a model allows it, so that mixed-up dimensions show.
BERT = dict(vocab_size=45, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
            intermediate_size=40, max_position_embeddings=20, type_vocab_size=2)
ROBERTA = grown(BERT, type_vocab_size=1, max_position_embeddings=22, pad_token_id=1, layer_norm_eps=1e-5)
DISTILBERT = dict(vocab_size=45, dim=24, n_layers=2, n_heads=3, hidden_dim=40, max_position_embeddings=20)
GPT2 = dict(vocab_size=45, n_positions=20, n_embd=24, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=1)
NEOX = dict(vocab_size=41, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=28,
            max_position_embeddings=20, bos_token_id=1, eos_token_id=2)
LLAMA = dict(vocab_size=45, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
             intermediate_size=40, max_position_embeddings=20, bos_token_id=1, eos_token_id=2)
XLNET = dict(vocab_size=41, d_model=24, n_layer=2, n_head=3, d_inner=36)
T5 = dict(vocab_size=45, d_model=24, d_kv=6, d_ff=40, num_layers=2, num_decoder_layers=1, num_heads=3,
          relative_attention_num_buckets=8, relative_attention_max_distance=12)
DEBERTA = dict(vocab_size=41, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=36,
               max_position_embeddings=20, type_vocab_size=0, relative_attention=True)
MODERNBERT = dict(vocab_size=45, hidden_size=16, num_hidden_layers=4, num_attention_heads=2,
                  intermediate_size=20, max_position_embeddings=20, local_attention=6, pad_token_id=0,
                  bos_token_id=1, cls_token_id=1, eos_token_id=2, sep_token_id=2)
MPNET = grown(BERT, max_position_embeddings=22, layer_norm_eps=1e-5)
del MPNET["type_vocab_size"]


DECODER = grown(LLAMA, pad_token_id=None)
QWEN = grown(DECODER, sliding_window=4, use_sliding_window=True, max_window_layers=1)
MIXTURE = grown(DECODER, num_experts=5, num_experts_per_tok=3, moe_intermediate_size=7)
GEMMA = grown(LLAMA, num_key_value_heads=1, num_attention_heads=4, head_dim=6, pad_token_id=0)
GEMMA2 = grown(GEMMA, num_key_value_heads=2, query_pre_attn_scalar=9, sliding_window=4)
ESM = dict(vocab_size=45, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
           max_position_embeddings=22, pad_token_id=1, mask_token_id=6)
FNET = dict(vocab_size=45, hidden_size=24, num_hidden_layers=2, intermediate_size=40, max_position_embeddings=20)
BLOOM = dict(vocab_size=45, hidden_size=24, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=2)
NEO = dict(vocab_size=45, hidden_size=24, num_layers=2, num_heads=3, max_position_embeddings=20, bos_token_id=1,
           eos_token_id=2)
OPT = dict(vocab_size=45, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, ffn_dim=40,
           max_position_embeddings=20, word_embed_proj_dim=24, bos_token_id=1, eos_token_id=2, pad_token_id=1)
FALCON = dict(vocab_size=45, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, ffn_hidden_size=40,
              max_position_embeddings=20, bos_token_id=1, eos_token_id=2)
DREAM = grown(DECODER, mask_token_id=4, pad_token_id=0)
# Three rows of the tables have no token.
LLADA = dict(d_model=24, n_heads=6, n_kv_heads=2, n_layers=2, mlp_hidden_size=40, activation_type="silu", block_type="llama",
             rope=True, rope_theta=500.0, layer_norm_type="rms", rms_norm_eps=1e-5, max_sequence_length=20, vocab_size=45,
             embedding_size=48, weight_tying=False, pad_token_id=0, eos_token_id=1, mask_token_id=4, init_fn="mitchell")
LONGROPE = dict(rope_type="longrope", rope_theta=500.0, short_factor=[1.0, 1.1], long_factor=[1.3, 4.0],
                original_max_position_embeddings=12)


def google_names(tensors):
    """Names of 2019's files, and what a pre-training checkpoint holds besides."""
    for name in list(tensors):
        for new, old in (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")):
            if name.endswith(new):
                tensors[name.replace(new, old)] = tensors.pop(name)
    tensors["bert.embeddings.position_ids"] = torch.arange(20)[None]
    tensors["bert.pooler.dense.weight"] = torch.full((24, 24), 0.5)
    tensors["bert.pooler.dense.bias"] = torch.full((24,), 0.5)
    tensors["cls.seq_relationship.weight"] = torch.full((2, 24), 0.5)
    tensors["cls.seq_relationship.bias"] = torch.full((2,), 0.5)
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()


def openai_names(tensors):
    """Buffers that GPT-2's first files hold."""
    for layer in range(2):
        tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 20, 20).tril()


def neox_names(tensors):
    """Buffers that NeoX's first files hold."""
    for layer in range(2):
        at = f"gpt_neox.layers.{layer}.attention."
        tensors[at + "bias"] = torch.ones(1, 1, 20, 20, dtype=torch.bool).tril()
        tensors[at + "masked_bias"] = torch.tensor(-1e9)
        tensors[at + "rotary_emb.inv_freq"] = 1 / 10000 ** (torch.arange(0, 4, 2) / 4)


def hub_neox(config):
    rope = config.pop("rope_parameters")
    config.update(rotary_pct=rope["partial_rotary_factor"], rotary_emb_base=rope["rope_theta"])


def hub_llama(config):
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config["torch_dtype"] = config.pop("dtype")


def hub_modernbert(config):
    rope = config.pop("rope_parameters")
    config.pop("layer_types")
    config.update(global_rope_theta=rope["full_attention"]["rope_theta"], global_attn_every_n_layers=3,
                  local_rope_theta=rope["sliding_attention"]["rope_theta"])


def hub_deberta(config):
    config["pos_att_type"] = "|".join(config["pos_att_type"])


def hub_gemma3(config):
    rope = config.pop("rope_parameters")
    config.pop("layer_types")
    config.pop("_sliding_window_pattern", None)
    config.update(rope_theta=rope["full_attention"]["rope_theta"], sliding_window_pattern=2,
                  rope_local_base_freq=rope["sliding_attention"]["rope_theta"],
                  rope_scaling=dict(rope_type="linear", factor=8.0))


def hub_qwen2(config):
    config.pop("layer_types")
    hub_llama(config)


def hub_llada(config):
    """As the authors' files: no keys of transformers 5, and the class's own code, which is never run."""
    config["auto_map"] = {"AutoConfig": "configuration_llada.LLaDAConfig", "AutoModel": "modeling_llada.LLaDAModelLM"}
    config.update(precision="amp_bf16", init_device="meta", flash_attention=False, attention_dropout=0.0)
    config.pop("dtype")


def hub_dream(config):
    config.pop("layer_types")
    config.pop("sliding_window")
    hub_llama(config)
    config["auto_map"] = {"AutoConfig": "configuration_dream.DreamConfig", "AutoModel": "modeling_dream.DreamModel"}
    config.update(use_mrope=False, sliding_window=None)


def hub_phi3(config):
    rope = config.pop("rope_parameters")
    config.update(rope_theta=rope["rope_theta"], partial_rotary_factor=rope["partial_rotary_factor"],
                  rope_scaling=dict(type="longrope", short_factor=rope["short_factor"],
                                    long_factor=rope["long_factor"]))


LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=12)

def own_nomic(config):
    """The options of the authors' files."""
    own = dict(
        n_embd=config["hidden_size"], n_head=config["num_attention_heads"], n_layer=config["num_hidden_layers"],
        n_inner=config["intermediate_size"], n_positions=config["max_position_embeddings"], vocab_size=config["vocab_size"],
        type_vocab_size=config["type_vocab_size"], layer_norm_epsilon=config["layer_norm_eps"], activation_function="swiglu",
        rotary_emb_base=int(config["rope_parameters"]["rope_theta"]), rotary_emb_fraction=1.0, rotary_emb_interleaved=False,
        rotary_emb_scale_base=None, rotary_scaling_factor=None, max_trained_positions=2048, qkv_proj_bias=False,
        mlp_fc1_bias=False, mlp_fc2_bias=False, prenorm=False, parallel_block=False, parallel_block_tied_norm=False,
        use_rms_norm=False, causal=False, pad_vocab_size_multiple=5, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
        dense_seq_output=True, fused_bias_fc=True, fused_dropout_add_ln=True, initializer_range=0.02,
        reorder_and_upcast_attn=False, scale_attn_by_inverse_layer_idx=False, scale_attn_weights=True,
        summary_activation=None, summary_first_dropout=0.0, summary_proj_to_labels=True, summary_type="cls_index",
        summary_use_proj=True, use_cache=True, use_flash_attn=True, use_xentropy=True, torch_dtype="float32",
        model_type="nomic_bert", architectures=["NomicBertForPreTraining"], bos_token_id=None, eos_token_id=None,
        auto_map={"AutoModel": "modeling_hf_nomic_bert.NomicBertModel"})
    config.clear()
    config.update(own)


def own_nomic_names(tensors):
    """Their names, without biases in the head."""
    for name in list(tensors):
        tensor = tensors.pop(name)
        if not name.startswith("cls.") or "layer_norm" in name or name.endswith("weight"):
            tensors[name.replace("nomic_bert.", "bert.")] = tensor


CASES = [
    Case("bert", tr.BertForMaskedLM, BERT, pos=True),
    Case("bert_gelu_new", tr.BertForMaskedLM, grown(BERT, hidden_act="gelu_new")),
    Case("bert_relu_untied", tr.BertForMaskedLM, grown(
        BERT, hidden_act="relu", tie_word_embeddings=False, layer_norm_eps=1e-5)),
    Case("bert_headless", tr.BertModel, BERT, pos=True),
    Case("bert_google_names", tr.BertForMaskedLM, grown(BERT, type_vocab_size=3), tensors_edit=google_names),
    Case("roberta", tr.RobertaForMaskedLM, ROBERTA, pos=True),
    Case("roberta_headless", tr.RobertaModel, ROBERTA),
    Case("xlm_roberta", tr.XLMRobertaForMaskedLM, grown(ROBERTA, num_hidden_layers=1)),
    Case("gpt2", tr.GPT2LMHeadModel, grown(GPT2, n_inner=40), pos=True),
    Case("gpt2_layer_scale", tr.GPT2LMHeadModel, grown(GPT2, n_inner=40, n_layer=3, scale_attn_by_inverse_layer_idx=True)),
    Case("gpt2_base", tr.GPT2Model, grown(GPT2, activation_function="relu"), tensors_edit=openai_names),
    Case("distilbert", tr.DistilBertForMaskedLM, DISTILBERT),
    Case("distilbert_headless", tr.DistilBertModel, grown(
        DISTILBERT, activation="relu", sinusoidal_pos_embds=True)),
    Case("albert", tr.AlbertForMaskedLM, grown(BERT, num_hidden_layers=3, embedding_size=14), pos=True),
    Case("albert_groups", tr.AlbertForMaskedLM, grown(
        BERT, num_hidden_layers=4, num_hidden_groups=2, inner_group_num=1, embedding_size=24,
        hidden_act="gelu")),
    Case("albert_inner", tr.AlbertModel, grown(BERT, num_hidden_layers=2, inner_group_num=2, embedding_size=10)),
    Case("electra_generator", tr.ElectraForMaskedLM, grown(BERT, embedding_size=14), pos=True),
    Case("electra_generator_square", tr.ElectraForMaskedLM, grown(BERT, embedding_size=24)),
    Case("electra_discriminator", tr.ElectraForPreTraining, grown(BERT, embedding_size=14)),
    Case("roformer", tr.RoFormerForMaskedLM, grown(BERT, embedding_size=24)),
    Case("roformer_value", tr.RoFormerForMaskedLM, grown(BERT, embedding_size=14, rotary_value=True)),
    Case("gpt_neox", tr.GPTNeoXForCausalLM, NEOX, pos=True, config_edit=hub_neox, tensors_edit=neox_names),
    Case("gpt_neox_serial", tr.GPTNeoXForCausalLM, grown(
        NEOX, use_parallel_residual=False, attention_bias=False, tie_word_embeddings=True,
        hidden_act="gelu_new", rope_parameters=dict(
            rope_type="default", rope_theta=700.0, partial_rotary_factor=0.5))),
    Case("llama", tr.LlamaForCausalLM, LLAMA, pos=True, config_edit=hub_llama),
    Case("llama_scaled", tr.LlamaForCausalLM, grown(
        LLAMA, tie_word_embeddings=True, rope_parameters=LLAMA3), config_edit=hub_llama),
    Case("llama_bias", tr.LlamaForCausalLM, grown(
        LLAMA, num_attention_heads=2, num_key_value_heads=2, head_dim=8, attention_bias=True, mlp_bias=True)),
    Case("xlnet", tr.XLNetLMHeadModel, XLNET),
    Case("xlnet_two_streams", tr.XLNetLMHeadModel, grown(XLNET, ff_activation="relu"), two_streams=True),
    Case("xlnet_uni", tr.XLNetLMHeadModel, grown(XLNET, attn_type="uni", clamp_len=9, tie_word_embeddings=False)),
    Case("t5_encoder", tr.T5EncoderModel, T5),
    Case("t5_gated", tr.T5EncoderModel, grown(
        T5, feed_forward_proj="gated-gelu", relative_attention_num_buckets=32, relative_attention_max_distance=128)),
    Case("t5_full", tr.T5ForConditionalGeneration, T5),
    Case("deberta_v3", tr.DebertaV2ForMaskedLM, grown(
        DEBERTA, position_buckets=5, norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"],
        position_biased_input=False, max_relative_positions=-1, legacy=False), config_edit=hub_deberta),
    Case("deberta_v2_conv", tr.DebertaV2ForMaskedLM, grown(
        DEBERTA, share_att_key=False, pos_att_type=["c2p", "p2c"], conv_kernel_size=3, conv_act="gelu",
        position_biased_input=True, type_vocab_size=2, max_relative_positions=9), pos=True),
    Case("deberta_v2_c2p", tr.DebertaV2Model, grown(
        DEBERTA, position_buckets=4, norm_rel_ebd="none", share_att_key=False, pos_att_type=["c2p"],
        position_biased_input=False, max_relative_positions=16)),
    # Texts of 20 tokens: longer than max_position_embeddings.
    Case("deberta_v3_longer", tr.DebertaV2ForMaskedLM, grown(
        DEBERTA, num_hidden_layers=1, position_buckets=4, norm_rel_ebd="layer_norm", share_att_key=True,
        pos_att_type=["p2c", "c2p"], position_biased_input=False, max_relative_positions=-1, max_position_embeddings=9)),
    Case("deberta_v2_longer", tr.DebertaV2ForMaskedLM, grown(
        DEBERTA, num_hidden_layers=1, norm_rel_ebd="none", share_att_key=False, pos_att_type=["p2c", "c2p"],
        position_biased_input=False, max_relative_positions=6, max_position_embeddings=9)),
    Case("deberta_v2_absolute", tr.DebertaV2ForMaskedLM, grown(DEBERTA, relative_attention=False)),
    Case("modernbert", tr.ModernBertForMaskedLM, MODERNBERT, pos=True, config_edit=hub_modernbert),
    Case("modernbert_bias", tr.ModernBertForMaskedLM, grown(
        MODERNBERT, norm_bias=True, attention_bias=True, mlp_bias=True, tie_word_embeddings=False,
        local_attention=4, layer_types=["sliding_attention", "full_attention"] * 2, hidden_activation="gelu_new",
        rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=900.0),
                             sliding_attention=dict(rope_type="default", rope_theta=100.0)))),
    Case("modernbert_headless", tr.ModernBertModel, MODERNBERT),
    Case("mpnet", tr.MPNetForMaskedLM, MPNET, pos=True),
    Case("mpnet_headless", tr.MPNetModel, MPNET),
    # What the others leave as it is: each option of each family has a value that is not the default.
    Case("bert_decoder", tr.BertLMHeadModel, grown(BERT, num_hidden_layers=1, is_decoder=True)),
    Case("roberta_decoder", tr.RobertaForCausalLM, grown(
        ROBERTA, num_hidden_layers=1, is_decoder=True, pad_token_id=3, max_position_embeddings=24, hidden_act="relu")),
    Case("gpt2_unscaled", tr.GPT2LMHeadModel, grown(
        GPT2, n_layer=1, scale_attn_weights=False, layer_norm_epsilon=1e-2, tie_word_embeddings=False)),
    Case("gpt_neox_epsilon", tr.GPTNeoXForCausalLM, grown(NEOX, num_hidden_layers=1, layer_norm_eps=1e-2)),
    Case("llama_linear", tr.LlamaForCausalLM, grown(
        LLAMA, num_hidden_layers=1, rms_norm_eps=1e-2, hidden_act="gelu",
        rope_parameters=dict(rope_type="linear", rope_theta=500.0, factor=3.0)), config_edit=hub_llama),
    Case("llama_yarn", tr.LlamaForCausalLM, grown(
        LLAMA, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, rope_parameters=dict(
            rope_type="yarn", rope_theta=500.0, factor=4.0, original_max_position_embeddings=8, beta_fast=8.0,
            beta_slow=2.0, mscale=0.7, mscale_all_dim=1.3, truncate=False))),
    Case("t5_silu", tr.T5EncoderModel, grown(T5, num_layers=1, feed_forward_proj="gated-silu", layer_norm_epsilon=1e-2)),
    Case("deberta_v2_p2c", tr.DebertaV2ForMaskedLM, grown(
        DEBERTA, num_hidden_layers=1, position_buckets=4, norm_rel_ebd="none", share_att_key=False, pos_att_type=["p2c"],
        position_biased_input=False, max_relative_positions=16, hidden_act="relu", layer_norm_eps=1e-2)),
    Case("modernbert_options", tr.ModernBertForMaskedLM, grown(
        MODERNBERT, num_hidden_layers=2, norm_eps=1e-2, decoder_bias=False, local_attention=2,
        layer_types=["full_attention", "sliding_attention"])),
    Case("xlnet_epsilon", tr.XLNetLMHeadModel, grown(XLNET, n_layer=1, layer_norm_eps=1e-2, ff_activation="gelu_new")),
    # Decoders of recent years.
    Case("mistral", tr.MistralForCausalLM, grown(DECODER, sliding_window=5, head_dim=6), config_edit=hub_llama),
    Case("mistral_open", tr.MistralForCausalLM, grown(
        DECODER, num_hidden_layers=1, sliding_window=None, tie_word_embeddings=True)),
    Case("ministral", tr.MinistralForCausalLM, grown(
        DECODER, sliding_window=3, head_dim=4, layer_types=["sliding_attention", "full_attention"])),
    Case("qwen2", tr.Qwen2ForCausalLM, QWEN, pos=True, config_edit=hub_qwen2),
    Case("qwen3", tr.Qwen3ForCausalLM, grown(
        DECODER, head_dim=6, attention_bias=True, tie_word_embeddings=True, rope_parameters=LLAMA3), pos=True),
    Case("qwen3_windows", tr.Qwen3ForCausalLM, grown(QWEN, head_dim=4, layer_types=["sliding_attention", "full_attention"])),
    Case("gemma", tr.GemmaForCausalLM, GEMMA),
    Case("gemma2", tr.Gemma2ForCausalLM, grown(
        GEMMA2, attn_logit_softcapping=2.0, final_logit_softcapping=3.0, attention_bias=True)),
    Case("gemma2_open", tr.Gemma2ForCausalLM, grown(
        GEMMA2, num_hidden_layers=1, attn_logit_softcapping=None, final_logit_softcapping=None,
        layer_types=["full_attention"])),
    Case("gemma3", tr.Gemma3ForCausalLM, grown(
        GEMMA2, final_logit_softcapping=4.0, layer_types=["full_attention", "sliding_attention"],
        rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=900.0),
                             sliding_attention=dict(rope_type="default", rope_theta=100.0)))),
    Case("gemma3_hub", tr.Gemma3ForCausalLM, grown(
        GEMMA2, sliding_window_pattern=2,
        rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=900.0),
                             sliding_attention=dict(rope_type="default", rope_theta=100.0))),
        config_edit=hub_gemma3),
    Case("olmo", tr.OlmoForCausalLM, grown(DECODER, clip_qkv=0.4)),
    Case("olmo2", tr.Olmo2ForCausalLM, grown(DECODER, attention_bias=True)),
    Case("phi", tr.PhiForCausalLM, grown(DECODER, qk_layernorm=True, num_attention_heads=3, num_key_value_heads=1)),
    Case("phi_tied", tr.PhiForCausalLM, grown(
        DECODER, num_hidden_layers=1, tie_word_embeddings=True, hidden_act="relu",
        rope_parameters=dict(rope_type="default", rope_theta=300.0, partial_rotary_factor=1.0))),
    Case("phi3", tr.Phi3ForCausalLM, grown(
        DECODER, num_attention_heads=3, num_key_value_heads=1, original_max_position_embeddings=12,
        rope_parameters=grown(LONGROPE, partial_rotary_factor=0.5)), by_batch=True, config_edit=hub_phi3),
    Case("phi3_window", tr.Phi3ForCausalLM, grown(DECODER, num_hidden_layers=1, sliding_window=4)),
    Case("stablelm", tr.StableLmForCausalLM, grown(
        DECODER, num_attention_heads=3, num_key_value_heads=1, qk_layernorm=True, use_parallel_residual=True)),
    Case("stablelm_serial", tr.StableLmForCausalLM, grown(
        DECODER, num_attention_heads=3, num_key_value_heads=3, use_qkv_bias=True, layer_norm_eps=1e-2)),
    Case("smollm3", tr.SmolLM3ForCausalLM, grown(DECODER, no_rope_layer_interval=2)),
    Case("smollm3_windows", tr.SmolLM3ForCausalLM, grown(
        DECODER, no_rope_layers=[0, 1], use_sliding_window=True, sliding_window=4, mlp_bias=True,
        tie_word_embeddings=False)),
    Case("granite", tr.GraniteForCausalLM, grown(
        DECODER, embedding_multiplier=3.0, logits_scaling=2.5, residual_multiplier=0.6, attention_multiplier=0.7,
        mlp_bias=True)),
    Case("cohere", tr.CohereForCausalLM, grown(DECODER, use_qk_norm=True, pad_token_id=0)),
    Case("cohere_plain", tr.CohereForCausalLM, grown(
        DECODER, num_hidden_layers=1, attention_bias=True, logit_scale=2.0, layer_norm_eps=1e-2, pad_token_id=0)),
    Case("starcoder2", tr.Starcoder2ForCausalLM, grown(DECODER, sliding_window=6)),
    Case("starcoder2_plain", tr.Starcoder2ForCausalLM, grown(
        DECODER, num_hidden_layers=1, use_bias=False, tie_word_embeddings=False)),
    # Mixtures of experts.
    Case("mixtral", tr.MixtralForCausalLM, grown(
        DECODER, num_local_experts=4, sliding_window=4, head_dim=6, intermediate_size=9), config_edit=hub_llama),
    Case("qwen2_moe", tr.Qwen2MoeForCausalLM, grown(MIXTURE, shared_expert_intermediate_size=14)),
    Case("qwen2_moe_windows", tr.Qwen2MoeForCausalLM, grown(
        MIXTURE, shared_expert_intermediate_size=6, norm_topk_prob=True, decoder_sparse_step=2, qkv_bias=False,
        sliding_window=4, use_sliding_window=True, num_experts_per_tok=1)),
    Case("qwen3_moe", tr.Qwen3MoeForCausalLM, grown(
        MIXTURE, head_dim=6, norm_topk_prob=True, mlp_only_layers=[0], attention_bias=True)),
    Case("qwen3_moe_windows", tr.Qwen3MoeForCausalLM, grown(
        MIXTURE, num_hidden_layers=1, head_dim=4, sliding_window=5, use_sliding_window=True, tie_word_embeddings=True)),
    Case("olmoe", tr.OlmoeForCausalLM, grown(
        DECODER, num_experts=5, num_experts_per_tok=3, intermediate_size=7, attention_bias=True)),
    Case("olmoe_normalized", tr.OlmoeForCausalLM, grown(
        DECODER, num_hidden_layers=1, num_experts=3, num_experts_per_tok=2, intermediate_size=10, norm_topk_prob=True,
        clip_qkv=0.6)),
    Case("gpt_oss", tr.GptOssForCausalLM, grown(
        DECODER, head_dim=8, num_local_experts=4, num_experts_per_tok=2, intermediate_size=7, sliding_window=4,
        swiglu_limit=0.6)),
    Case("gpt_oss_plain", tr.GptOssForCausalLM, grown(
        DECODER, num_hidden_layers=1, head_dim=6, num_local_experts=3, num_experts_per_tok=1, intermediate_size=8,
        layer_types=["full_attention"], attention_bias=False,
        rope_parameters=dict(rope_type="default", rope_theta=500.0))),
    # Encoders.
    Case("esm", tr.EsmForMaskedLM, grown(ESM, position_embedding_type="rotary", token_dropout=True)),
    Case("esm_absolute", tr.EsmForMaskedLM, grown(
        ESM, num_hidden_layers=1, position_embedding_type="absolute", emb_layer_norm_before=True, layer_norm_eps=1e-2)),
    Case("eurobert", tr.EuroBertForMaskedLM, grown(DECODER, mask_token_id=3)),
    Case("eurobert_bias", tr.EuroBertForMaskedLM, grown(
        DECODER, num_hidden_layers=1, attention_bias=True, mlp_bias=True, mask_token_id=3, tie_word_embeddings=True)),
    Case("nomic_bert", tr.NomicBertForMaskedLM, BERT),
    Case("nomic_bert_own", tr.NomicBertForMaskedLM, grown(
        BERT, layer_norm_eps=1e-3, rope_parameters=dict(rope_type="default", rope_theta=200.0)),
        other_config=own_nomic, tensors_edit=own_nomic_names, zeroed=("transform.dense.bias", "predictions.bias")),
    Case("longformer", tr.LongformerForMaskedLM, grown(ROBERTA, attention_window=[4, 8]), pos=True),
    Case("longformer_headless", tr.LongformerModel, grown(
        ROBERTA, num_hidden_layers=1, attention_window=6, type_vocab_size=2)),
    # Texts of 20 tokens are full attention.
    Case("big_bird", tr.BigBirdForMaskedLM, grown(
        BERT, max_position_embeddings=32, block_size=4, num_random_blocks=0), pos=True),
    # Texts of more than 14 tokens are read in blocks.
    Case("big_bird_long", tr.BigBirdForMaskedLM, grown(
        BERT, max_position_embeddings=40, block_size=2, num_random_blocks=1), pos=True, by_batch=True),
    Case("big_bird_full", tr.BigBirdForMaskedLM, grown(
        BERT, num_hidden_layers=1, attention_type="original_full", use_bias=False, rescale_embeddings=True, hidden_act="relu")),
    Case("fnet", tr.FNetForMaskedLM, FNET, by_batch=True),
    Case("fnet_headless", tr.FNetModel, grown(FNET, num_hidden_layers=1, hidden_act="gelu"), by_batch=True),
    # Older decoders.
    Case("gptj", tr.GPTJForCausalLM, grown(GPT2, rotary_dim=4)),
    Case("gpt_neo", tr.GPTNeoForCausalLM, grown(
        NEO, attention_types=[[["global", "local"], 1]], window_size=4)),
    Case("gpt_neo_local", tr.GPTNeoForCausalLM, grown(
        NEO, num_layers=1, attention_types=[[["local"], 1]], window_size=3, intermediate_size=28)),
    Case("bloom", tr.BloomForCausalLM, BLOOM),
    Case("mpt", tr.MptForCausalLM, dict(
        vocab_size=45, d_model=24, n_layers=2, n_heads=3, max_seq_len=20,
        attn_config=dict(clip_qkv=0.6, softmax_scale=0.5))),
    Case("mpt_plain", tr.MptForCausalLM, dict(
        vocab_size=45, d_model=24, n_layers=1, n_heads=4, max_seq_len=20, layer_norm_epsilon=1e-2)),
    Case("opt", tr.OPTForCausalLM, OPT),
    Case("opt_post", tr.OPTForCausalLM, grown(
        OPT, num_hidden_layers=1, do_layer_norm_before=False, enable_bias=False, activation_function="gelu",
        tie_word_embeddings=False)),
    Case("opt_narrow", tr.OPTForCausalLM, grown(
        OPT, num_hidden_layers=1, word_embed_proj_dim=14, do_layer_norm_before=False)),
    Case("falcon", tr.FalconForCausalLM, grown(FALCON, bias=True)),
    Case("falcon_groups", tr.FalconForCausalLM, grown(
        FALCON, new_decoder_architecture=True, num_kv_heads=2, bias=True, tie_word_embeddings=False)),
    Case("falcon_one_norm", tr.FalconForCausalLM, grown(
        FALCON, num_hidden_layers=1, new_decoder_architecture=True, num_kv_heads=3, num_ln_in_parallel_attn=1,
        rope_parameters=dict(rope_type="default", rope_theta=500.0))),
    Case("falcon_serial", tr.FalconForCausalLM, grown(
        FALCON, num_hidden_layers=1, multi_query=False, parallel_attn=False, bias=True, activation="relu",
        layer_norm_epsilon=1e-2)),
    Case("falcon_rw", tr.FalconForCausalLM, grown(
        FALCON, num_hidden_layers=1, alibi=True, multi_query=False, parallel_attn=False, bias=True)),
    # Masked diffusion.
    Case("llada", diffusion.LLaDAModelLM, LLADA, config_edit=hub_llada),
    Case("llada_bias", diffusion.LLaDAModelLM, grown(
        LLADA, n_layers=1, n_kv_heads=None, mlp_hidden_size=None, mlp_ratio=2, include_bias=True, bias_for_layer_norm=True,
        activation_type="gelu", layer_norm_type="default", input_emb_norm=True)),
    Case("llada_tied", diffusion.LLaDAModelLM, grown(
        LLADA, n_layers=1, multi_query_attention=True, n_kv_heads=None, include_qkv_bias=True, weight_tying=True,
        attention_layer_norm=True, layer_norm_type="gemma_rms", scale_logits=True, activation_type="relu",
        embedding_size=None)),
    Case("llada_plain", diffusion.LLaDAModelLM, grown(
        LLADA, n_layers=1, layer_norm_with_affine=False, attention_layer_norm=True, attention_layer_norm_with_affine=False,
        rms_norm_eps=1e-2, rope_theta=10000.0)),
    Case("dream", diffusion.DreamModel, DREAM, config_edit=hub_dream),
    Case("dream_tied", diffusion.DreamModel, grown(DREAM, num_hidden_layers=1, tie_word_embeddings=True, rms_norm_eps=1e-2,
                                                    num_key_value_heads=6, hidden_act="relu")),
    Case("mpnet_buckets", tr.MPNetForMaskedLM, grown(MPNET, num_hidden_layers=1, relative_attention_num_buckets=48)),
]
