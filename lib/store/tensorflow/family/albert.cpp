// ALBERT: google-research/albert, brightmart/albert_zh's google versions, bert4keras. A layer is a
// place in a group; the two norms of a layer stand next to its attention, not inside.
#include "store/tensorflow/tf_names.hpp"

namespace masque::store {
namespace {

constexpr const char* kGroup = "bert/encoder/transformer/group_{l}/inner_group_{l}/";
constexpr const char* kLayer = "albert.encoder.albert_layer_groups.{l}.albert_layers.{l}.";

std::vector<TfRow> rows() {
  const std::string tf = kGroup;
  const std::string hf = kLayer;
  std::vector<TfRow> rows;
  // Embeddings alone: the layers have names of their own.
  for (TfRow& row : tf_encoder_rows("bert/", "albert.")) {
    if (row.tf.starts_with("bert/embeddings/")) rows.push_back(std::move(row));
  }
  const std::vector<TfRow> more{
      {"bert/encoder/embedding_hidden_mapping_in", "albert.encoder.embedding_hidden_mapping_in",
       TfKind::kDense},
      {tf + "attention_1/self/query", hf + "attention.query", TfKind::kDense},
      {tf + "attention_1/self/key", hf + "attention.key", TfKind::kDense},
      {tf + "attention_1/self/value", hf + "attention.value", TfKind::kDense},
      {tf + "attention_1/output/dense", hf + "attention.dense", TfKind::kDense},
      {tf + "LayerNorm", hf + "attention.LayerNorm", TfKind::kNorm},
      {tf + "ffn_1/intermediate/dense", hf + "ffn", TfKind::kDense},
      {tf + "ffn_1/intermediate/output/dense", hf + "ffn_output", TfKind::kDense},
      {tf + "LayerNorm_1", hf + "full_layer_layer_norm", TfKind::kNorm},
      {"bert/pooler/dense", "albert.pooler", TfKind::kDense},
      {"cls/predictions/transform/dense", "predictions.dense", TfKind::kDense},
      {"cls/predictions/transform/LayerNorm", "predictions.LayerNorm", TfKind::kNorm},
      {"cls/predictions/output_bias", "predictions.bias", TfKind::kTensor},
      {"cls/seq_relationship/output_weights", "sop_classifier.classifier.weight", TfKind::kTensor},
      {"cls/seq_relationship/output_bias", "sop_classifier.classifier.bias", TfKind::kTensor},
  };
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

bool is_named(const Checkpoint& checkpoint, const std::optional<ModelConfig>& /*config*/) {
  return has_tensor(checkpoint,
                    "bert/encoder/transformer/group_0/inner_group_0/attention_1/self/query/kernel");
}

std::vector<std::pair<std::string, std::string>> fields(const Checkpoint& checkpoint) {
  const bool head = has_tensor(checkpoint, "cls/predictions/output_bias");
  const bool pairs = has_tensor(checkpoint, "cls/seq_relationship/output_weights");
  return tf_fields("albert", head && pairs ? "AlbertForPreTraining"
                             : head        ? "AlbertForMaskedLM"
                                           : "AlbertModel");
}

const TfFamily kFamily{
    .name = "albert",
    .model_types = {"albert"},
    .prefix = "albert.",
    .config = "albert_config.json",
    .decoder = "predictions.decoder.weight",
    .decoder_bias = "predictions.decoder.bias",
    .bias = "predictions.bias",
    .heads = {},
    .rows = rows(),
    .is_named = is_named,
    .fields = fields,
};

const TfFamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
