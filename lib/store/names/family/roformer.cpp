// RoFormer: BERT's encoder with rotary positions. Their sines and cosines are saved like a weight,
// one row per position and as wide as one head.
#include "store/names/family.hpp"

namespace masque::store {
namespace {

const FamilyNames kFamily{
    .name = "roformer",
    .model_types = {"roformer"},
    .lm_classes = {"RoFormerForMaskedLM", "RoFormerForCausalLM"},
    .prefix = "roformer.",
    .input_table = "~embeddings.word_embeddings.weight",
    .position_table = "~encoder.embed_positions.weight",
    .segment_table = "~embeddings.token_type_embeddings.weight",
    .decoder_weight = "cls.predictions.decoder.weight",
    .output_bias = "cls.predictions.bias",
    .head_copies = {{"cls.predictions.decoder.bias", "cls.predictions.bias"}},
    .head_evidence = {"cls.predictions.bias", "cls.predictions.transform.dense.weight"},
    .sizes =
        {
            {'V', {"vocab_size"}, "50000"},
            {'H', {"hidden_size"}, "768"},
            {'E', {"embedding_size"}, "H"},
            {'L', {"num_hidden_layers"}, "12"},
            {'A', {"num_attention_heads"}, "12"},
            {'F', {"intermediate_size"}, "3072"},
            {'P', {"max_position_embeddings"}, "1536"},
            {'T', {"type_vocab_size"}, "2"},
        },
    .tensors =
        {
            {"~embeddings.word_embeddings.weight", "V,E", Init::kPadded},
            {"~embeddings.token_type_embeddings.weight", "T,E"},
            {"~embeddings.LayerNorm.weight", "E", Init::kOne},
            {"~embeddings.LayerNorm.bias", "E", Init::kZero},
            {"~embeddings_project.weight", "H,E", Init::kNormal, "E!=H"},
            {"~embeddings_project.bias", "H", Init::kZero, "E!=H"},
            {"~encoder.embed_positions.weight", "P,H/A", Init::kSinusoid},
            {"~encoder.layer.{l}.attention.self.query.weight", "H,H"},
            {"~encoder.layer.{l}.attention.self.query.bias", "H", Init::kZero},
            {"~encoder.layer.{l}.attention.self.key.weight", "H,H"},
            {"~encoder.layer.{l}.attention.self.key.bias", "H", Init::kZero},
            {"~encoder.layer.{l}.attention.self.value.weight", "H,H"},
            {"~encoder.layer.{l}.attention.self.value.bias", "H", Init::kZero},
            {"~encoder.layer.{l}.attention.output.dense.weight", "H,H"},
            {"~encoder.layer.{l}.attention.output.dense.bias", "H", Init::kZero},
            {"~encoder.layer.{l}.attention.output.LayerNorm.weight", "H", Init::kOne},
            {"~encoder.layer.{l}.attention.output.LayerNorm.bias", "H", Init::kZero},
            {"~encoder.layer.{l}.intermediate.dense.weight", "F,H"},
            {"~encoder.layer.{l}.intermediate.dense.bias", "F", Init::kZero},
            {"~encoder.layer.{l}.output.dense.weight", "H,F"},
            {"~encoder.layer.{l}.output.dense.bias", "H", Init::kZero},
            {"~encoder.layer.{l}.output.LayerNorm.weight", "H", Init::kOne},
            {"~encoder.layer.{l}.output.LayerNorm.bias", "H", Init::kZero},
            {"cls.predictions.bias", "V", Init::kZero},
            {"cls.predictions.transform.dense.weight", "E,H"},
            {"cls.predictions.transform.dense.bias", "E", Init::kZero},
            {"cls.predictions.transform.LayerNorm.weight", "E", Init::kOne},
            {"cls.predictions.transform.LayerNorm.bias", "E", Init::kZero},
        },
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
