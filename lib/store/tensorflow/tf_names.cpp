#include "store/tensorflow/tf_names.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/registry/registry.hpp"

namespace masque::store {

namespace {

using namespace std::string_view_literals;

constexpr std::array kSlots{"/adam_m"sv, "/adam_v"sv, "/Adam"sv,    "/Adam_1"sv,
                            "/lamb_m"sv, "/lamb_v"sv, "/Momentum"sv};
constexpr std::array kCounters{"global_step"sv,   "beta1_power"sv, "beta2_power"sv, "temperature"sv,
                               "learning_rate"sv, "loss_scale"sv,  "good_steps"sv};
constexpr std::array kOptimizers{"AdamWeightDecayOptimizer"sv, "LAMBOptimizer"sv};

using TfFamilies = Registry<TfFamily>;

/// The ends of the two names of a kind, and whether the matrix is transposed.
struct Ends {
  std::string_view tf;
  std::string_view hf;
  bool transposed = false;
};

std::span<const Ends> ends_of(TfKind kind) {
  static constexpr std::array<Ends, 2> kDense{{{"/kernel", ".weight", true}, {"/bias", ".bias"}}};
  static constexpr std::array<Ends, 2> kNorm{{{"/gamma", ".weight"}, {"/beta", ".bias"}}};
  static constexpr std::array<Ends, 1> kTable{{{"", ".weight"}}};
  static constexpr std::array<Ends, 1> kTensor{{{"", ""}}};
  switch (kind) {
    case TfKind::kDense: return kDense;
    case TfKind::kNorm: return kNorm;
    case TfKind::kTable: return kTable;
    case TfKind::kTensor: break;
  }
  return kTensor;
}

constexpr std::string_view kNumber = "{l}";

/// The numbers that stand in a name where its pattern has "{l}"; nothing if they do not fit.
std::optional<std::vector<std::string_view>> numbers_in(std::string_view pattern,
                                                        std::string_view name) {
  std::vector<std::string_view> numbers;
  for (;;) {
    const std::size_t at = pattern.find(kNumber);
    const std::string_view text = pattern.substr(0, at);
    if (!name.starts_with(text)) return std::nullopt;
    name.remove_prefix(text.size());
    if (at == std::string_view::npos) break;
    pattern.remove_prefix(at + kNumber.size());
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    // "01" would come back as "1".
    if (digits == 0 || (digits > 1 && name[0] == '0')) return std::nullopt;
    numbers.push_back(name.substr(0, digits));
    name.remove_prefix(digits);
  }
  if (!name.empty()) return std::nullopt;
  return numbers;
}

std::string with_numbers(std::string pattern, const std::vector<std::string_view>& numbers) {
  for (const std::string_view number : numbers)
    pattern.replace(pattern.find(kNumber), kNumber.size(), number);
  return pattern;
}

enum class Side { kTf, kHf };

/// The other name of a tensor whose name is on this side of the table.
std::optional<NewName> other_name(const TfFamily& family, std::string_view name, Side side) {
  const bool from_tf = side == Side::kTf;
  for (const TfRow& row : family.rows) {
    for (const Ends& ends : ends_of(row.kind)) {
      const std::string_view end = from_tf ? ends.tf : ends.hf;
      if (!name.ends_with(end)) continue;
      const std::string_view stem = name.substr(0, name.size() - end.size());
      const auto numbers = numbers_in(from_tf ? row.tf : row.hf, stem);
      if (!numbers) continue;
      std::string other = with_numbers(from_tf ? row.hf : row.tf, *numbers);
      return NewName{other.append(from_tf ? ends.hf : ends.tf), ends.transposed};
    }
  }
  return std::nullopt;
}

}  // namespace

TfFamilyRegistration::TfFamilyRegistration(const TfFamily& family) {
  TfFamilies::of_process().add(family);
}

std::span<const TfFamily* const> tf_families() { return TfFamilies::of_process().all(); }

const TfFamily* find_tf_family(const Checkpoint& checkpoint,
                               const std::optional<ModelConfig>& config) {
  for (const TfFamily* family : tf_families()) {
    // A converted checkpoint may have kept names that no table knows.
    if (has_tensor(checkpoint, fmt::format("{}embeddings.word_embeddings.weight", family->prefix)))
      continue;
    if (family->is_named(checkpoint, config)) return family;
  }
  return nullptr;
}

bool holds_two_models(const Checkpoint& checkpoint) {
  return std::ranges::any_of(tf_families(), [&](const TfFamily* family) {
    return family->holds_two != nullptr && family->holds_two(checkpoint);
  });
}

std::optional<NewName> hf_name(const TfFamily& family, std::string_view tf) {
  return other_name(family, tf, Side::kTf);
}

std::optional<NewName> tf_name(const TfFamily& family, std::string_view hf) {
  if (auto name = other_name(family, hf, Side::kHf)) return name;
  return other_name(family, std::string(family.prefix).append(hf), Side::kHf);
}

bool is_optimizer_state(std::string_view name) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  const auto holds = [&](std::string_view text) { return name.find(text) != name.npos; };
  return std::ranges::any_of(kSlots, ends) || std::ranges::any_of(kOptimizers, holds) ||
         std::ranges::find(kCounters, name) != kCounters.end();
}

