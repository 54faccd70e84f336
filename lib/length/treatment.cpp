#include "length/treatment.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/name_list.hpp"
#include "base/string/split.hpp"
#include "length/arms.hpp"
#include "model/layer_list.hpp"
#include "nn/normalizer.hpp"

namespace masque::length {

namespace {

/// Of the length that the model was trained for.
constexpr const char* kLogN = "log_n";

std::vector<LengthTreatment> masked_treatments(const std::string& text) {
  std::vector<LengthTreatment> all;
  for (std::vector<mask::MaskLayer>& masks : parse_masks(text))
    all.emplace_back().masks = std::move(masks);
  return all;
}

std::vector<LengthTreatment> parse_windows(const std::string& text) {
  std::vector<LengthTreatment> all(1);
  for (const Index window : parse_lengths("window", text)) all.emplace_back().window = window;
  return all;
}

}  // namespace

std::string LengthTreatment::mask_text() const {
  if (window > 0) return fmt::format("window:{}", window);
  return masks.empty() ? kOwn : mask::layers_text(masks);
}

model::ModelOptions LengthTreatment::options(Index trained, kernel::Precision precision) const {
  model::ModelOptions options;
  options.precision = precision;
  options.masks = masks;
  if (normalizer == kLogN) {
    // A base of 1 has no logarithm to divide by.
    const Index base = std::max<Index>(trained, 2);
    options.normalizer = fmt::format("log_n(base={}, clip={})", base, base);
  } else if (normalizer != kOwn) {
    options.normalizer = normalizer;
  }
  return options;
}

std::vector<LengthTreatment> make_treatments(const TreatmentLists& lists) {
  if (lists.masks && lists.windows) {
    throw UsageError(
        fmt::format("{} cannot be combined with {}: it applies to the model's own mask",
                    field("window"), field("mask")));
  }
  std::vector<LengthTreatment> masks(1);
  if (lists.masks) masks = masked_treatments(*lists.masks);
  if (lists.windows) masks = parse_windows(*lists.windows);
  const std::vector<std::string> normalizers = split_names("normalizer", lists.normalizers);
  for (const std::string& normalizer : normalizers) {
    if (normalizer == kOwn) continue;
    for (const std::string& one : model::LayerList(normalizer).choices()) {
      if (one == kLogN && model::LayerList(normalizer).is_list()) {
        throw UsageError(fmt::format("{}: '{}' contains log_n, expected log_n(base=N) in a list",
                                     field("normalizer"), escape(normalizer)));
      }
      nn::parse_normalizer(one);
    }
  }
  std::vector<LengthTreatment> all;
  for (const std::string& name : split_names("position", lists.positions)) {
    const std::shared_ptr<const model::PositionTreatment> position =
        model::parse_position_treatment(name);
    for (const std::string& normalizer : normalizers) {
      for (const LengthTreatment& mask : masks) {
        LengthTreatment& one = all.emplace_back(mask);
        one.position = position;
        one.normalizer = normalizer;
      }
    }
  }
  return all;
}

}  // namespace masque::length
