"""The cases of models.py and compare_models.py: configurations of every family that transformers has."""

import dataclasses
import typing

import torch
import transformers as tr


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    model_class: type
    fields: dict
    pos: bool = False  # accepts positions of a caller
    config_edit: typing.Callable = None  # of the parsed config.json, in place: how other versions write it
    tensors_edit: typing.Callable = None  # of the tensors: how other programs name them
    two_streams: bool = False

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


LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=12)

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
    Case("mpnet_buckets", tr.MPNetForMaskedLM, grown(MPNET, num_hidden_layers=1, relative_attention_num_buckets=48)),
]
