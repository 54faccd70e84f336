// RoBERTa, XLM-R and CamemBERT: BERT's encoder with another head. Position ids start after
// pad_token_id, whose row in the position table is zero as well.
#include "store/names/family.hpp"

namespace masque::store {
namespace {

const FamilyNames kFamily{
    .name = "roberta",
    .model_types = {"roberta", "xlm-roberta", "camembert"},
    .lm_classes =
        {
            "RobertaForMaskedLM",
            "RobertaForCausalLM",
            "XLMRobertaForMaskedLM",
            "XLMRobertaForCausalLM",
            "CamembertForMaskedLM",
            "CamembertForCausalLM",
        },
    .prefix = "roberta.",
    .input_table = "~embeddings.word_embeddings.weight",
    .position_table = "~embeddings.position_embeddings.weight",
    .segment_table = "~embeddings.token_type_embeddings.weight",
    .decoder_weight = "lm_head.decoder.weight",
    .output_bias = "lm_head.bias",
    .head_copies = {{"lm_head.decoder.bias", "lm_head.bias"}},
    .head_evidence = {"lm_head.bias", "lm_head.dense.weight"},
    .vocab_fields = {"vocab_size"},
    .position_fields = {"max_position_embeddings"},
    .tensors = with_bert_layers({
        "~embeddings.word_embeddings.weight",
        "~embeddings.position_embeddings.weight",
        "~embeddings.token_type_embeddings.weight",
        "~embeddings.LayerNorm.*",
        "lm_head.bias",
        "lm_head.dense.*",
        "lm_head.layer_norm.*",
    }),
    .positions_after_padding = true,
    .position_buffers = {{"~embeddings.position_ids", PositionBuffer::Content::kCount},
                         {"~embeddings.token_type_ids", PositionBuffer::Content::kZero}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
