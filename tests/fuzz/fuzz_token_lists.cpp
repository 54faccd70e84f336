// Lists that name tokens and tensors: similar tokens (first byte s), weights (w), OLD<TAB>NEW of
// tensors (n), files of names (f: vocab.txt, j: vocab.json, t: tokenizer.json), arithmetic on rows
// (r), how often tokens occur (c), the mark of a correction (m), confusion sets (o).
#include <algorithm>
#include <array>
#include <cmath>

#include "commands/similar_tokens.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "records/confusion_sets.hpp"
#include "support/make_safetensors.hpp"
#include "support/memory_file.hpp"
#include "support/temp_folder.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/names/rename_tensors.hpp"
#include "surgery/rows/row_expression.hpp"
#include "text/tokenizer.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void similar(std::string_view text) {
  const test::MemoryFile file(text);
  const records::TokenTable table{};
  cli::Session session("fuzz", false);
  commands::read_similar(file.path(), {nullptr, table}, 1, session);
}

void weights(std::string_view text) {
  const test::MemoryFile file(text);
  const records::TokenTable table{};
  commands::read_weights(file.path(), {nullptr, table});
}

/// The names of the tokens in a file, which is recognised by its name.
surgery::TokenNames read_names(const char* name, std::string_view text) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  test::write_file(folder / name, text);
  return surgery::TokenNames::read(folder / name);
}

template <const char* kName>
void names(std::string_view text) {
  const surgery::TokenNames names = read_names(kName, text);
  for (std::uint64_t id = 0; id < names.size(); ++id) {
    if (names.assigned(id) && !names.token(id).empty())
      test::require(names.id(names.token(id)).has_value(), "a token without id");
  }
}

const surgery::TokenNames& three_names() {
  static const surgery::TokenNames names = read_names("three.txt", "a\n[b]\nc\n");
  return names;
}

void expressions(std::string_view text) {
  static const test::MemoryFile file(
      test::make_safetensors({{"word", "F32", {3, 2}, std::string(24, '\x3e')}}));
  static const store::Checkpoint checkpoint = store::open_checkpoint(file.path());
  surgery::RowExpressions rows(checkpoint, checkpoint.tensors().front(), three_names());
  rows.run(text);
  for (const auto& [row, values] : rows.rows())
    test::require(row < 3 && values.size() == 2, "a row that is not there");
}

void counts(std::string_view text) {
  double sum = 0;
  for (const double weight : surgery::frequency_weights(text, "fuzz", 3, three_names())) {
    test::require(weight >= 0, "a weight below 0");
    sum += weight;
  }
  test::require(std::abs(sum - 1) < 1e-9, "weights that are no distribution");
}

void correction(std::string_view text) {
  const auto found = surgery::MlmCorrection::parse(text);
  if (!found) return;
  test::require(std::ranges::is_sorted(found->kept_rows), "rows in another order");
  const auto again = surgery::MlmCorrection::parse(found->marker());
  test::require(again && again->marker() == found->marker() && again->rates == found->rates,
                "a mark that does not read back");
}

void confusion(std::string_view text) {
  const auto sets = records::ConfusionSets::parse(text, "fuzz");
  for (const auto& [word, numbers] : sets.words()) {
    const std::vector<std::string_view> others = sets.others(word);
    test::require(!others.empty(), "a word alone in its sets");
    for (const std::string_view other : others) {
      test::require(other != word, "a word taken for itself");
      const auto back = sets.others(other);
      test::require(std::ranges::find(back, word) != back.end(), "a confusion that is not mutual");
    }
  }
}

constexpr char kVocabTxt[] = "vocab.txt";
constexpr char kVocabJson[] = "vocab.json";
constexpr char kTokenizerJson[] = "tokenizer.json";
constexpr std::array<test::Kind, 10> kKinds = {
    {{'s', similar},
     {'w', weights},
     {'n', [](std::string_view text) { surgery::parse_name_map(text, "fuzz"); }},
     {'f', names<kVocabTxt>},
     {'j', names<kVocabJson>},
     {'t', names<kTokenizerJson>},
     {'r', expressions},
     {'c', counts},
     {'m', correction},
     {'o', confusion}}};

void check(std::string_view input) { test::use_by_kind(input, kKinds); }

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_json_or_lines>)
