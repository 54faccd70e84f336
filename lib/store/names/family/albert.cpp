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
    .vocab_fields = {"vocab_size"},
    .position_fields = {"max_position_embeddings"},
    .tensors =
        {
            "~embeddings.word_embeddings.weight",
            "~embeddings.position_embeddings.weight",
            "~embeddings.token_type_embeddings.weight",
            "~embeddings.LayerNorm.*",
            "~encoder.embedding_hidden_mapping_in.*",
            "~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.query.*",
            "~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.key.*",
            "~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.value.*",
            "~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.dense.*",
            "~encoder.albert_layer_groups.{g}.albert_layers.{i}.attention.LayerNorm.*",
            "~encoder.albert_layer_groups.{g}.albert_layers.{i}.ffn.*",
            "~encoder.albert_layer_groups.{g}.albert_layers.{i}.ffn_output.*",
            "~encoder.albert_layer_groups.{g}.albert_layers.{i}.full_layer_layer_norm.*",
            "predictions.bias",
            "predictions.dense.*",
            "predictions.LayerNorm.*",
        },
    .position_buffers = {{"~embeddings.position_ids", PositionBuffer::Content::kCount},
                         {"~embeddings.token_type_ids", PositionBuffer::Content::kZero}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
