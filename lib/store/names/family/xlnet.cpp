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
    .vocab_fields = {"vocab_size", "n_token"},
    .tensors =
        {
            "~mask_emb",
            "~word_embedding.weight",
            "~layer.{l}.rel_attn.q",
            "~layer.{l}.rel_attn.k",
            "~layer.{l}.rel_attn.v",
            "~layer.{l}.rel_attn.o",
            "~layer.{l}.rel_attn.r",
            "~layer.{l}.rel_attn.r_r_bias",
            "~layer.{l}.rel_attn.r_s_bias",
            "~layer.{l}.rel_attn.r_w_bias",
            "~layer.{l}.rel_attn.seg_embed",
            "~layer.{l}.rel_attn.layer_norm.*",
            "~layer.{l}.ff.layer_norm.*",
            "~layer.{l}.ff.layer_1.*",
            "~layer.{l}.ff.layer_2.*",
            "lm_loss.bias",
        },
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
