// ELECTRA (google-research/electra): a discriminator under electra/, a generator under generator/
// that shares the discriminator's embeddings or has its own. A file may hold both; transformers
// has one model in a file. The generator is taken if the config names its class or has its sizes,
// or if there is no discriminator.
#include <algorithm>

#include "store/tensorflow/tf_names.hpp"

namespace masque::store {
namespace {

constexpr const char* kSharedWords = "electra/embeddings/word_embeddings";
constexpr const char* kOwnWords = "generator/embeddings/word_embeddings";

/// A number of a body's first layer; 0 if it is not there.
std::uint64_t size_of(const Checkpoint& checkpoint, const std::string& body, const char* kernel) {
  const TensorInfo* tensor = checkpoint.find(body + "/encoder/layer_0/" + kernel);
  return tensor == nullptr || tensor->shape.size() != 2 ? 0 : tensor->shape[1];
}

bool has_body(const Checkpoint& checkpoint, const std::string& body) {
  return size_of(checkpoint, body, "attention/self/query/kernel") > 0;
}

bool is_generator(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config) {
  if (!has_body(checkpoint, "generator")) return false;
  if (!has_body(checkpoint, "electra")) return true;
  if (!config) return false;
  const std::vector<std::string> classes = config->architectures();
  if (!classes.empty()) return std::ranges::find(classes, "ElectraForMaskedLM") != classes.end();
  for (const auto& [field, kernel] :
       {std::pair{"hidden_size", "attention/self/query/kernel"},
        std::pair{"intermediate_size", "intermediate/dense/kernel"}}) {
    const auto wanted = config->size(field);
    const std::uint64_t generator = size_of(checkpoint, "generator", kernel);
    const std::uint64_t discriminator = size_of(checkpoint, "electra", kernel);
    if (wanted && generator != discriminator) return *wanted == generator;
  }
  return false;
}

/// A generator may be a head alone, on the discriminator's layers.
bool holds_both(const Checkpoint& checkpoint) {
  return has_body(checkpoint, "electra") &&
         (has_body(checkpoint, "generator") ||
          has_tensor(checkpoint, "generator_predictions/output_bias"));
}

bool is_discriminator_named(const Checkpoint& checkpoint,
                            const std::optional<ModelConfig>& config) {
  return has_tensor(checkpoint, kSharedWords) && has_body(checkpoint, "electra") &&
         !is_generator(checkpoint, config);
}

bool is_generator_named(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config) {
  return has_tensor(checkpoint, kSharedWords) && !has_tensor(checkpoint, kOwnWords) &&
         is_generator(checkpoint, config);
}

bool is_own_generator_named(const Checkpoint& checkpoint,
                            const std::optional<ModelConfig>& config) {
  return has_tensor(checkpoint, kOwnWords) && is_generator(checkpoint, config);
}

/// The rows of one model: its embeddings and its layers may stand under different names.
std::vector<TfRow> rows(const std::string& embeddings, const std::string& body) {
  std::vector<TfRow> rows;
  for (TfRow& row : tf_encoder_rows("", "electra.")) {
    if (row.tf.starts_with("pooler")) continue;
    row.tf.insert(0, row.tf.starts_with("embeddings/") ? embeddings : body);
    rows.push_back(std::move(row));
  }
  rows.push_back({body + "embeddings_project", "electra.embeddings_project", TfKind::kDense});
  return rows;
}

std::vector<TfRow> discriminator_rows() {
  std::vector<TfRow> all = rows("electra/", "electra/");
  const std::string head = "discriminator_predictions";
  all.push_back({head + "/dense", head + ".dense", TfKind::kDense});
  all.push_back({head + "/dense_1", head + ".dense_prediction", TfKind::kDense});
  return all;
}

std::vector<TfRow> generator_rows(const std::string& embeddings) {
  std::vector<TfRow> all = rows(embeddings, "generator/");
  const std::string head = "generator_predictions";
  all.push_back({head + "/dense", head + ".dense", TfKind::kDense});
  all.push_back({head + "/LayerNorm", head + ".LayerNorm", TfKind::kNorm});
  all.push_back({head + "/output_bias", "generator_lm_head.bias", TfKind::kTensor});
  return all;
}

std::vector<std::pair<std::string, std::string>> discriminator_fields(
    const Checkpoint& checkpoint) {
  const bool head = has_tensor(checkpoint, "discriminator_predictions/dense/kernel");
  return tf_fields("electra", head ? "ElectraForPreTraining" : "ElectraModel");
}

std::vector<std::pair<std::string, std::string>> generator_fields(const Checkpoint& checkpoint) {
  const bool head = has_tensor(checkpoint, "generator_predictions/output_bias");
  return tf_fields("electra", head ? "ElectraForMaskedLM" : "ElectraModel");
}

const TfFamily kDiscriminator{
    .name = "electra",
    .model_types = {"electra"},
    .prefix = "electra.",
    .config = "electra_config.json",
    .decoder = "",
    .decoder_bias = "",
    .bias = "",
    .heads = {},
    .rows = discriminator_rows(),
    .is_named = is_discriminator_named,
    .fields = discriminator_fields,
    .holds_two = holds_both,
};

TfFamily generator(std::string_view name, const std::string& embeddings) {
  return {
      .name = name,
      .model_types = {"electra"},
      .prefix = "electra.",
      .config = "electra_config.json",
      .decoder = "generator_lm_head.weight",
      .decoder_bias = "",
      .bias = "",
      .heads = {"generator_lm_head.bias", "generator_predictions.dense.weight"},
      .rows = generator_rows(embeddings),
      .is_named = embeddings == "electra/" ? is_generator_named : is_own_generator_named,
      .fields = generator_fields,
      .is_written = embeddings == "electra/",
  };
}

const TfFamily kGenerator = generator("electra-generator", "electra/");
const TfFamily kOwnGenerator = generator("electra-generator-own", "generator/");

const TfFamilyRegistration kFirst{kDiscriminator};
const TfFamilyRegistration kSecond{kGenerator};
const TfFamilyRegistration kThird{kOwnGenerator};

}  // namespace
}  // namespace masque::store
