// Changes of inputs that keep what a parser looks at first: lengths, offsets, sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace masque::test {

/// A few random choices, the same for the same seed.
class Choices {
 public:
  explicit Choices(std::uint32_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  /// A number below `end`, which is at least 1.
  std::size_t below(std::size_t end) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(state_ >> 33) % end;
  }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  std::uint64_t state_;
};

/// The engine's own changes of bytes; at most a few bytes longer.
std::string mutate_bytes(std::string_view text);

/// Each returns an input of its kind with a change; nothing for an input that is not of its kind.

/// A JSON document: values replaced, moved, doubled, taken away, members renamed.
std::string mutate_json(std::string_view text, Choices& choices);
/// Texts with NULs between; one of them changes, by its structure if it is JSON.
std::string mutate_parts(std::string_view input, Choices& choices);
/// Lines; one of them changes, or lines come, go and move.
std::string mutate_lines(std::string_view input, Choices& choices);
/// A JSON document if it is one, else lines.
std::string mutate_json_or_lines(std::string_view input, Choices& choices);
/// A header that is JSON, its length, and as many bytes as it speaks of.
std::string mutate_safetensors(std::string_view file, Choices& choices);
/// A config.json, a NUL, and a file of safetensors.
std::string mutate_config_and_weights(std::string_view input, Choices& choices);
/// Members of a zip file with right places, sizes and sums.
std::string mutate_zip(std::string_view file, Choices& choices);
/// Key-value pairs and tensors of a GGUF file with right counts.
std::string mutate_gguf(std::string_view file, Choices& choices);

using Mutate = std::string (*)(std::string_view, Choices&);

/// The first `kBytes` bytes stay; the rest changes by `kMutate`.
template <Mutate kMutate, std::size_t kBytes = 1>
std::string mutate_after(std::string_view input, Choices& choices) {
  if (input.size() < kBytes) return {};
  const std::string changed = kMutate(input.substr(kBytes), choices);
  return changed.empty() ? changed : std::string(input.substr(0, kBytes)) + changed;
}

/// The engine's call: half of the changes by `mutate`, the others byte by byte.
std::size_t run_mutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                        Mutate mutate);

}  // namespace masque::test

/// Defines the function by which the engine changes the inputs of a target.
#define MASQUE_FUZZ_MUTATOR(...)                                                       \
  extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, \
                                                 std::size_t most, unsigned seed) {    \
    return masque::test::run_mutator(data, size, most, seed, __VA_ARGS__);             \
  }
