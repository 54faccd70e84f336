#include <array>

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

}  // namespace masque::mask
