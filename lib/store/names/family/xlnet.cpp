// XLNet: two-stream relative attention; no position table, and two segment vectors in every layer.
// Its word table has no zero row.
#include "store/names/family.hpp"

namespace masque::store {
namespace {

const FamilyNames kFamily{
    .name = "xlnet",
    .model_types = {"xlnet"},
    .lm_classes = {"XLNetLMHeadModel"},
    .prefix = "transformer.",
    .input_table = "~word_embedding.weight",
    .position_table = "",
    .segment_table = "",
    .decoder_weight = "lm_loss.weight",
    .output_bias = "lm_loss.bias",
    .head_copies = {},
    .head_evidence = {"lm_loss.bias"},
    .sizes =
        {
            {'V', {"vocab_size", "n_token"}, "32000"},
            {'H', {"d_model", "hidden_size"}, "1024"},
            {'L', {"n_layer", "num_hidden_layers"}, "24"},
            {'A', {"n_head", "num_attention_heads"}, "16"},
            {'D', {"d_head"}, "H/A"},
            {'F', {"d_inner"}, "4096"},
        },
    .tensors =
        {
            {"~mask_emb", "1,1,H"},
            {"~word_embedding.weight", "V,H"},
            {"~layer.{l}.rel_attn.q", "H,A,D"},
            {"~layer.{l}.rel_attn.k", "H,A,D"},
            {"~layer.{l}.rel_attn.v", "H,A,D"},
            {"~layer.{l}.rel_attn.o", "H,A,D"},
            {"~layer.{l}.rel_attn.r", "H,A,D"},
            {"~layer.{l}.rel_attn.r_r_bias", "A,D"},
            {"~layer.{l}.rel_attn.r_s_bias", "A,D"},
            {"~layer.{l}.rel_attn.r_w_bias", "A,D"},
            {"~layer.{l}.rel_attn.seg_embed", "2,A,D"},
            {"~layer.{l}.rel_attn.layer_norm.weight", "H", Init::kOne},
            {"~layer.{l}.rel_attn.layer_norm.bias", "H", Init::kZero},
            {"~layer.{l}.ff.layer_norm.weight", "H", Init::kOne},
            {"~layer.{l}.ff.layer_norm.bias", "H", Init::kZero},
            {"~layer.{l}.ff.layer_1.weight", "F,H"},
            {"~layer.{l}.ff.layer_1.bias", "F", Init::kZero},
            {"~layer.{l}.ff.layer_2.weight", "H,F"},
            {"~layer.{l}.ff.layer_2.bias", "H", Init::kZero},
            {"lm_loss.bias", "V", Init::kZero},
        },
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
