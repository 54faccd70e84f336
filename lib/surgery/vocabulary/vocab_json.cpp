// vocab.json and merges.txt.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/split.hpp"
#include "surgery/vocabulary/trim_rules.hpp"
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

bool keeps_merge(const VocabularyJob& job, const std::string& path, std::string_view left,
                 std::string_view right, std::string_view continuing) {
  const std::string made = merged(left, right, continuing);
  bool keeps = true;
  for (const std::string_view token : {left, right, std::string_view(made)}) {
    if (!job.moves.leaves(token)) continue;
    keeps = false;
    if (job.moves.text_after(token).empty()) continue;
    throw InputError(
        path, fmt::format("the merge '{} {}' {} token '{}', which therefore cannot be renamed",
                          escape(left), escape(right), token == made ? "produces" : "uses",
                          escape(token)));
  }
  return keeps;
}

void note_merges(VocabularyJob& job, const std::string& file, std::size_t left,
                 std::size_t before) {
  if (left == before) return;
  job.notes.push_back(fmt::format("{}: {} of {} merges are left, those without removed tokens",
                                  file, left, before));
}

void change_merges_txt(VocabularyJob& job) {
  constexpr const char* kName = "merges.txt";
  const auto text = job.edit.file_text(kName);
  if (!text) return;
  const std::string path = job.path(kName);
  std::string now;
  std::size_t before = 0;
  std::size_t left = 0;
  for_each_line(*text, [&](std::string_view line) {
    const auto parts = merge_parts(without_return(line));
    const bool keeps = !parts || keeps_merge(job, path, parts->first, parts->second, "");
    if (parts) {
      ++before;
      left += keeps ? 1 : 0;
    }
    if (keeps) now.append(line).append("\n");
  });
  if (left == before) return;
  note_merges(job, kName, left, before);
  job.edit.set_file(kName, std::move(now));
}

}  // namespace masque::surgery
