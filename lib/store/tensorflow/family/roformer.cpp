// RoFormer and RoFormerV2 (ZhuiyiTechnology, written by bert4keras): BERT's names without a table
// of positions; the second version without norms and biases.
#include "store/tensorflow/tf_names.hpp"

namespace masque::store {
namespace {

constexpr const char* kWords = "bert/embeddings/word_embeddings";

std::vector<TfRow> rows() {
  std::vector<TfRow> rows;
  for (TfRow& row : tf_encoder_rows("bert/", "roformer.")) {
    if (row.tf != "bert/embeddings/position_embeddings") rows.push_back(std::move(row));
  }
  rows.push_back(
      {"bert/encoder/embedding_hidden_mapping_in", "roformer.embeddings_project", TfKind::kDense});
  for (TfRow& row : tf_bert_head_rows()) rows.push_back(std::move(row));
  return rows;
}

bool is_named(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config) {
  // NEZHA has these names, too, and relative positions of another kind.
  if (config && config->flag("use_relative_position").value_or(false)) return false;
  return has_tensor(checkpoint, kWords) &&
         has_tensor(checkpoint, "bert/encoder/layer_0/attention/self/query/kernel") &&
         !has_tensor(checkpoint, "bert/embeddings/position_embeddings");
}

std::vector<std::pair<std::string, std::string>> fields(const Checkpoint& checkpoint) {
  if (!has_tensor(checkpoint, "bert/embeddings/LayerNorm/gamma")) {
    // The head of the second version is the word table: it leaves no trace.
    auto fields = tf_fields("roformer", "RoFormerForMaskedLM");
    fields.emplace_back("norm_type", "\"rms_norm\"");
    fields.emplace_back("use_bias", "false");
    return fields;
  }
  const bool head = has_tensor(checkpoint, "cls/predictions/output_bias");
  return tf_fields("roformer", head ? "RoFormerForMaskedLM" : "RoFormerModel");
}

const TfFamily kFamily{
    .name = "roformer",
    .model_types = {"roformer"},
    .prefix = "roformer.",
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
