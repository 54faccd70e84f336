#include "fuzz/mutators/mutator.hpp"

#include <algorithm>
#include <cstring>

#include "base/string/split.hpp"

// Of the engine; replay.cpp has another.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace masque::test {

std::string mutate_bytes(std::string_view text) {
  std::string out(text);
  out.resize(text.size() + 8);
  out.resize(
      LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(out.data()), text.size(), out.size()));
  return out;
}

std::string mutate_parts(std::string_view input, Choices& choices) {
  const std::vector<std::string_view> parts = split(input, '\0');
  const std::size_t at = choices.below(parts.size());
  std::string changed = mutate_json(parts[at], choices);
  if (changed.empty()) changed = mutate_bytes(parts[at]);
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += '\0';
    out += i == at ? std::string_view(changed) : parts[i];
  }
  return out;
}

std::string mutate_lines(std::string_view input, Choices& choices) {
  const std::vector<std::string_view> old = split(input, '\n');
  std::vector<std::string> lines(old.begin(), old.end());
  const std::size_t at = choices.below(lines.size());
  const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
  switch (choices.below(6)) {
    case 0: lines.insert(place, choices.of(lines)); break;
    case 1: lines.erase(place); break;
    case 2: std::swap(lines[at], lines[choices.below(lines.size())]); break;
    default: {
      const std::string changed = mutate_json(lines[at], choices);
      lines[at] = changed.empty() ? mutate_bytes(lines[at]) : changed;
    }
  }
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? "\n" : "") + lines[i];
  return out;
}

std::string mutate_json_or_lines(std::string_view input, Choices& choices) {
  std::string changed = mutate_json(input, choices);
  return changed.empty() ? mutate_lines(input, choices) : changed;
}

std::size_t run_mutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                        Mutate mutate) {
  Choices choices(seed);
  if (size > 0 && choices.one_in(2)) {
    const std::string changed = mutate({reinterpret_cast<const char*>(data), size}, choices);
    if (!changed.empty() && changed.size() <= most) {
      std::memcpy(data, changed.data(), changed.size());
      return changed.size();
    }
  }
  return LLVMFuzzerMutate(data, size, most);
}

}  // namespace masque::test
