#include "text/step/encoding.hpp"

#include <algorithm>

#include "base/thread/interrupt.hpp"

namespace masque::text {

namespace {

template <class T>
void append_to(std::vector<T>& to, const std::vector<T>& from) {
  constexpr std::size_t kBlock = 1 << 16;
  to.reserve(to.size() + from.size());
  for (std::size_t done = 0; done < from.size(); done += kBlock) {
    throw_if_interrupted();
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(done);
    const std::size_t count = std::min(kBlock, from.size() - done);
    to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  }
}

template <class T>
void keep(std::vector<T>& values, std::size_t count, bool from_left) {
  if (count >= values.size()) return;
  const auto cut = static_cast<std::ptrdiff_t>(values.size() - count);
  if (from_left) {
    values.erase(values.begin(), values.begin() + cut);
  } else {
    values.erase(values.end() - cut, values.end());
  }
}

}  // namespace

void Encoding::push_back(TokenId id, std::string token, Span offset, std::uint32_t type_id,
                         bool is_special, std::uint32_t word) {
  ids.push_back(id);
  tokens.push_back(std::move(token));
  offsets.push_back(offset);
  type_ids.push_back(type_id);
  special.push_back(is_special ? 1 : 0);
  words.push_back(word);
}

void Encoding::append(const Encoding& other) {
  append_to(ids, other.ids);
  append_to(tokens, other.tokens);
  append_to(offsets, other.offsets);
  append_to(type_ids, other.type_ids);
  append_to(special, other.special);
  append_to(words, other.words);
}

void Encoding::truncate(std::size_t count, bool from_left) {
  keep(ids, count, from_left);
  keep(tokens, count, from_left);
  keep(offsets, count, from_left);
  keep(type_ids, count, from_left);
  keep(special, count, from_left);
  keep(words, count, from_left);
}

}  // namespace masque::text
