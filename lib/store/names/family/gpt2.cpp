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
    .sizes =
        {
            {'V', {"vocab_size"}, "50257"},
            {'H', {"n_embd", "hidden_size"}, "768"},
            {'L', {"n_layer", "num_hidden_layers"}, "12"},
            {'F', {"n_inner"}, "4*H"},
            {'P', {"n_positions", "max_position_embeddings"}, "1024"},
        },
    .tensors =
        {
            {"~wte.weight", "V,H"},
            {"~wpe.weight", "P,H"},
            {"~h.{l}.ln_1.weight", "H", Init::kOne},
            {"~h.{l}.ln_1.bias", "H", Init::kZero},
            {"~h.{l}.attn.c_attn.weight", "H,3*H"},
            {"~h.{l}.attn.c_attn.bias", "3*H", Init::kZero},
            {"~h.{l}.attn.c_proj.weight", "H,H", Init::kResidual},
            {"~h.{l}.attn.c_proj.bias", "H", Init::kZero},
            {"~h.{l}.ln_2.weight", "H", Init::kOne},
            {"~h.{l}.ln_2.bias", "H", Init::kZero},
            {"~h.{l}.mlp.c_fc.weight", "H,F"},
            {"~h.{l}.mlp.c_fc.bias", "F", Init::kZero},
            {"~h.{l}.mlp.c_proj.weight", "F,H", Init::kResidual},
            {"~h.{l}.mlp.c_proj.bias", "H", Init::kZero},
            {"~ln_f.weight", "H", Init::kOne},
            {"~ln_f.bias", "H", Init::kZero},
        },
    .position_buffers = {{"~h.{l}.attn.bias", PositionBuffer::Content::kCausal}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
