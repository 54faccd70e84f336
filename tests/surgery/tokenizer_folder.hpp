// A folder with a small model and tokenizer files, and changes of its vocabulary.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "support/message.hpp"
#include "surgery/example.hpp"
#include "surgery/vocabulary/vocabulary_files.hpp"

namespace masque::surgery {

inline constexpr std::uint64_t kNew = VocabularyChange::kNew;

/// What became of the files.
struct ChangedFiles {
  std::map<std::string, std::string> texts;  ///< those that differ
  std::vector<std::string> notes;

  std::string operator[](const std::string& name) const {
    const auto found = texts.find(name);
    return found == texts.end() ? "(as it was)" : found->second;
  }
};

/// The files of a tokenizer.
class TokenizerFolder {
 public:
  struct File {
    std::string name;
    std::string text;
  };
  explicit TokenizerFolder(std::initializer_list<File> files) {
    test::write_file(folder_ / "model.safetensors",
                     example_file({{kTable, DType::kF32, {2, 2}, numbers(1, 4)}}));
    for (const File& file : files) test::write_file(folder_ / file.name, file.text);
  }

  ChangedFiles change(std::vector<std::uint64_t> from, std::vector<std::string> tokens) const {
    const store::Checkpoint checkpoint = store::open_checkpoint(folder_.path());
    CheckpointEdit edit(checkpoint);
    const TokenNames before = TokenNames::load(folder_.path());
    ChangedFiles out;
    out.notes = change_vocabulary_files(edit, before, {std::move(from), std::move(tokens)});
    for (const std::string& name : edit.edited_files()) out.texts[name] = *edit.file_text(name);
    if (edit.drops("added_tokens.json")) out.texts["added_tokens.json"] = "(gone)";
    return out;
  }
  std::string error(std::vector<std::uint64_t> from, std::vector<std::string> tokens) const {
    return test::message_of([&] { change(std::move(from), std::move(tokens)); });
  }
  std::string path() const { return folder_.path(); }

 private:
  test::TempFolder folder_;
};

}  // namespace masque::surgery
