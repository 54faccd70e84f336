// PyTorch files byte by byte, with every opcode free to lie.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/make_zip.hpp"

namespace masque::test {

inline std::string pickled(std::string_view opcodes) {
  return "\x80\x02" + std::string(opcodes) + ".";
}

inline std::string pickled_text(std::string_view text) {
  return "X" + number(text.size(), 4) + std::string(text);
}

inline std::string pickled_global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

inline std::string pickled_number(std::uint64_t value) {
  return value < 256 ? "K" + number(value, 1) : "\x8A\x08" + number(value, 8);
}

inline std::string pickled_tuple(const std::vector<std::uint64_t>& values) {
  std::string out = "(";
  for (const std::uint64_t value : values) out += pickled_number(value);
  return out + "t";
}

/// A storage of this class; `rest` are further items of its name.
inline std::string pickled_storage(std::uint64_t numel, std::string_view type = "FloatStorage",
                                   std::string_view key = "0", std::string_view rest = "") {
  return "(" + pickled_text("storage") + pickled_global("torch", type) + pickled_text(key) +
         pickled_text("cpu") + pickled_number(numel) + std::string(rest) + "tQ";
}

/// A tensor of a storage.
inline std::string pickled_tensor(std::string_view storage, std::uint64_t offset,
                                  const std::vector<std::uint64_t>& sizes,
                                  const std::vector<std::uint64_t>& strides,
                                  std::string_view rest = "\x89}") {
  return pickled_global("torch._utils", "_rebuild_tensor_v2") + "(" + std::string(storage) +
         pickled_number(offset) + pickled_tuple(sizes) + pickled_tuple(strides) +
         std::string(rest) + "tR";
}

/// A dict of one value.
inline std::string pickled_dict(std::string_view key, std::string_view value) {
  return "}" + pickled_text(key) + std::string(value) + "s";
}

/// "a": 2 × 3 numbers of 4 bytes.
inline std::string pickled_state() {
  return pickled_dict("a", pickled_tensor(pickled_storage(6), 0, {2, 3}, {3, 1}));
}

/// The members of a zip file with this pickle and a storage of these bytes.
inline std::vector<ZipPart> torch_parts(const std::string& pickle,
                                        const std::string& storage = std::string(24, '\x5A')) {
  return {{.name = "a/data.pkl", .data = pickle},
          {.name = "a/byteorder", .data = "little"},
          {.name = "a/data/0", .data = storage},
          {.name = "a/version", .data = "3\n"}};
}

inline std::string torch_zip(const std::string& pickle,
                             const std::string& storage = std::string(24, '\x5A')) {
  return make_zip(torch_parts(pickle, storage)).text;
}

inline std::string legacy_system(std::string_view little = "\x88") {
  return pickled(pickled_dict("little_endian", little));
}

/// A legacy file: what stands before the state, the state, the keys, the storages.
inline std::string torch_legacy(const std::string& state, const std::string& keys,
                                const std::string& storages,
                                const std::string& system = legacy_system(),
                                const std::string& version = pickled("M\xE9\x03")) {
  return pickled("\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19") + version + system + state +
         keys + storages;
}

/// As pickled_state, with a view of the storage.
inline std::string legacy_state(std::string_view view = "N", std::uint64_t numel = 6) {
  return pickled(pickled_dict(
      "a", pickled_tensor(pickled_storage(numel, "FloatStorage", "0", view), 0, {2, 3}, {3, 1})));
}

inline std::string legacy_keys() { return pickled("]" + pickled_text("0") + "a"); }

inline std::string legacy_storage(std::uint64_t numel = 6) {
  return number(numel, 8) + std::string(24, '\x5A');
}

}  // namespace masque::test
