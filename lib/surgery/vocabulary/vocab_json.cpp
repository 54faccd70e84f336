// vocab.json and merges.txt.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/split.hpp"
#include "surgery/vocabulary/vocabulary_job.hpp"

namespace masque::surgery {

void change_vocab_json(VocabularyJob& job) {
  const auto file = read_json_text(job, "vocab.json");
  if (!file) return;
  TextSplice splice;
  const ModelIds ids = change_vocabulary_object(job, file->path, file->text, file->root, splice);
  job.beyond = ids.others(job.moves);
  write_splice(job, *file, splice);
}

void check_merge(const VocabularyJob& job, const std::string& path, std::string_view left,
                 std::string_view right, std::string_view continuing) {
  std::string made(left);
  made += right.starts_with(continuing) ? right.substr(continuing.size()) : right;
  for (const std::string_view token : {left, right, std::string_view(made)}) {
    if (!job.moves.leaves(token)) continue;
    const std::string_view now = job.moves.text_after(token);
    throw InputError(path,
                     fmt::format("the merge '{} {}' {} token '{}', which therefore cannot be {}",
                                 escape(left), escape(right), token == made ? "produces" : "uses",
                                 escape(token), now.empty() ? "removed" : "renamed"));
  }
}

void check_merges_txt(const VocabularyJob& job) {
  const auto text = job.edit.file_text("merges.txt");
  if (!text) return;
  const std::string path = job.path("merges.txt");
  for_each_line(*text, [&](std::string_view line) {
    line = without_return(line);
    const std::size_t space = line.find(' ');
    if (line.starts_with("#version") || space == std::string_view::npos) return;
    check_merge(job, path, line.substr(0, space), line.substr(space + 1), "");
  });
}

}  // namespace masque::surgery
