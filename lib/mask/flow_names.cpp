#include <array>

#include <fmt/format.h>

#include "mask/flow.hpp"

namespace masque::mask {

NameTable<KeySource> key_source_names() {
  static constexpr std::array<std::pair<std::string_view, KeySource>, 2> kNames{
      {{"layer", KeySource::kLayer}, {"input", KeySource::kInput}}};
  return kNames;
}

NameTable<QueryStart> query_start_names() {
  static constexpr std::array<std::pair<std::string_view, QueryStart>, 2> kNames{
      {{"token", QueryStart::kToken}, {"position", QueryStart::kPosition}}};
  return kNames;
}

std::string path_text(const std::vector<FlowStep>& path, bool two_streams) {
  std::string out;
  for (const FlowStep& step : path) {
    if (step.layer == 0) {
      out = fmt::format("token {}", step.position);
    } else {
      out += fmt::format(" -> layer {} {} {}", step.layer,
                         !two_streams   ? "position"
                         : step.content ? "content"
                                        : "query",
                         step.position);
    }
  }
  return out;
}

}  // namespace masque::mask
