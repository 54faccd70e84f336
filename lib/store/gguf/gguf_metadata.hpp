// Metadata of GGUF files: values of 13 types, read strictly, and new ones.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/little_endian.hpp"
#include "store/gguf/gguf_cursor.hpp"
#include "store/gguf/gguf_types.hpp"
#include "store/tensor_info.hpp"

namespace masque::store {

/// The next value of a header, of which its key is read already: at most `most` bytes. False: a
/// broken rule (gguf-value-type, gguf-array, gguf-bool, gguf-string, not-utf8, limit-metadata).
bool read_gguf_value(GgufCursor& cursor, std::uint64_t most, TypedValue& value);

/// A whole number of any type; nothing for other values and negative ones.
std::optional<std::uint64_t> gguf_integer(const TypedValue& value);

/// The texts of a STRING[]; nothing for other values.
std::optional<std::vector<std::string>> gguf_texts(const TypedValue& value);

/// The bytes of the elements of an array of numbers; nothing if it is not of this type.
std::optional<std::string_view> gguf_elements(const TypedValue& value, GgufType type);

/// How many elements an array has; nothing for other values.
std::optional<std::uint64_t> gguf_array_count(const TypedValue& value);

/// New values. `elements` are the bytes of numbers of a type with a fixed size.
TypedValue make_gguf_text(std::string key, std::string text);
TypedValue make_gguf_texts(std::string key, std::span<const std::string> texts);
TypedValue make_gguf_array(std::string key, GgufType type, std::string_view elements);
/// A whole number in the type that `like` has, which is one of whole numbers. Throws InputError,
/// with `path`, if it does not fit.
TypedValue make_gguf_integer(const TypedValue& like, std::uint64_t number, const std::string& path);

/// The first value of a key; nullptr if there is none.
const TypedValue* find_typed(std::span<const TypedValue> values, std::string_view key);

/// Which part of a split model a file is, counted from 0, and of how many; nothing for a whole one.
struct GgufPart {
  std::uint64_t number = 0;
  std::uint64_t count = 1;
};
std::optional<GgufPart> gguf_part(std::span<const TypedValue> metadata);

/// Adds a text: its length in 64 bits, and its bytes.
void append_text(std::string& out, std::string_view text);

}  // namespace masque::store
