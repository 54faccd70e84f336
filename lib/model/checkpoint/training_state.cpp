#include "model/checkpoint/training_state.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/thread/parallel.hpp"
#include "store/tensors_digest.hpp"
#include "tensor/convert.hpp"

namespace masque::model {

namespace {

constexpr std::string_view kDigestOfTensors = "masque.xxh3.tensors";
constexpr std::string_view kDigestOfFacts = "masque.xxh3.facts";

/// Of all metadata of a state but this digest itself.
std::string facts_digest(store::Metadata metadata) {
  std::erase_if(metadata, [](const auto& fact) {
    return !fact.first.starts_with(kStateFacts) || fact.first == kDigestOfFacts;
  });
  std::ranges::sort(metadata);
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  for (const auto& [key, value] : metadata)
    hasher->add(as_bytes(fmt::format("{}:{}={}:{}\n", key.size(), key, value.size(), value)));
  return hasher->digest();
}

const store::Metadata& metadata_of(const store::Checkpoint& state) {
  return state.files().front().content.metadata;
}

}  // namespace

void add_state_digests(store::OutputWeights& state) {
  state.metadata.emplace_back(kDigestOfTensors, store::tensors_digest(state));
  state.metadata.emplace_back(kDigestOfFacts, facts_digest(state.metadata));
  std::ranges::sort(state.metadata);
}

store::Metadata run_facts(const store::Checkpoint& state, std::span<const std::string_view> names) {
  store::Metadata facts;
  for (const std::string_view name : names) {
    const std::string key = fmt::format("{}{}", kStateFacts, name);
    if (const std::string* value = store::find_metadata(metadata_of(state), key))
      facts.emplace_back(key, *value);
  }
  return facts;
}

void check_state_facts(const store::Checkpoint& state, const std::string& path) {
  const store::Metadata& metadata = metadata_of(state);
  const std::string* stated = store::find_metadata(metadata, kDigestOfFacts);
  if (stated == nullptr || *stated == facts_digest(metadata)) return;
  throw InputError(
      path,
      fmt::format("was changed since it was written: the metadata does not have the digest {}",
                  kDigestOfFacts));
}

void check_state(const store::Checkpoint& state, const std::string& path) {
  check_state_facts(state, path);
  const std::string* stated = store::find_metadata(metadata_of(state), kDigestOfTensors);
  if (stated == nullptr || *stated == store::tensors_digest(state)) return;
  throw InputError(
      path, fmt::format("was changed since it was written: the tensors do not have the digest {}",
                        kDigestOfTensors));
}

std::optional<std::string> not_begun_note(const std::string& folder) {
  const std::string path = join(folder, kTrainingStateName);
  if (!exists(path)) return std::nullopt;
  std::optional<std::string> note;
  // What is wrong with the state is for those who resume the run.
  static_cast<void>(input_error_message([&] {
    const store::Checkpoint state = store::open_checkpoint(path);
    const std::string* step = store::find_metadata(metadata_of(state), "masque.step");
    const std::string* steps = store::find_metadata(metadata_of(state), "masque.steps");
    if (step == nullptr || *step != "0" || steps == nullptr || *steps == "0") return;
    note = fmt::format("training had not begun (step 0 of {})", escape(*steps));
  }));
  return note;
}

bool are_values_of_state(std::span<const float> before, std::span<const float> now) {
  MASQUE_CHECK(before.size() == now.size());
  const auto same = [](float x, float y) {  // the sign of 0, too
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  };
  if (std::ranges::equal(before, now, same)) return true;
  const std::vector<double> numbers(before.begin(), before.end());
  std::vector<float> rounded(before.size());
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF8E4M3, DType::kF8E5M2}) {
    std::vector<std::byte> codes(byte_count(dtype, {before.size()}).value());
    from_double(dtype, numbers, codes);
    to_float(dtype, codes, rounded);
    if (std::ranges::equal(rounded, now, same)) return true;
  }
  return false;
}

std::string state_tensor_name(std::string_view what, std::string_view parameter) {
  return fmt::format("{}.{}", what, parameter);
}

std::string parameter_name(const ModelPlan& plan, const PlacedTensor& tensor,
                           const TensorPart& part) {
  std::string name = written_name(plan, tensor);
  if (tensor.parts.size() > 1) name += fmt::format("#{}", static_cast<int>(part.role));
  return name;
}

RoleShape parameter_shape(const Design& design, const PlacedTensor& tensor,
                          const TensorPart& part) {
  const RoleShape shape = role_shape(design, part.role, part.part);
  if (!tensor.bias) return shape;
  return {1, is_norm(part.role) ? shape.columns : shape.rows};
}

}  // namespace masque::model
