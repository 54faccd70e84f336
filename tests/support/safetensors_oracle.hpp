// What must hold for any bytes taken as a safetensors file; for unit tests and the fuzz target.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/file/file.hpp"
#include "store/safetensors/safetensors.hpp"
#include "support/naive_safetensors.hpp"

namespace masque::test {

/// The header of a whole file, or the rule that it breaks.
inline store::Checked<store::SafetensorsHeader> parse_whole(std::string_view file) {
  const auto length = store::safetensors_header_length(as_bytes(file.substr(0, 8)), file.size());
  if (const auto* violation = std::get_if<store::Violation>(&length)) return *violation;
  return store::parse_safetensors_header(file.substr(8, std::get<std::uint64_t>(length)),
                                         file.size());
}

inline bool same_tensors(const std::vector<store::TensorInfo>& a,
                         const std::vector<NaiveTensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || dtype_name(a[i].dtype) != b[i].dtype ||
        a[i].shape != b[i].shape || a[i].begin != b[i].begin || a[i].end != b[i].end) {
      return false;
    }
  }
  return true;
}

/// What is wrong with our verdict on a file; empty if nothing is: the naive validator agrees, and a
/// header that was accepted and is written again says the same.
inline std::string wrong_verdict(std::string_view file) {
  const auto ours = parse_whole(file);
  const auto naive = naive_safetensors(file);
  if (const auto* violation = std::get_if<store::Violation>(&ours)) {
    if (violation->rule.empty() || violation->message.empty()) return "refused without a reason";
    if (naive && !violation->rule.starts_with("limit-")) return "refused: " + violation->rule;
    return {};
  }
  const auto& header = std::get<store::SafetensorsHeader>(ours);
  if (!naive) return "accepted, but not by the naive validator";
  if (!same_tensors(header.tensors, *naive)) return "other tensors than the naive validator's";
  const std::string again = store::write_safetensors_header(header.tensors, header.metadata) +
                            std::string(file.substr(header.data_begin));
  const auto reread = parse_whole(again);
  if (const auto* violation = std::get_if<store::Violation>(&reread)) {
    return "written again it is refused: " + violation->rule;
  }
  const auto& copy = std::get<store::SafetensorsHeader>(reread);
  if (copy.metadata != header.metadata) return "written again it has other metadata";
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const store::TensorInfo& a = header.tensors[i];
    const store::TensorInfo& b = copy.tensors[i];
    if (a.name != b.name || a.dtype != b.dtype || a.shape != b.shape || a.bytes() != b.bytes()) {
      return "written again it has other tensors";
    }
  }
  return {};
}

}  // namespace masque::test
