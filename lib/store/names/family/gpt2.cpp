// GPT-2: pre-norm decoder; its matrices are stored [in, out]. The head is the word table alone, so
// that a tied file does not show whether there is one: the class decides.
#include "store/names/family.hpp"

namespace masque::store {
namespace {

const FamilyNames kFamily{
    .name = "gpt2",
    .model_types = {"gpt2"},
    .lm_classes = {"GPT2LMHeadModel", "GPT2DoubleHeadsModel"},
    .prefix = "transformer.",
    .input_table = "~wte.weight",
    .position_table = "~wpe.weight",
    .segment_table = "",
    .decoder_weight = "lm_head.weight",
    .output_bias = "",
    .head_copies = {},
    .head_evidence = {},
    .vocab_fields = {"vocab_size"},
    .position_fields = {"n_positions", "max_position_embeddings"},
    .tensors =
        {
            "~wte.weight",
            "~wpe.weight",
            "~h.{l}.ln_1.*",
            "~h.{l}.attn.c_attn.*",
            "~h.{l}.attn.c_proj.*",
            "~h.{l}.ln_2.*",
            "~h.{l}.mlp.c_fc.*",
            "~h.{l}.mlp.c_proj.*",
            "~ln_f.*",
        },
    .position_buffers = {{"~h.{l}.attn.bias", PositionBuffer::Content::kCausal}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
