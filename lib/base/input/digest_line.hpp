// Text files of ours that are read again end with a digest of themselves.
#pragma once

#include <string>
#include <string_view>

namespace masque {

/// Returns `text`, which consists of whole lines, and one more: "# xxh3 " and the digest of `text`
/// by xxh3_of().
std::string with_digest_line(std::string_view text);

/// Returns `text`, the content of the file `path`, without the line of with_digest_line(). A text
/// without such a line is returned as it is: earlier versions wrote none. Throws InputError if the
/// digest is that of another text.
std::string_view without_digest_line(std::string_view text, const std::string& path);

/// Throws InputError if `text`, the content of the file `path`, does not end with a line of
/// with_digest_line(): its end is missing. Compares no digest.
void need_digest_line(std::string_view text, const std::string& path);

/// Returns `json`, an object in JsonLayout::kLines and the end of its line, with a last member
/// "xxh3": the digest of `json`.
std::string with_digest_member(std::string_view json);

/// Throws InputError if `json`, the content of the file `path`, has the member of
/// with_digest_member() and is another text than the one with this digest.
void check_digest_member(std::string_view json, const std::string& path);

}  // namespace masque
