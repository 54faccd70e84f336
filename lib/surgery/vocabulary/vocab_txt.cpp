// vocab.txt: a line is a token, its number the id.
#include <algorithm>

#include "base/string/split.hpp"
#include "surgery/vocabulary/vocabulary_job.hpp"

namespace masque::surgery {

namespace {

/// Without their ends.
std::vector<std::string_view> lines_of(const std::string& text) {
  std::vector<std::string_view> lines;
  for_each_line(text, [&](std::string_view line) { lines.push_back(without_return(line)); });
  return lines;
}

/// The lines after: ids without a token between others are empty lines.
std::vector<std::string_view> wanted_lines(VocabularyJob& job,
                                           const std::vector<std::string_view>& lines) {
  std::vector<std::string_view> wanted;
  ModelIds ids(job.moves);
  const auto set = [&](const TokenMoves::Token& token) {
    if (token.id >= wanted.size()) wanted.resize(token.id + 1);
    wanted[token.id] = token.text;
    ids.add(token.id);
  };
  const std::string path = job.path("vocab.txt");
  wanted.reserve(lines.size());
  for (std::uint64_t i = 0; i < lines.size(); ++i) {
    if (const auto now = job.moves.follow(i, lines[i], path)) set(*now);
  }
  if (job.new_in_model()) {
    for (const TokenMoves::Token& token : job.moves.added()) set(token);
  }
  for (const TokenMoves::Token& token : ids.missing(job.moves)) set(token);
  job.beyond = ids.others(job.moves);
  return wanted;
}

}  // namespace

void change_vocab_txt(VocabularyJob& job) {
  const auto text = job.edit.file_text("vocab.txt");
  if (!text) return;
  const std::vector<std::string_view> lines = lines_of(*text);
  const std::vector<std::string_view> wanted = wanted_lines(job, lines);
  const auto begin_of = [&](std::size_t i) {
    return static_cast<std::size_t>(lines[i].data() - text->data());
  };
  const auto end_of = [&](std::size_t i) { return begin_of(i) + lines[i].size(); };
  TextSplice splice;
  const std::size_t shared = std::min(lines.size(), wanted.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if (lines[i] != wanted[i]) splice.replace(begin_of(i), end_of(i), std::string(wanted[i]));
  }
  if (shared < lines.size()) splice.replace(begin_of(shared), text->size(), "");
  if (shared < wanted.size()) {
    const bool carriage = !lines.empty() && end_of(0) < text->size() && (*text)[end_of(0)] == '\r';
    const std::string_view end = carriage ? "\r\n" : "\n";
    std::string more(!text->empty() && text->back() != '\n' ? end : "");
    for (std::size_t i = shared; i < wanted.size(); ++i) more.append(wanted[i]).append(end);
    splice.replace(text->size(), text->size(), std::move(more));
  }
  if (!splice.empty()) job.edit.set_file("vocab.txt", splice.apply(*text));
}

}  // namespace masque::surgery
