// BERT: post-norm encoder; the output matrix is the word table, the output bias is the head's own.
// The decoder has a second name for that bias, which counts once the head is untied.
#include "store/names/family.hpp"

namespace masque::store {
namespace {

const FamilyNames kFamily{
    .name = "bert",
    .model_types = {"bert"},
    .lm_classes = {"BertForMaskedLM", "BertForPreTraining", "BertLMHeadModel"},
    .prefix = "bert.",
    .input_table = "~embeddings.word_embeddings.weight",
    .position_table = "~embeddings.position_embeddings.weight",
    .segment_table = "~embeddings.token_type_embeddings.weight",
    .decoder_weight = "cls.predictions.decoder.weight",
    .output_bias = "cls.predictions.bias",
    .head_copies = {{"cls.predictions.decoder.bias", "cls.predictions.bias"}},
    .head_evidence = {"cls.predictions.bias", "cls.predictions.transform.dense.weight"},
    .sizes =
        {
            {'V', {"vocab_size"}, "30522"},
            {'H', {"hidden_size"}, "768"},
            {'L', {"num_hidden_layers"}, "12"},
            {'F', {"intermediate_size"}, "3072"},
            {'P', {"max_position_embeddings"}, "512"},
            {'T', {"type_vocab_size"}, "2"},
        },
    .tensors =
        {
            {"~embeddings.word_embeddings.weight", "V,H", Init::kPadded},
            {"~embeddings.position_embeddings.weight", "P,H"},
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
            {"cls.predictions.bias", "V", Init::kZero},
            {"cls.predictions.transform.dense.weight", "H,H"},
            {"cls.predictions.transform.dense.bias", "H", Init::kZero},
            {"cls.predictions.transform.LayerNorm.weight", "H", Init::kOne},
            {"cls.predictions.transform.LayerNorm.bias", "H", Init::kZero},
        },
    .position_buffers = {{"~embeddings.position_ids", PositionBuffer::Content::kCount},
                         {"~embeddings.token_type_ids", PositionBuffer::Content::kZero}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
