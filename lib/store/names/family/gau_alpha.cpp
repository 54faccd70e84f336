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
    .vocab_fields = {"vocab_size"},
    .tensors =
        {
            "~embeddings.word_embeddings.weight",
            "~embeddings.token_type_embeddings.weight",
            "~encoder.layer.{l}.gau.i_dense.weight",
            "~encoder.layer.{l}.gau.o_dense.weight",
            "~encoder.layer.{l}.gau.q_scaleoffset.weight",
            "~encoder.layer.{l}.gau.k_scaleoffset.weight",
        },
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
