// GAU-alpha (ZhuiyiTechnology/GAU-alpha): embeddings under bert/, layers under GAU_alpha/.
#include "store/tensorflow/tf_names.hpp"

namespace masque::store {
namespace {

constexpr const char* kWords = "bert/embeddings/word_embeddings";
constexpr const char* kTypes = "bert/embeddings/token_type_embeddings";

std::vector<TfRow> rows() {
  const std::string tf = "GAU_alpha/encoder/layer_{l}/gau/";
  const std::string hf = "gau_alpha.encoder.layer.{l}.gau.";
  return {
      {kWords, "gau_alpha.embeddings.word_embeddings", TfKind::kTable},
      {kTypes, "gau_alpha.embeddings.token_type_embeddings", TfKind::kTable},
      {tf + "i_dense", hf + "i_dense", TfKind::kDense},
      {tf + "o_dense", hf + "o_dense", TfKind::kDense},
      {tf + "q_scaleoffset", hf + "q_scaleoffset", TfKind::kNorm},
      {tf + "k_scaleoffset", hf + "k_scaleoffset", TfKind::kNorm},
  };
}

bool is_named(const Checkpoint& checkpoint, const std::optional<ModelConfig>& /*config*/) {
  return has_tensor(checkpoint, "GAU_alpha/encoder/layer_0/gau/i_dense/kernel");
}

std::vector<std::pair<std::string, std::string>> fields(const Checkpoint& /*checkpoint*/) {
  return tf_fields("gau_alpha", "GAUAlphaForMaskedLM");
}

const TfFamily kFamily{
    .name = "gau_alpha",
    .model_types = {"gau_alpha"},
    .prefix = "gau_alpha.",
    .config = "bert_config.json",
    .decoder = "cls.predictions.decoder.weight",
    .decoder_bias = "",
    .bias = "",
    .heads = {},
    .rows = rows(),
    .is_named = is_named,
    .fields = fields,
};

const TfFamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::store
