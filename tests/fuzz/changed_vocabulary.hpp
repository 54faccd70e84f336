// Changes of a checkpoint's vocabulary, and what must hold of every one that is made.
#pragma once

#include <filesystem>

#include "fuzz/fuzz.hpp"
#include "support/temp_folder.hpp"
#include "surgery/vocabulary/change_vocabulary.hpp"
#include "surgery/vocabulary/swap_vocabulary.hpp"
#include "surgery/vocabulary/vocabulary_spelling.hpp"

namespace masque::test {

/// One of eight changes, with a small number that says of which rows. `request` gets what the
/// change needs in addition.
class SomeChange {
 public:
  explicit SomeChange(unsigned choice) : kind_(choice % 8), number_(choice / 8) {}

  surgery::VocabularyRequest request() const {
    surgery::VocabularyRequest out;
    out.verify = true;
    out.write.threads = 1;
    out.write.existing = Existing::kReplace;
    if (kind_ == 6) out.change_files = change_case;
    if (kind_ != 7) return out;
    out.other_tokenizer = true;
    out.means = [](const surgery::RowInitContext& context) { return other().pieces(context); };
    out.change_files = [](surgery::CheckpointEdit& edit, const surgery::TokenNames& names,
                          const surgery::VocabularyChange&) { return other().write(edit, names); };
    return out;
  }

  surgery::VocabularyChange plan(const surgery::VocabularyState& state) const {
    const std::uint64_t row = state.rows == 0 ? 0 : number_ % state.rows;
    const surgery::TokenList list{{std::to_string(row)}, surgery::TokenList::As::kIds};
    switch (kind_) {
      case 0: return plan_remove(state, list);
      case 1: return plan_keep(state, list);
      case 2: return plan_permute(state, rotated(state.rows, row));
      case 3: return plan_add(state, {"new", "[E1]", "##x", "a b"}, number_ % 2 == 1, 1 + number_);
      case 4: return plan_resize(state, state.rows + number_, 1);
      case 5: return plan_rename(state, {{state.names.token(row), "called otherwise"}});
      case 6: return plan_case(state, {.upper = number_ % 2 == 1});
      default: return other().plan(state, 1 + number_);
    }
  }

 private:
  static surgery::TokenList rotated(std::uint64_t rows, std::uint64_t by) {
    surgery::TokenList list{{}, surgery::TokenList::As::kIds};
    for (std::uint64_t i = 0; i < rows; ++i)
      list.entries.push_back(std::to_string((i + by) % rows));
    return list;
  }
  static std::vector<std::string> change_case(surgery::CheckpointEdit& edit,
                                              const surgery::TokenNames& names,
                                              const surgery::VocabularyChange& change) {
    surgery::keep_case(edit);
    return change_vocabulary_files(edit, names, change);
  }
  static const surgery::NewTokenizer& other() {
    static const TempFolder folder = TempFolder::in_memory();
    static const surgery::NewTokenizer tokenizer = [] {
      write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nthe\n##the\n");
      return surgery::NewTokenizer(folder / "vocab.txt");
    }();
    return tokenizer;
  }

  unsigned kind_, number_;
};

/// Makes the change that `choice` stands for, and reads it back: each row has the token that the
/// plan gave it, and no other has one. `tensor`: the table, where no family has one.
inline void change_and_read_back(const std::string& in, const std::string& out, unsigned choice,
                                 std::optional<std::string> tensor) {
  const SomeChange change(choice);
  surgery::VocabularyRequest request = change.request();
  request.tensor = std::move(tensor);
  surgery::VocabularyChange wanted;
  const auto report = surgery::change_vocabulary(
      in, out, [&](const auto& state) { return wanted = change.plan(state); }, request);
  require(report.verified.has_value(), "not compared");
  for (const std::string& note : report.notes)
    require(wrong_message(note).empty(), "a note that is not safe to print: " + escape(note));
  const auto names = surgery::TokenNames::of(store::open_checkpoint(out));
  for (std::uint64_t id = 0; id < std::max<std::uint64_t>(names.size(), wanted.tokens.size());
       ++id) {
    const std::string expected = id < wanted.tokens.size() ? wanted.tokens[id] : std::string();
    // In a GGUF file every row has a text.
    const bool unused = expected.empty() && names.token(id) == "[PAD" + std::to_string(id) + "]";
    require(unused || names.token(id) == expected, "row " + std::to_string(id) + " has '" +
                                                       escape(names.token(id)) + "', expected '" +
                                                       escape(expected) + "'");
  }
}

}  // namespace masque::test