bool is_slot_of(const TensorInfo& slot, const TensorInfo& variable) {
  const std::string_view name = slot.name;
  const std::size_t at = name.rfind('/');
  return at != name.npos && name.substr(0, at) == variable.name && slot.shape == variable.shape;
}

bool is_optimizer_state(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  if (is_optimizer_state(tensor.name)) return true;
  const std::size_t at = tensor.name.rfind('/');
  const TensorInfo* of =
      at == std::string::npos ? nullptr : checkpoint.find(tensor.name.substr(0, at));
  return of != nullptr && is_slot_of(tensor, *of);
}

std::vector<TfRow> tf_encoder_rows(const std::string& tf, const std::string& hf) {
  std::vector<TfRow> rows{
      {tf + "embeddings/word_embeddings", hf + "embeddings.word_embeddings", TfKind::kTable},
      {tf + "embeddings/position_embeddings", hf + "embeddings.position_embeddings",
       TfKind::kTable},
      {tf + "embeddings/token_type_embeddings", hf + "embeddings.token_type_embeddings",
       TfKind::kTable},
      {tf + "embeddings/LayerNorm", hf + "embeddings.LayerNorm", TfKind::kNorm},
      {tf + "pooler/dense", hf + "pooler.dense", TfKind::kDense},
  };
  struct Part {
    const char* tf;
    const char* hf;
    TfKind kind;
  };
  for (const auto& [tf_part, hf_part, kind] :
       {Part{"attention/self/query", "attention.self.query", TfKind::kDense},
        {"attention/self/key", "attention.self.key", TfKind::kDense},
        {"attention/self/value", "attention.self.value", TfKind::kDense},
        {"attention/output/dense", "attention.output.dense", TfKind::kDense},
        {"attention/output/LayerNorm", "attention.output.LayerNorm", TfKind::kNorm},
        {"intermediate/dense", "intermediate.dense", TfKind::kDense},
        {"output/dense", "output.dense", TfKind::kDense},
        {"output/LayerNorm", "output.LayerNorm", TfKind::kNorm}}) {
    rows.push_back(
        {tf + "encoder/layer_{l}/" + tf_part, hf + "encoder.layer.{l}." + hf_part, kind});
  }
  return rows;
}

std::vector<TfRow> tf_bert_head_rows() {
  return {
      {"cls/predictions/transform/dense", "cls.predictions.transform.dense", TfKind::kDense},
      {"cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm", TfKind::kNorm},
      {"cls/predictions/output_bias", "cls.predictions.bias", TfKind::kTensor},
      {"cls/seq_relationship/output_weights", "cls.seq_relationship.weight", TfKind::kTensor},
      {"cls/seq_relationship/output_bias", "cls.seq_relationship.bias", TfKind::kTensor},
  };
}

bool has_tensor(const Checkpoint& checkpoint, std::string_view name) {
  return checkpoint.find(std::string(name)) != nullptr;
}

std::vector<std::pair<std::string, std::string>> tf_fields(std::string_view model_type,
                                                           std::string_view architecture) {
  return {{"model_type", quote_json(model_type)},
          {"architectures", json_array(std::array{architecture})},
          {"tie_word_embeddings", "true"}};
}

}  // namespace masque::store
