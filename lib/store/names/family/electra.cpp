// ELECTRA, as the generator (ElectraForMaskedLM): BERT's encoder after narrow embeddings. The
// published discriminators have no vocabulary-sized head.
#include "store/names/family.hpp"

namespace masque::store {
namespace {

const FamilyNames kFamily{
    .name = "electra",
    .model_types = {"electra"},
    .lm_classes = {"ElectraForMaskedLM", "ElectraForCausalLM"},
    .prefix = "electra.",
    .input_table = "~embeddings.word_embeddings.weight",
    .position_table = "~embeddings.position_embeddings.weight",
    .segment_table = "~embeddings.token_type_embeddings.weight",
    .decoder_weight = "generator_lm_head.weight",
    .output_bias = "generator_lm_head.bias",
    .head_copies = {},
    .head_evidence = {"generator_lm_head.bias", "generator_predictions.dense.weight"},
    .sizes =
        {
            {'V', {"vocab_size"}, "30522"},
            {'H', {"hidden_size"}, "256"},
            {'E', {"embedding_size"}, "128"},
            {'L', {"num_hidden_layers"}, "12"},
            {'F', {"intermediate_size"}, "1024"},
            {'P', {"max_position_embeddings"}, "512"},
            {'T', {"type_vocab_size"}, "2"},
        },
    .tensors =
        {
            {"~embeddings.word_embeddings.weight", "V,E", Init::kPadded},
            {"~embeddings.position_embeddings.weight", "P,E"},
            {"~embeddings.token_type_embeddings.weight", "T,E"},
            {"~embeddings.LayerNorm.weight", "E", Init::kOne},
            {"~embeddings.LayerNorm.bias", "E", Init::kZero},
            {"~embeddings_project.weight", "H,E", Init::kNormal, "E!=H"},
            {"~embeddings_project.bias", "H", Init::kZero, "E!=H"},
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
            {"generator_predictions.dense.weight", "E,H"},
            {"generator_predictions.dense.bias", "E", Init::kZero},
            {"generator_predictions.LayerNorm.weight", "E", Init::kOne},
            {"generator_predictions.LayerNorm.bias", "E", Init::kZero},
            {"generator_lm_head.bias", "V", Init::kZero},
        },
    .position_buffers = {{"~embeddings.position_ids", PositionBuffer::Content::kCount},
                         {"~embeddings.token_type_ids", PositionBuffer::Content::kZero}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
