#include "train/data/line_encoder.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json_text.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"

namespace masque::train {

namespace {

void append(const std::vector<TokenId>& from, std::vector<TokenId>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

LineEncoder::LineEncoder(const text::Tokenizer& tokenizer, const CorpusOptions& options)
    : format_(options.format),
      field_(options.field),
      corrections_(options.corrections && options.format == CorpusFormat::kPairs),
      source_(options.source),
      policy_(options.policy),
      unknown_(tokenizer.roles().unk),
      around_(options.format == CorpusFormat::kPairs && !options.corrections && !options.source
                  ? text::pair_tokens(tokenizer)
                  : text::template_tokens(tokenizer, 1)) {
  const text::Roles& roles = tokenizer.roles();
  if (format_ == CorpusFormat::kLines) {
    if (around_.before.empty()) begin_ = options.begin;
    if (begin_) around_.before.push_back(*begin_);
    if (around_.after.empty() && options.end) around_.after.push_back(*options.end);
  } else if (format_ == CorpusFormat::kBlocks) {
    separator_ = roles.eos ? roles.eos : roles.sep;
  }
  if (source_) around_target_ = text::template_tokens(tokenizer, 1, true);
  room_ = options.length - std::max(around_.size(), around_target_.size());
  const Index least = format_ == CorpusFormat::kPairs && !corrections_ && !source_ ? 2 : 1;
  if (room_ < least) {
    throw UsageError(fmt::format(
        "sequences of {} tokens, expected at least {}: {} special tokens and {} of text",
        options.length, options.length - room_ + least, options.length - room_, least));
  }
}

void LineEncoder::encode(text::IdEncoder& encoder, EncodedLines& piece) const {
  piece.ids.clear();
  piece.segments.clear();
  piece.labels.clear();
  piece.repaired = {};
  piece.surrogates = {};
  piece.cut = {};
  piece.left_out = 0;
  piece.lengths.clear();
  piece.places.clear();
  piece.lines = 0;
  piece.problem.clear();
  std::string repaired, member;
  for_each_line(piece.text, [&](std::string_view line) {
    if (!piece.problem.empty()) return;
    ++piece.lines;
    line = without_return(line);
    if (!valid_utf8(line)) {
      repaired.clear();
      piece.repaired.add_line(append_replacing_invalid(line, repaired));
      line = repaired;
    }
    if (field_) {
      if (line.find_first_not_of(kBlanksOfLine) == std::string_view::npos) return;
      std::uint64_t surrogates = 0;
      if (const auto problem = read_json_text(line, *field_, member, surrogates)) {
        piece.problem = *problem;
        return;
      }
      piece.surrogates.add_line(surrogates);
      line = member;
    }
    if (format_ == CorpusFormat::kPairs) {
      add_pair(encoder, line, piece);
    } else {
      add_line(encoder, line, piece);
    }
  });
}

SequenceShape LineEncoder::shape() const {
  MASQUE_CHECK(format_ != CorpusFormat::kPairs);
  return {
      format_ == CorpusFormat::kBlocks, around_.before, around_.after, room_, separator_, policy_};
}

void LineEncoder::add_line(text::IdEncoder& encoder, std::string_view line,
                           EncodedLines& piece) const {
  const std::size_t first = piece.ids.size();
  encoder.encode(line, piece.ids);
  if (piece.ids.size() == first) return;
  piece.lengths.push_back(static_cast<Index>(piece.ids.size() - first));
  piece.places.push_back(static_cast<Index>(piece.lines));
}

void LineEncoder::add_pair(text::IdEncoder& encoder, std::string_view line,
                           EncodedLines& piece) const {
  if (line.empty()) return;
  const auto pair = split_in_two(line, '\t');
  if (!pair) {
    piece.problem = "expected a source and a target with one tab between them";
    return;
  }
  std::vector<TokenId> source;
  std::vector<TokenId> target;
  encoder.encode(pair->first, source);
  encoder.encode(pair->second, target);
  if (source.empty() || target.empty()) return;
  corrections_ ? add_correction(std::move(source), std::move(target), piece)
  : source_    ? add_source_and_target(std::move(source), std::move(target), piece)
               : join_pair(std::move(source), std::move(target), piece);
}

bool LineEncoder::is_taken(std::size_t size, EncodedLines& piece) const {
  using Kind = evaluate::LengthPolicy::Kind;
  const auto tokens = static_cast<Index>(size);
  piece.cut.tokens += tokens;
  if (tokens <= room_) return true;
  const bool cuts = policy_ == Kind::kFirst;
  piece.cut.add({1, cuts ? tokens - room_ : tokens, 0, cuts ? 0 : 1});
  if (policy_ == Kind::kError)
    piece.problem = evaluate::too_long(tokens + around_.size(), room_ + around_.size());
  return cuts;
}

void LineEncoder::add_correction(std::vector<TokenId> source, std::vector<TokenId> target,
                                 EncodedLines& piece) const {
  if (source.size() != target.size()) {
    ++piece.left_out;
    return;
  }
  const auto room = static_cast<std::size_t>(room_);
  if (!is_taken(source.size(), piece)) return;
  source.resize(std::min(source.size(), room));
  target.resize(source.size());
  const std::size_t first = piece.ids.size();
  append(around_.before, piece.ids);
  piece.labels.resize(piece.ids.size(), records::kNoLabel);
  append(source, piece.ids);
  for (const TokenId id : target) piece.labels.push_back(id == unknown_ ? records::kNoLabel : id);
  append(around_.after, piece.ids);
  piece.labels.resize(piece.ids.size(), records::kNoLabel);
  piece.lengths.push_back(static_cast<Index>(piece.ids.size() - first));
  piece.places.push_back(static_cast<Index>(piece.lines));
}

void LineEncoder::add_source_and_target(std::vector<TokenId> source, std::vector<TokenId> target,
                                        EncodedLines& piece) const {
  const auto [shorter, longer] = std::minmax({std::ssize(source), std::ssize(target)});
  piece.cut.tokens += shorter;
  if (!is_taken(static_cast<std::size_t>(longer), piece)) return;
  if (shorter > room_) piece.cut.add({0, shorter - room_, 0, 0});
  const std::size_t first = piece.ids.size();
  for (const auto& [part, around] :
       {std::pair(&source, &around_), std::pair(&target, &around_target_)}) {
    part->resize(std::min(part->size(), static_cast<std::size_t>(room_)));
    part->insert(part->begin(), around->before.begin(), around->before.end());
    append(around->after, *part);
  }
  append(source, piece.ids);
  piece.segments.resize(piece.ids.size(), 0);
  piece.ids.push_back(begin_of_target(*source_, target.back()));
  append(target, piece.ids);
  piece.segments.resize(piece.ids.size(), 1);
  piece.lengths.push_back(static_cast<Index>(piece.ids.size() - first));
  piece.places.push_back(static_cast<Index>(piece.lines));
}

void LineEncoder::join_pair(std::vector<TokenId> source, std::vector<TokenId> target,
                            EncodedLines& piece) const {
  const auto room = static_cast<std::size_t>(room_);
  if (!is_taken(source.size() + target.size(), piece)) return;
  if (source.size() + target.size() > room) {  // longest first, as transformers
    const bool source_shorter = source.size() <= target.size();
    std::vector<TokenId>& shorter = source_shorter ? source : target;
    std::vector<TokenId>& longer = source_shorter ? target : source;
    shorter.resize(std::min(shorter.size(), room / 2));
    longer.resize(room - shorter.size());
  }
  const std::size_t first = piece.ids.size();
  append(around_.before, piece.ids);
  append(source, piece.ids);
  append(around_.between, piece.ids);
  piece.segments.resize(piece.ids.size(), 0);
  append(target, piece.ids);
  append(around_.after, piece.ids);
  piece.segments.resize(piece.ids.size(), 1);
  piece.lengths.push_back(static_cast<Index>(piece.ids.size() - first));
  piece.places.push_back(static_cast<Index>(piece.lines));
}

}  // namespace masque::train
