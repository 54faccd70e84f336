// Lists that name tokens and tensors: similar tokens (first byte s), weights (w), OLD<TAB>NEW of
// tensors (n), a file of names (f), arithmetic on rows (r).
#include "commands/similar_tokens.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "store/names/rename_tensors.hpp"
#include "support/make_safetensors.hpp"
#include "support/memory_file.hpp"
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

void names(std::string_view text) {
  const test::MemoryFile file(text);
  const surgery::TokenNames names = surgery::TokenNames::read(file.path());
  for (std::uint64_t id = 0; id < names.size(); ++id) {
    if (names.assigned(id) && !names.token(id).empty())
      test::require(names.id(names.token(id)).has_value(), "a token without id");
  }
}

void expressions(std::string_view text) {
  static const test::MemoryFile file(
      test::make_safetensors({{"word", "F32", {3, 2}, std::string(24, '\x3e')}}));
  static const store::Checkpoint checkpoint = store::open_checkpoint(file.path());
  static const test::MemoryFile vocabulary("a\n[b]\nc\n");
  static const surgery::TokenNames names = surgery::TokenNames::read(vocabulary.path());
  surgery::RowExpressions rows(checkpoint, checkpoint.tensors().front(), names);
  rows.run(text);
  for (const auto& [row, values] : rows.rows())
    test::require(row < 3 && values.size() == 2, "a row that is not there");
}

void check(std::string_view input) {
  const std::string_view text = input.substr(std::min<std::size_t>(1, input.size()));
  test::accepts([&] {
    if (input.starts_with('s')) similar(text);
    if (input.starts_with('w')) weights(text);
    if (input.starts_with('n')) store::parse_name_map(text, "fuzz");
    if (input.starts_with('f')) names(text);
    if (input.starts_with('r')) expressions(text);
  });
}

std::string mutate(std::string_view input, test::Choices& choices) {
  if (input.empty()) return {};
  return input[0] + test::mutate_lines(input.substr(1), choices);
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(mutate)
