#include <algorithm>
#include <cstring>

#include "text/added_tokens.hpp"

namespace masque::text {

void TextTrie::add(std::string_view text, std::size_t value) {
  if (text.empty()) return;
  std::uint32_t at = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    auto& children = nodes_[at].children;
    const auto child = std::find_if(children.begin(), children.end(),
                                    [byte](const auto& entry) { return entry.first == byte; });
    if (child != children.end()) {
      at = child->second;
      continue;
    }
    const auto added = static_cast<std::uint32_t>(nodes_.size());
    if (at == 0) {
      first_[byte] = added;
      only_first_ = byte;
      ++first_count_;
    }
    children.emplace_back(byte, added);
    nodes_.emplace_back();
    at = added;
  }
  if (nodes_[at].value < 0) nodes_[at].value = static_cast<std::int64_t>(value);
}

bool TextTrie::find(std::string_view text, std::size_t from, Match& match) const {
  if (first_count_ == 0) return false;
  for (std::size_t i = from; i < text.size(); ++i) {
    if (first_count_ == 1) {
      const void* place = std::memchr(text.data() + i, only_first_, text.size() - i);
      if (place == nullptr) return false;
      i = static_cast<std::size_t>(static_cast<const char*>(place) - text.data());
    }
    std::uint32_t at = first_[static_cast<unsigned char>(text[i])];
    if (at == 0) continue;
    std::int64_t best = nodes_[at].value;
    std::size_t end = i + 1;
    for (std::size_t k = i + 1; k < text.size(); ++k) {
      const auto& children = nodes_[at].children;
      const auto byte = static_cast<unsigned char>(text[k]);
      const auto child = std::find_if(children.begin(), children.end(),
                                      [byte](const auto& entry) { return entry.first == byte; });
      if (child == children.end()) break;
      at = child->second;
      if (nodes_[at].value < 0) continue;
      best = nodes_[at].value;
      end = k + 1;
    }
    if (best < 0) continue;
    match = {i, end, static_cast<std::size_t>(best)};
    return true;
  }
  return false;
}

}  // namespace masque::text
