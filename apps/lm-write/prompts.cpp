#include "prompts.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/split.hpp"
#include "base/utf8.hpp"
#include "commands/files.hpp"
#include "probe/score/sentence.hpp"

namespace masque::lm_write {

Sources::Sources(const std::string& path) : path_(path), text_(commands::read_file(path)) {
  refuse_json(text_, input_name(path_));
  lines_ = split_terminated(text_, '\n');
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    lines_[i] = without_return(lines_[i]);
    if (!valid_utf8(lines_[i])) {
      throw InputError(input_name(path_), fmt::format("line {}: not UTF-8", i + 1));
    }
  }
}

void Sources::refuse() const {
  throw InputError(input_name(path_),
                   fmt::format("{} lines, expected as many as on standard input", lines_.size()));
}

std::string_view Sources::line(std::uint64_t id) const {
  if (id >= lines_.size()) refuse();
  return lines_[id];
}

void Sources::check_count(std::uint64_t lines) const {
  if (lines != lines_.size()) refuse();
}

Prompts::Prompts(const commands::OpenedModel& opened, Continuation kind, const Sources* sources,
                 bool bos)
    : opened_(opened), kind_(kind), sources_(sources), encoder_(opened.tokenizer->id_encoder({})) {
  const text::Tokenizer& tokenizer = *opened.tokenizer;
  const bool pairs = kind == Continuation::kUnilm || sources != nullptr;
  around_ = pairs ? text::pair_tokens(tokenizer) : text::template_tokens(tokenizer, 1);
  if (around_.before.empty()) begin_ = probe::begin_token(tokenizer);
  if (bos && begin_) around_.before.push_back(*begin_);
}

probe::Prompt Prompts::prompt(std::uint64_t id, std::string_view line) {
  probe::Prompt out{.id = id, .ids = around_.before};
  const bool pairs = kind_ == Continuation::kUnilm || sources_ != nullptr;
  encoder_.encode(sources_ != nullptr ? sources_->line(id) : line, out.ids);
  if (out.ids.empty() && begin_ && kind_ != Continuation::kMasked) out.ids.push_back(*begin_);
  if (pairs) {
    out.ids.insert(out.ids.end(), around_.between.begin(), around_.between.end());
    out.source = std::ssize(out.ids);
  }
  if (sources_ != nullptr) encoder_.encode(line, out.ids);
  return out;
}

probe::MaskedText Prompts::masked(std::uint64_t id, std::string_view line, Index count) {
  const probe::Prompt begin = prompt(id, line);
  probe::MaskedText out;
  out.id = id;
  std::vector<TokenId>& ids = out.sentence.ids;
  ids = begin.ids;
  out.places.resize(static_cast<std::size_t>(count));
  std::iota(out.places.begin(), out.places.end(), std::ssize(ids));
  ids.insert(ids.end(), static_cast<std::size_t>(count), *opened_.tokenizer->roles().mask);
  ids.insert(ids.end(), around_.after.begin(), around_.after.end());
  if (begin.source > 0 && opened_.model->design().type_vocab_size >= 2) {
    out.sentence.segments.assign(ids.size(), 1);
    std::fill_n(out.sentence.segments.begin(), begin.source, 0);
  }
  return out;
}

}  // namespace masque::lm_write
