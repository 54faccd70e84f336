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
    .vocab_fields = {"vocab_size"},
    .position_fields = {"max_position_embeddings"},
    .tensors = with_bert_layers({
        "~embeddings.word_embeddings.weight",
        "~embeddings.token_type_embeddings.weight",
        "~embeddings.LayerNorm.*",
        "~embeddings_project.*",
        "~encoder.embed_positions.weight",
        "cls.predictions.bias",
        "cls.predictions.transform.dense.*",
        "cls.predictions.transform.LayerNorm.*",
    }),
    .computed_positions = true,
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
