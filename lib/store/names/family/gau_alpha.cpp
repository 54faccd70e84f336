// GAU-alpha (JunnYu/GAU-alpha-pytorch): gated attention units, no norms or biases of its own. Its
// head is the word table and leaves no trace.
#include "store/names/family.hpp"

namespace masque::store {
namespace {

const FamilyNames kFamily{
    .name = "gau_alpha",
    .model_types = {"gau_alpha"},
    .lm_classes = {"GAUAlphaForMaskedLM"},
    .prefix = "gau_alpha.",
    .input_table = "~embeddings.word_embeddings.weight",
    .position_table = "",
    .segment_table = "~embeddings.token_type_embeddings.weight",
    .decoder_weight = "cls.predictions.decoder.weight",
    .output_bias = "",
    .head_copies = {},
    .head_evidence = {},
    .sizes =
        {
            {'V', {"vocab_size"}, "12000"},
            {'H', {"hidden_size"}, "768"},
            {'L', {"num_hidden_layers"}, "24"},
            {'F', {"intermediate_size"}, "1536"},
            {'K', {"attention_key_size"}, "128"},
            {'T', {"type_vocab_size"}, "2"},
        },
    .tensors =
        {
            {"~embeddings.word_embeddings.weight", "V,H", Init::kPadded},
            {"~embeddings.token_type_embeddings.weight", "T,H"},
            {"~encoder.layer.{l}.gau.i_dense.weight", "2*F+K,H"},
            {"~encoder.layer.{l}.gau.o_dense.weight", "H,F"},
            {"~encoder.layer.{l}.gau.q_scaleoffset.weight", "K", Init::kOne},
            {"~encoder.layer.{l}.gau.k_scaleoffset.weight", "K", Init::kOne},
        },
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
