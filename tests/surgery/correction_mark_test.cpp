// The mark of a correction where the mean of the rows depends on their tokens.
#include <algorithm>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/example.hpp"
#include "surgery/vocabulary/change_vocabulary.hpp"
#include "surgery/vocabulary/vocabulary_spelling.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

VocabularyPlan order(const std::vector<std::string>& tokens) {
  return [tokens](const VocabularyState& state) { return plan_permute(state, {tokens}); };
}

bool marked_note(const VocabularyReport& report, const std::string& part) {
  return std::ranges::any_of(
      report.notes, [&](const std::string& note) { return contains(spell_fields(note), part); });
}

TEST_CASE("a mean of used rows follows them, one of counts gets a note") {
  const TempFolder folder;
  ExampleBert().write(folder);
  const VocabularyPlan turned =
      order({"[unused0]", "the", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "of", "and"});
  const auto renames = [](const std::string& old, const std::string& now) -> VocabularyPlan {
    return [=](const VocabularyState& state) { return plan_rename(state, {{old, now}}); };
  };
  write_file(folder / "counts", "the\t3\nof\t2\n");
  CorrectionRequest correction;
  CorrectionRequest inverse;
  inverse.inverse = true;
  const auto refuses = [&](const char* name) {
    inverse.mean = correction.mean;
    return contains(
        message_of([&] { correct_checkpoint(folder / name, folder / "never", inverse); }),
        "used another mean");
  };

  correction.mean = "used";
  correct_checkpoint(folder / "in", folder / "used", correction);
  const auto moved =
      change_vocabulary(folder / "used", folder / "moved", turned, VocabularyRequest());
  CHECK_FALSE(marked_note(moved, "inverse"));
  correct_checkpoint(folder / "moved", folder / "back", inverse);
  const auto expected = values_of(store::open_checkpoint(folder / "in"), kTable);
  const auto found = values_of(store::open_checkpoint(folder / "back"), kTable);
  for (std::size_t i = 0; i < 5; ++i) CHECK(found[5 + i] == doctest::Approx(expected[30 + i]));
  const auto same =
      change_vocabulary(folder / "used", folder / "same", renames("the", "a"), VocabularyRequest());
  CHECK_FALSE(marked_note(same, "inverse"));
  CHECK_FALSE(refuses("same"));
  const auto other = change_vocabulary(folder / "used", folder / "other",
                                       renames("[unused0]", "covid"), VocabularyRequest());
  CHECK(marked_note(other, "inverse will refuse it"));
  CHECK(refuses("other"));

  correction.mean = "freq:" + (folder / "counts");
  correct_checkpoint(folder / "in", folder / "freq", correction);
  CHECK(marked_note(
      change_vocabulary(folder / "freq", folder / "freq-moved", turned, VocabularyRequest()),
      "inverse will refuse it"));
  CHECK(refuses("freq-moved"));
  CHECK(marked_note(change_vocabulary(folder / "freq", folder / "freq-new", renames("the", "a"),
                                      VocabularyRequest()),
                    "needs the counts under the new names"));
}

TEST_CASE("a mean of used rows of which no token is left gets a note, too") {
  const TempFolder folder;
  ExampleBert().write(folder);
  CorrectionRequest correction;
  correction.mean = "used";
  correct_checkpoint(folder / "in", folder / "used", correction);
  std::string tokens;
  for (int i = 0; i < 11; ++i) tokens += "[unused" + std::to_string(i) + "]\n";
  write_file(folder / "used/vocab.txt", tokens);
  const VocabularyPlan turned = [](const VocabularyState& state) {
    return plan_permute(state, {{"10", "9", "8", "7", "6", "5", "4", "3", "2", "1", "0"}});
  };
  VocabularyRequest request;
  request.dry_run = true;
  CHECK(marked_note(change_vocabulary(folder / "used", "", turned, request),
                    "inverse will refuse it"));
}

}  // namespace
}  // namespace masque::surgery
