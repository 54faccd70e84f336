#include "surgery/correction/training_record.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/parse_number.hpp"
#include "base/split.hpp"

namespace masque::surgery {

namespace {

constexpr const char* kTrainingRecord = "training.safetensors";

/// Objectives whose model never reads [MASK].
constexpr std::array<std::string_view, 12> kWithoutMask{
    "mae",    "mae-mask", "tta",        "two-tower", "clm",         "plm",
    "univae", "electra",  "electra-15", "electric",  "replace-mlm", "all-tokens-mlm"};

/// Numbers from 0 with colons between; empty if `text` is anything else.
std::vector<double> colon_numbers(std::string_view text) {
  std::vector<double> out;
  for (const std::string_view part : split(text, ':')) {
    const auto value = parse_number<double>(part);
    if (!value || !(*value >= 0)) return {};
    out.push_back(*value);
  }
  return out;
}

}  // namespace

std::optional<TrainingRecord> TrainingRecord::of(const store::Checkpoint& checkpoint) {
  const std::string path = join(checkpoint.folder(), kTrainingRecord);
  if (!exists(path)) return std::nullopt;
  const store::Checkpoint state = store::open_checkpoint(path);
  const auto value = [&](std::string_view name) -> std::string {
    for (const store::WeightsFile& file : state.files()) {
      const std::string* found =
          store::find_metadata(file.content.metadata, fmt::format("masque.{}", name));
      if (found != nullptr) return *found;
    }
    return "";
  };
  TrainingRecord out;
  out.objective = value("objective");
  if (out.objective.empty()) return std::nullopt;
  const std::string replace = value("replace");
  if (std::ranges::find(kWithoutMask, out.objective) != kWithoutMask.end()) {
    out.inputs = Inputs::kWithoutMask;
    return out;
  }
  if (out.objective != "mlm") return out;
  out.replaces_by_similar = !replace.empty() && replace != "mask";
  out.inputs = out.replaces_by_similar ? Inputs::kWithoutMask : Inputs::kMasked;
  const std::vector<double> rate = colon_numbers(value("rate"));
  const std::vector<double> split = colon_numbers(value("split"));
  const double sum = split.size() == 3 ? split[0] + split[1] + split[2] : 0;
  if (rate.empty() || rate.size() > 2 || !(sum > 0)) {
    throw InputError(path, fmt::format("masque.rate '{}', masque.split '{}': expected a rate and "
                                       "the shares of [MASK], kept and random tokens",
                                       escape(value("rate")), escape(value("split"))));
  }
  // The correction is linear in the rate.
  out.rates = {.rate = (rate.front() + rate.back()) / 2,
               .mask = split[0] / sum,
               .keep = split[1] / sum,
               .random = split[2] / sum};
  return out;
}

}  // namespace masque::surgery
