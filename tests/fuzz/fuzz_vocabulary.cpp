// The files of vocabularies: vocab.txt (first byte t), vocab.json (j), merges.txt (m), one token a
// line (c: characters, w: words): tokens and ids are those of the file.
#include <algorithm>
#include <array>

#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/memory_file.hpp"
#include "text/model/vocabulary_file.hpp"
#include "text/tokenizer.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void vocab_txt(std::string_view text) {
  const text::VocabLines lines = text::read_vocab_txt(text, "fuzz");
  std::string joined;
  for (const std::string& token : lines.tokens) joined += token + "\n";
  std::string plain(text);
  if (!plain.empty() && !plain.ends_with('\n')) plain += '\n';
  for (std::size_t at = 0; (at = plain.find("\r\n", at)) != std::string::npos;) plain.erase(at, 1);
  test::require(joined.size() <= plain.size(), "more than the file");
  for (const std::size_t line : lines.empty)
    test::require(lines.tokens.at(line).empty(), "an empty line that is none");
}

void vocab_json(std::string_view text) {
  auto entries = text::read_vocab_json(text, "fuzz");
  std::ranges::sort(entries, {}, &text::VocabEntry::second);
  const auto twice = std::ranges::adjacent_find(entries, {}, &text::VocabEntry::second);
  test::require(twice == entries.end(), "an id twice");
  test::require(entries.empty() || entries.front().second >= 0, "an id below 0");
}

void merges_txt(std::string_view text) {
  for (const auto& [left, right] : text::read_merges_txt(text, "fuzz"))
    test::require(!left.empty() && !right.empty(), "a merge of nothing");
}

void lines(std::string_view text, const char* kind) {
  const test::MemoryFile file(text);
  const text::Tokenizer tokenizer = text::Tokenizer::open(kind + file.path());
  std::string some;
  append_replacing_invalid(text.substr(0, 100), some);
  const auto ids = tokenizer.encode(some, {}).ids;
  for (const TokenId id : ids)
    test::require(id >= 0 && static_cast<std::size_t>(id) < tokenizer.size(), "an id beyond");
  tokenizer.decode(ids, false);
}

constexpr std::array<test::Kind, 5> kKinds = {
    {{'t', vocab_txt},
     {'j', vocab_json},
     {'m', merges_txt},
     {'c', [](std::string_view text) { lines(text, "chars:"); }},
     {'w', [](std::string_view text) { lines(text, "whitespace:"); }}}};

void check(std::string_view input) { test::use_by_kind(input, kKinds); }

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_json_or_lines>)
