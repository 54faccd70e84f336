#include <algorithm>
#include <array>
#include <optional>

#include "base/little_endian.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/make_gguf.hpp"

namespace masque::test {

namespace {

/// The file cut where its pairs and tensors begin and end; no more of it is understood.
struct GgufParts {
  std::vector<std::string> pairs, tensors;
  std::string data;
};

class GgufCutter {
 public:
  explicit GgufCutter(std::string_view file) : rest_(file) {}

  std::optional<GgufParts> cut() {
    const std::size_t all = rest_.size();
    take(8);
    const std::uint64_t tensors = number(8);
    const std::uint64_t pairs = number(8);
    GgufParts parts;
    for (std::uint64_t i = 0; i < pairs && good_; ++i)
      parts.pairs.push_back(piece([&] { pair(); }));
    for (std::uint64_t i = 0; i < tensors && good_; ++i)
      parts.tensors.push_back(piece([&] { tensor(); }));
    take(std::min(rest_.size(), (32 - (all - rest_.size()) % 32) % 32));
    parts.data = rest_;
    return good_ ? std::optional(parts) : std::nullopt;
  }

 private:
  void take(std::uint64_t bytes) {
    good_ = good_ && bytes <= rest_.size();
    if (good_) rest_.remove_prefix(bytes);
  }
  std::uint64_t number(std::size_t bytes) {
    const std::string_view at = rest_;
    take(bytes);
    if (!good_) return 0;
    return bytes == 4 ? load_number<std::uint32_t>(at.data())
                      : load_number<std::uint64_t>(at.data());
  }
  void text() { take(number(8)); }
  void value(std::uint64_t type) {
    constexpr std::array<std::uint64_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    good_ = good_ && type < kBytes.size();
    if (!good_) return;
    if (type == 8) {
      text();
    } else if (type == 9) {
      const std::uint64_t element = number(4);
      for (std::uint64_t left = number(8); left > 0 && good_ && element != 9; --left)
        value(element);
    } else {
      take(kBytes[type]);
    }
  }
  void pair() {
    text();
    value(number(4));
  }
  void tensor() {
    text();
    const std::uint64_t sizes = number(4);
    take(sizes > 64 ? rest_.size() + 1 : sizes * 8);
    take(12);
  }
  template <class F>
  std::string piece(F read) {
    const std::string_view from = rest_;
    read();
    return std::string(from.substr(0, from.size() - rest_.size()));
  }

  std::string_view rest_;
  bool good_ = true;
};

void change(std::vector<std::string>& list, Choices& choices) {
  if (list.empty()) return;
  const std::size_t at = choices.below(list.size());
  switch (choices.below(4)) {
    case 0: list.push_back(list[at]); break;
    case 1: list.erase(list.begin() + static_cast<std::ptrdiff_t>(at)); break;
    case 2: std::swap(list[at], list[choices.below(list.size())]); break;
    default: list[at] = mutate_bytes(list[at]);
  }
}

}  // namespace

std::string mutate_gguf(std::string_view file, Choices& choices) {
  auto parts = GgufCutter(file).cut();
  if (!parts) return {};
  change(choices.one_in(2) ? parts->pairs : parts->tensors, choices);
  if (choices.one_in(8)) parts->data = mutate_bytes(parts->data);
  return make_gguf(parts->pairs, parts->tensors, parts->data);
}

}  // namespace masque::test
