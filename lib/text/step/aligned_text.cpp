#include "text/step/aligned_text.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::text {

AlignedText AlignedText::from(std::string_view text, std::uint32_t offset) {
  AlignedText out{std::string(text), {}};
  out.origin.reserve(text.size());
  SparseLooks looks;
  for (std::size_t i = 0; i < text.size();) {
    looks.step();
    std::size_t end = i + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    const Span span{offset + static_cast<std::uint32_t>(i),
                    offset + static_cast<std::uint32_t>(end)};
    out.origin.insert(out.origin.end(), end - i, span);
    i = end;
  }
  return out;
}

AlignedText AlignedText::part(std::size_t begin, std::size_t end) const {
  const auto from = origin.begin() + static_cast<std::ptrdiff_t>(begin);
  return {text.substr(begin, end - begin), {from, from + static_cast<std::ptrdiff_t>(end - begin)}};
}

Span AlignedText::span(std::size_t begin, std::size_t end) const {
  MASQUE_CHECK(begin < end && end <= origin.size());
  std::optional<Span> found;
  for (std::size_t i = begin; i < end; ++i) {
    if (origin[i].begin == origin[i].end) continue;
    if (!found) {
      found = origin[i];
    } else {
      found->begin = std::min(found->begin, origin[i].begin);
      found->end = std::max(found->end, origin[i].end);
    }
  }
  return found.value_or(origin[begin]);
}

}  // namespace masque::text
