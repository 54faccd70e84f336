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
    .vocab_fields = {"vocab_size"},
    .position_fields = {"max_position_embeddings"},
    .tensors = with_bert_layers({
        "~embeddings.word_embeddings.weight",
        "~embeddings.position_embeddings.weight",
        "~embeddings.token_type_embeddings.weight",
        "~embeddings.LayerNorm.*",
        "cls.predictions.bias",
        "cls.predictions.transform.dense.*",
        "cls.predictions.transform.LayerNorm.*",
    }),
    .position_buffers = {{"~embeddings.position_ids", PositionBuffer::Content::kCount},
                         {"~embeddings.token_type_ids", PositionBuffer::Content::kZero}},
};

const FamilyNamesRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
