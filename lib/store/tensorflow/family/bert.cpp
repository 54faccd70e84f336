// BERT: google-research/bert, and bert4keras' `save_weights_as_checkpoint`. The variables of T-TA
// (joongbo/tta) are the same without token types.
#include "store/tensorflow/tf_names.hpp"

namespace masque::store {
namespace {

constexpr const char* kWords = "bert/embeddings/word_embeddings";
constexpr const char* kPositions = "bert/embeddings/position_embeddings";
constexpr const char* kTypes = "bert/embeddings/token_type_embeddings";

std::vector<TfRow> rows() {
  std::vector<TfRow> rows = tf_encoder_rows("bert/", "bert.");
  for (TfRow& row : tf_bert_head_rows()) rows.push_back(std::move(row));
  return rows;
}

bool is_named(const Checkpoint& checkpoint, const std::optional<ModelConfig>& /*config*/) {
  return has_tensor(checkpoint, kWords) && has_tensor(checkpoint, kPositions) &&
         !has_tensor(checkpoint,
                     "bert/encoder/transformer/group_0/inner_group_0/attention_1/self/query/"
                     "kernel");
}

std::vector<std::pair<std::string, std::string>> fields(const Checkpoint& checkpoint) {
  if (!has_tensor(checkpoint, kTypes)) {
    auto fields = tf_fields("tta", "BertForMaskedLM");
    fields.emplace_back("type_vocab_size", "0");
    return fields;
  }
  const bool head = has_tensor(checkpoint, "cls/predictions/output_bias");
  const bool pairs = has_tensor(checkpoint, "cls/seq_relationship/output_weights");
  return tf_fields("bert", head && pairs ? "BertForPreTraining"
                           : head        ? "BertForMaskedLM"
                                         : "BertModel");
}

const TfFamily kFamily{
    .name = "bert",
    .model_types = {"bert", "tta"},
    .prefix = "bert.",
    .config = "bert_config.json",
    .decoder = "cls.predictions.decoder.weight",
    .decoder_bias = "cls.predictions.decoder.bias",
    .bias = "cls.predictions.bias",
    .heads = {},
    .rows = rows(),
    .is_named = is_named,
    .fields = fields,
};

const TfFamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
