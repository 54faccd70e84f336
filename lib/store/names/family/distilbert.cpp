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
    .sizes =
        {
            {'V', {"vocab_size"}, "30522"},
            {'H', {"dim", "hidden_size"}, "768"},
            {'L', {"n_layers", "num_hidden_layers"}, "6"},
            {'F', {"hidden_dim"}, "3072"},
            {'P', {"max_position_embeddings"}, "512"},
        },
    .tensors =
        {
            {"~embeddings.word_embeddings.weight", "V,H", Init::kPadded},
            {"~embeddings.position_embeddings.weight", "P,H"},
            {"~embeddings.LayerNorm.weight", "H", Init::kOne},
            {"~embeddings.LayerNorm.bias", "H", Init::kZero},
            {"~transformer.layer.{l}.attention.q_lin.weight", "H,H"},
            {"~transformer.layer.{l}.attention.q_lin.bias", "H", Init::kZero},
            {"~transformer.layer.{l}.attention.k_lin.weight", "H,H"},
            {"~transformer.layer.{l}.attention.k_lin.bias", "H", Init::kZero},
            {"~transformer.layer.{l}.attention.v_lin.weight", "H,H"},
            {"~transformer.layer.{l}.attention.v_lin.bias", "H", Init::kZero},
            {"~transformer.layer.{l}.attention.out_lin.weight", "H,H"},
            {"~transformer.layer.{l}.attention.out_lin.bias", "H", Init::kZero},
            {"~transformer.layer.{l}.sa_layer_norm.weight", "H", Init::kOne},
            {"~transformer.layer.{l}.sa_layer_norm.bias", "H", Init::kZero},
            {"~transformer.layer.{l}.ffn.lin1.weight", "F,H"},
            {"~transformer.layer.{l}.ffn.lin1.bias", "F", Init::kZero},
            {"~transformer.layer.{l}.ffn.lin2.weight", "H,F"},
            {"~transformer.layer.{l}.ffn.lin2.bias", "H", Init::kZero},
            {"~transformer.layer.{l}.output_layer_norm.weight", "H", Init::kOne},
            {"~transformer.layer.{l}.output_layer_norm.bias", "H", Init::kZero},
            {"vocab_transform.weight", "H,H"},
            {"vocab_transform.bias", "H", Init::kZero},
            {"vocab_layer_norm.weight", "H", Init::kOne},
            {"vocab_layer_norm.bias", "H", Init::kZero},
            {"vocab_projector.bias", "V", Init::kZero},
        },
    .position_buffers = {{"~embeddings.position_ids", PositionBuffer::Content::kCount}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
