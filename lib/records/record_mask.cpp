#include "records/record_mask.hpp"

#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parallel.hpp"

namespace masque::records {

namespace {

/// Calls work(); what it refuses is the record's fault.
template <class Work>
void about_mask(const Work& work) {
  if (const auto problem = usage_error_message(work)) throw InputError("mask: " + *problem);
}

}  // namespace

mask::MaskExpression parse_record_mask(std::string_view text, Index length) {
  std::optional<mask::MaskExpression> mask;
  about_mask([&] {
    mask = mask::parse_mask(text);
    mask->check_sequence(length);
  });
  return *std::move(mask);
}

mask::Mask bind_record_mask(std::string_view text, Index length) {
  const mask::MaskExpression mask = parse_record_mask(text, length);
  std::optional<mask::Mask> bound;
  about_mask([&] { bound = mask.bind_sequence(length); });
  return *std::move(bound);
}

}  // namespace masque::records
