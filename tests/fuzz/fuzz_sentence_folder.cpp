// modules.json, a pooling's config.json and sentence_bert_config.json of a sentence-transformers
// folder, with NULs between.
#include "evaluate/states/sentence_vectors.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  test::InputParts parts(input);
  test::write_file(folder / "modules.json", parts.next());
  const std::string_view pooling = parts.next();
  test::write_file(folder / "config.json", pooling);
  test::write_file(folder / "1_Pooling/config.json", pooling);
  test::write_file(folder / "sentence_bert_config.json", parts.rest());
  test::accepts([&] {
    const evaluate::SentenceFolder found = evaluate::read_sentence_folder(folder.path());
    test::require(found.max_length >= 0, "a length below 0");
    for (const std::string& note : found.notes)
      test::require(test::wrong_message(note).empty(), "a note that is not safe to print");
  });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_parts)
