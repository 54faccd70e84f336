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
    .sizes =
        {
            // RoBERTa's default; the other two always write theirs.
            {'V', {"vocab_size"}, "50265"},
            {'H', {"hidden_size"}, "768"},
            {'L', {"num_hidden_layers"}, "12"},
            {'F', {"intermediate_size"}, "3072"},
            {'P', {"max_position_embeddings"}, "512"},
            {'T', {"type_vocab_size"}, "2"},
        },
    .tensors =
        {
            {"~embeddings.word_embeddings.weight", "V,H", Init::kPadded},
            {"~embeddings.position_embeddings.weight", "P,H", Init::kPadded},
            {"~embeddings.token_type_embeddings.weight", "T,H"},
            {"~embeddings.LayerNorm.weight", "H", Init::kOne},
            {"~embeddings.LayerNorm.bias", "H", Init::kZero},
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
            {"lm_head.bias", "V", Init::kZero},
            {"lm_head.dense.weight", "H,H"},
            {"lm_head.dense.bias", "H", Init::kZero},
            {"lm_head.layer_norm.weight", "H", Init::kOne},
            {"lm_head.layer_norm.bias", "H", Init::kZero},
        },
    .positions_after_padding = true,
    .position_buffers = {{"~embeddings.position_ids", PositionBuffer::Content::kCount},
                         {"~embeddings.token_type_ids", PositionBuffer::Content::kZero}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
