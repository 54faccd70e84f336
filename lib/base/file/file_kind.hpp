// Files of other kinds, recognised by their first bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace masque {

/// Bytes that known_kind() needs of a file, if it has as many.
inline constexpr std::size_t kKindBytes = 64;

/// Returns what a file that begins with the bytes `first` is, if it is of a kind that people pass
/// by mistake: "a PNG picture", "compressed by gzip: unpack it first"; else an empty text.
std::string_view known_kind(std::string_view first);

/// Whether a file that begins with the bytes `first` may be a text: UTF-8 without control
/// characters but white space. The last character may be cut off.
bool may_be_text(std::string_view first);

/// Throws InputError "`name`: a PNG picture, expected a text" if `first`, the first bytes of an
/// input, are of a known kind. Kinds that are text themselves (a web page) and text that happens to
/// begin as another kind does are no error.
void refuse_other_kind(std::string_view first, const std::string& name);

}  // namespace masque
