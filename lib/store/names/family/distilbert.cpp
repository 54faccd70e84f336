// DistilBERT: BERT without segments, half as deep, with names of its own.
#include "store/names/family.hpp"

namespace masque::store {
namespace {

const FamilyNames kFamily{
    .name = "distilbert",
    .model_types = {"distilbert"},
    .lm_classes = {"DistilBertForMaskedLM"},
    .prefix = "distilbert.",
    .input_table = "~embeddings.word_embeddings.weight",
    .position_table = "~embeddings.position_embeddings.weight",
    .segment_table = "",
    .decoder_weight = "vocab_projector.weight",
    .output_bias = "vocab_projector.bias",
    .head_copies = {},
    .head_evidence = {"vocab_projector.bias", "vocab_transform.weight"},
    .vocab_fields = {"vocab_size"},
    .position_fields = {"max_position_embeddings"},
    .tensors =
        {
            "~embeddings.word_embeddings.weight",
            "~embeddings.position_embeddings.weight",
            "~embeddings.LayerNorm.*",
            "~transformer.layer.{l}.attention.q_lin.*",
            "~transformer.layer.{l}.attention.k_lin.*",
            "~transformer.layer.{l}.attention.v_lin.*",
            "~transformer.layer.{l}.attention.out_lin.*",
            "~transformer.layer.{l}.sa_layer_norm.*",
            "~transformer.layer.{l}.ffn.lin1.*",
            "~transformer.layer.{l}.ffn.lin2.*",
            "~transformer.layer.{l}.output_layer_norm.*",
            "vocab_transform.*",
            "vocab_layer_norm.*",
            "vocab_projector.bias",
        },
    .position_buffers = {{"~embeddings.position_ids", PositionBuffer::Content::kCount}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
