// vocab.txt: a line is a token, its number the id.
#include <algorithm>

#include "surgery/vocabulary/vocabulary_job.hpp"

namespace masque::surgery {

namespace {

struct Line {
  std::size_t begin = 0;
  std::size_t end = 0;  // without "\n" and the "\r" before it
};

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back({at, end > at && text[end - 1] == '\r' ? end - 1 : end});
    at = end + 1;
  }
  return lines;
}

/// The lines after: ids without a token between others are empty lines.
std::vector<std::string_view> wanted_lines(VocabularyJob& job, const std::string& text,
                                           const std::vector<Line>& lines) {
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
    const std::string_view line(text.data() + lines[i].begin, lines[i].end - lines[i].begin);
    if (const auto now = job.moves.follow(i, line, path)) set(*now);
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
  const std::vector<Line> lines = lines_of(*text);
  const std::vector<std::string_view> wanted = wanted_lines(job, *text, lines);
  TextSplice splice;
  const std::size_t shared = std::min(lines.size(), wanted.size());
  for (std::size_t i = 0; i < shared; ++i) {
    const std::string_view line(text->data() + lines[i].begin, lines[i].end - lines[i].begin);
    if (line != wanted[i]) splice.replace(lines[i].begin, lines[i].end, std::string(wanted[i]));
  }
  if (shared < lines.size()) splice.replace(lines[shared].begin, text->size(), "");
  if (shared < wanted.size()) {
    const bool carriage =
        !lines.empty() && lines[0].end < text->size() && (*text)[lines[0].end] == '\r';
    const std::string_view end = carriage ? "\r\n" : "\n";
    std::string more(!text->empty() && text->back() != '\n' ? end : "");
    for (std::size_t i = shared; i < wanted.size(); ++i) more.append(wanted[i]).append(end);
    splice.replace(text->size(), text->size(), std::move(more));
  }
  if (!splice.empty()) job.edit.set_file("vocab.txt", splice.apply(*text));
}

}  // namespace masque::surgery
