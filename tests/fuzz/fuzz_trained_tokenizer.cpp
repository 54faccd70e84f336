// A byte of options, then lines of any text, of which a tokenizer is made: it opens, and encodes
// the lines; one of bytes gives them back.
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/temp_folder.hpp"
#include "text/tokenizer.hpp"
#include "text/train/trained_tokenizer.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

text::TrainOptions train_options(unsigned choice) {
  text::TrainOptions options;
  const bool bytes = (choice & 1U) != 0;
  options.kind = bytes ? text::TrainedKind::kByteLevelBpe : text::TrainedKind::kWordPiece;
  options.lowercase = (choice & 2U) != 0;
  options.size = (bytes ? 257 : 5) + choice / 4 % 16;
  options.min_count = 1 + choice / 64;
  options.max_alphabet = 20;
  return options;
}

void train(std::string_view text, const text::TrainOptions& options) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  const text::WordCutter cutter(options);
  text::WordCounts counts(options.max_words);
  for_each_line(text, [&](std::string_view line) {
    cutter.cut(line, [&](std::string_view word) { counts.add(word); });
  });
  if (counts.size() == 0) return;
  const auto files = text::train_tokenizer(counts.sorted(), options);
  for (const auto& [name, content] : files) test::write_file(folder / name, content);
  const text::Tokenizer tokenizer = text::Tokenizer::open(folder / files.front().first);
  for_each_line(text, [&](std::string_view line) {
    const auto ids = tokenizer.encode(line, {.special_in_text = false}).ids;
    for (const TokenId id : ids)
      test::require(id >= 0 && static_cast<std::size_t>(id) < tokenizer.size(), "an id beyond");
    if (options.kind == text::TrainedKind::kByteLevelBpe)
      test::require(tokenizer.decode(ids, false) == line, "another line");
  });
}

void check(std::string_view input) {
  if (input.empty()) return;
  std::string text;
  append_replacing_invalid(input.substr(1), text);
  test::accepts([&] { train(text, train_options(static_cast<unsigned char>(input[0]))); });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_lines>)
