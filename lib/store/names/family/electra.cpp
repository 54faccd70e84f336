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
    .vocab_fields = {"vocab_size"},
    .position_fields = {"max_position_embeddings"},
    .tensors = with_bert_layers({
        "~embeddings.word_embeddings.weight",
        "~embeddings.position_embeddings.weight",
        "~embeddings.token_type_embeddings.weight",
        "~embeddings.LayerNorm.*",
        "~embeddings_project.*",
        "generator_predictions.dense.*",
        "generator_predictions.LayerNorm.*",
        "generator_lm_head.bias",
    }),
    .position_buffers = {{"~embeddings.position_ids", PositionBuffer::Content::kCount},
                         {"~embeddings.token_type_ids", PositionBuffer::Content::kZero}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
