#include "text/model/vocabulary_file.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file_kind.hpp"
#include "base/string/split.hpp"
#include "base/string/text_encoding.hpp"
#include "base/string/utf8.hpp"
#include "text/model/vocabulary.hpp"

namespace masque::text {

namespace {

/// Calls visit(line, number) for each line, number from 0. Throws InputError if one is not UTF-8,
/// or the text is in another encoding or of another kind, as what gzip packed.
template <typename F>
void each_line(std::string_view text, const std::string& path, F visit) {
  refuse_other_kind(text, path);
  refuse_other_encoding(text, path);
  std::size_t number = 0;
  for_each_line(text, [&](std::string_view line) {
    line = without_return(line);
    if (!valid_utf8(line)) throw InputError(path, fmt::format("line {}: not UTF-8", number + 1));
    visit(line, number++);
  });
}

}  // namespace

VocabLines read_vocab_txt(std::string_view text, const std::string& path) {
  VocabLines out;
  out.tokens.reserve(text.size() / 7);
  each_line(text, path, [&](std::string_view line, std::size_t number) {
    if (line.empty()) out.empty.push_back(number);
    out.tokens.emplace_back(line);
  });
  const std::vector<bool> last = last_of_kind(out.tokens);
  for (std::size_t i = 0; i < last.size(); ++i) {
    if (!last[i]) out.duplicates.push_back(i);
  }
  return out;
}

std::vector<VocabEntry> vocab_of(const JsonValue& json, const std::string& path) {
  if (!json.is(JsonKind::kObject)) {
    throw InputError(path, "the vocabulary is not an object of tokens and ids");
  }
  std::vector<VocabEntry> out;
  out.reserve(json.members.size());
  for (const JsonMember& member : json.members) {
    const auto id = member.value.integer();
    if (!id || *id >= kMostTokenIds) {
      throw InputError(path, fmt::format("byte {}: the token {} has no id below {}",
                                         member.value.begin, escape(member.name), kMostTokenIds));
    }
    out.emplace_back(member.name, static_cast<TokenId>(*id));
  }
  const auto by_id = [](const VocabEntry& a, const VocabEntry& b) { return a.second < b.second; };
  if (!std::is_sorted(out.begin(), out.end(), by_id)) std::sort(out.begin(), out.end(), by_id);
  const auto same = std::adjacent_find(
      out.begin(), out.end(),
      [](const VocabEntry& a, const VocabEntry& b) { return a.second == b.second; });
  if (same != out.end()) {
    throw InputError(path,
                     fmt::format("the tokens {} and {} have the same id {}", escape(same->first),
                                 escape((same + 1)->first), same->second));
  }
  return out;
}

std::vector<VocabEntry> read_vocab_json(std::string_view text, const std::string& path) {
  return vocab_of(parse_json_file(text, path), path);
}

std::vector<std::pair<std::string, std::string>> read_merges_txt(std::string_view text,
                                                                 const std::string& path) {
  std::vector<std::pair<std::string, std::string>> out;
  if (text.starts_with(kUtf8Mark))
    throw InputError(path, "begins with a byte-order mark, expected the first merge: remove it");
  each_line(text, path, [&](std::string_view line, std::size_t number) {
    if (line.starts_with("#version")) return;
    const auto tokens = split_in_two(line, ' ');
    if (!tokens || tokens->first.empty() || tokens->second.empty()) {
      throw InputError(path, fmt::format("line {}: {}, expected two tokens and one space between",
                                         number + 1, line.empty() ? "empty" : escape(line)));
    }
    out.emplace_back(*tokens);
  });
  return out;
}

}  // namespace masque::text
