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

/// Reads the next value of a header at `cursor` into `value`, which has its key and nothing else:
/// at most `most` bytes. False: a broken rule (gguf-value-type, gguf-array, gguf-bool, gguf-string,
/// not-utf8, limit-metadata, too-short).
bool read_gguf_value(GgufCursor& cursor, std::uint64_t most, TypedValue& value);

/// The whole number that `value` is, in whatever type; nothing for other values and negative ones.
std::optional<std::uint64_t> gguf_integer(const TypedValue& value);

/// The texts of `value`, a STRING[]; nothing for other values.
std::optional<std::vector<std::string>> gguf_texts(const TypedValue& value);

/// The bytes of the elements of `value`, an array of numbers of this `type`, little-endian: a view
/// of it; nothing for other values.
std::optional<std::string_view> gguf_elements(const TypedValue& value, GgufType type);

/// How many elements the array `value` has; nothing for other values.
std::optional<std::uint64_t> gguf_array_count(const TypedValue& value);

/// Makes the STRING `text` under `key`.
TypedValue make_gguf_text(std::string key, std::string text);
/// Makes the STRING[] of `texts` under `key`.
TypedValue make_gguf_texts(std::string key, std::span<const std::string> texts);
/// Makes an array under `key` of numbers of `type`, one with a fixed size: `elements` are their
/// bytes, little-endian, a whole number of them (a MASQUE_CHECK).
TypedValue make_gguf_array(std::string key, GgufType type, std::string_view elements);
/// Makes the whole `number` under the key and in the type that `like` has, which is one of whole
/// numbers. Throws InputError, with `path`, if it does not fit.
TypedValue make_gguf_integer(const TypedValue& like, std::uint64_t number, const std::string& path);

/// The first one of `values` under `key`; nullptr if there is none. Cost O(values).
const TypedValue* find_typed(std::span<const TypedValue> values, std::string_view key);

/// Which part of a split model a file is.
struct GgufPart {
  std::uint64_t number = 0;  ///< from 0
  std::uint64_t count = 1;   ///< how many parts there are
};
/// Which part of a split model the file with this `metadata` is, by split.no and split.count;
/// nothing for a whole one.
std::optional<GgufPart> gguf_part(std::span<const TypedValue> metadata);

/// Appends `text` to `out`: its length in 64 bits, and its bytes.
void append_text(std::string& out, std::string_view text);

}  // namespace masque::store
