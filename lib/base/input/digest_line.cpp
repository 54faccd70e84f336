#include "base/input/digest_line.hpp"

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"

namespace masque {

namespace {

constexpr std::string_view kDigestBegins = "# xxh3 ";
constexpr std::string_view kMemberBegins = ",\n  \"xxh3\": \"";
constexpr std::string_view kObjectEnds = "\n}\n";

/// The last line of a text of whole lines, without its end; empty for another text.
std::string_view last_line(std::string_view text) {
  if (!text.ends_with('\n')) return {};
  text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);  // all if there is one line
}

[[noreturn]] void refuse_change(const std::string& path) {
  throw InputError(path,
                   "was changed since it was written: its text does not have the digest xxh3");
}

}  // namespace

std::string with_digest_line(std::string_view text) {
  return fmt::format("{}{}{}\n", text, kDigestBegins, xxh3_of(as_bytes(text)));
}

std::string_view without_digest_line(std::string_view text, const std::string& path) {
  const std::string_view last = last_line(text);
  if (!last.starts_with(kDigestBegins)) return text;
  const std::string_view content = text.substr(0, text.size() - last.size() - 1);
  if (last.substr(kDigestBegins.size()) == xxh3_of(as_bytes(content))) return content;
  refuse_change(path);
}

void need_digest_line(std::string_view text, const std::string& path) {
  if (last_line(text).starts_with(kDigestBegins)) return;
  throw InputError(path, "its end is missing: the last line is not the digest xxh3 of the others");
}

std::string with_digest_member(std::string_view json) {
  MASQUE_CHECK(json.ends_with(kObjectEnds));
  return fmt::format("{}{}{}\"{}", json.substr(0, json.size() - kObjectEnds.size()), kMemberBegins,
                     xxh3_of(as_bytes(json)), kObjectEnds);
}

void check_digest_member(std::string_view json, const std::string& path) {
  const std::size_t begin = json.rfind(kMemberBegins);
  if (begin == std::string_view::npos) return;
  const std::string content = fmt::format("{}{}", json.substr(0, begin), kObjectEnds);
  if (with_digest_member(content) != json) refuse_change(path);
}

}  // namespace masque
