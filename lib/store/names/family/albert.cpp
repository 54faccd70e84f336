// ALBERT: narrow embeddings, and layers that share their weights: G groups (nearly always one) of I
// different inner layers, whatever the depth L. The head carries no prefix.
#include "store/names/family.hpp"

namespace masque::store {
namespace {

const FamilyNames kFamily{
    .name = "albert",
    .model_types = {"albert"},
    .lm_classes = {"AlbertForMaskedLM", "AlbertForPreTraining"},
    .prefix = "albert.",
    .input_table = "~embeddings.word_embeddings.weight",
    .position_table = "~embeddings.position_embeddings.weight",
    .segment_table = "~embeddings.token_type_embeddings.weight",
    .decoder_weight = "predictions.decoder.weight",
    .output_bias = "predictions.bias",
    .head_copies = {{"predictions.decoder.bias", "predictions.bias"}},
    .head_evidence = {"predictions.bias", "predictions.dense.weight"},
    .sizes =
        {
            {'V', {"vocab_size"}, "30000"},
            {'H', {"hidden_size"}, "4096"},
            {'E', {"embedding_size"}, "128"},
            {'L', {"num_hidden_layers"}, "12"},  // no tensor counts these
            {'G', {"num_hidden_groups"}, "1"},
            {'I', {"inner_group_num"}, "1"},
            {'F', {"intermediate_size"}, "16384"},
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
            {"~encoder.embedding_hidden_mapping_in.weight", "H,E"},  // even when E = H
            {"~encoder.embedding_hidden_mapping_in.bias", "H", Init::kZero},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.query.weight", "H,H"},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.query.bias", "H",
             Init::kZero},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.key.weight", "H,H"},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.key.bias", "H",
             Init::kZero},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.value.weight", "H,H"},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.value.bias", "H",
             Init::kZero},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.dense.weight", "H,H"},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.dense.bias", "H",
             Init::kZero},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.LayerNorm.weight", "H",
             Init::kOne},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.LayerNorm.bias", "H",
             Init::kZero},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.ffn.weight", "F,H"},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.ffn.bias", "F", Init::kZero},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.ffn_output.weight", "H,F"},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.ffn_output.bias", "H",
             Init::kZero},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.full_layer_layer_norm.weight", "H",
             Init::kOne},
            {"~encoder.albert_layer_groups.{g}.albert_layers.{i}.full_layer_layer_norm.bias", "H",
             Init::kZero},
            {"predictions.bias", "V", Init::kZero},
            {"predictions.dense.weight", "E,H"},
            {"predictions.dense.bias", "E", Init::kZero},
            {"predictions.LayerNorm.weight", "E", Init::kOne},
            {"predictions.LayerNorm.bias", "E", Init::kZero},
        },
    .position_buffers = {{"~embeddings.position_ids", PositionBuffer::Content::kCount},
                         {"~embeddings.token_type_ids", PositionBuffer::Content::kZero}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
