#include "positions.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/split.hpp"
#include "base/utf8.hpp"
#include "text/tokenizer.hpp"

namespace masque::mask_viz {

namespace {

constexpr double kMostPositions = 1e9;
constexpr std::uint64_t kMostLabelBytes = 64 << 20;

/// The tokens of a text, with the special ones that the tokenizer adds.
std::vector<std::string> tokens_of(const std::string& text, const std::string& path) {
  const text::Tokenizer tokenizer = text::Tokenizer::open(path);
  std::string valid;
  append_replacing_invalid(text, valid);
  std::vector<TokenId> ids;
  tokenizer.id_encoder({.special = true}).encode(valid, ids);
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const TokenId id : ids) tokens.emplace_back(tokenizer.token(id));
  return tokens;
}

/// One a line; an empty line is an empty token.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  for_each_line(text, [&](std::string_view line) { out.emplace_back(without_return(line)); });
  return out;
}

}  // namespace

void add_lengths(cli::Command& command, PositionOptions& options, bool square) {
  command.option(
      "-n,--length", "N", options.length, cli::AllowedRange{0, kMostPositions},
      square ? "number of positions" : "number of queries, and of keys unless --keys is given");
  if (square) return;
  command.option("--keys", "N", options.keys, cli::AllowedRange{0, kMostPositions},
                 "number of keys [as many as queries]");
  command.option(
      "--offset", "Q", options.offset, cli::AllowedRange{0, kMostPositions},
      "position of the first query: -n 1 --offset 129 is one decoding step with 130 keys");
}

void add_labels(cli::Command& command, PositionOptions& options) {
  command.option("--tokens", "FILE", options.tokens,
                 "file with a label for each position, one per line");
  command.option("--text", "TEXT", options.text,
                 "text whose words, split at white space, label the positions");
}

void add_record(cli::Command& command, PositionOptions& options) {
  command.option("--tokenizer", "DIR", options.tokenizer,
                 "tokenizer that labels the positions with tokens of --text or of a record");
}

Positions positions_of(const PositionOptions& options,
                       const std::vector<mask::MaskExpression>& masks,
                       const std::optional<RecordMask>& record) {
  Positions positions;
  if (record) {
    if (options.length || options.keys || options.offset || options.tokens || options.text) {
      throw UsageError(
          "a record cannot be combined with -n, --keys, --offset, --tokens and --text: it has its "
          "own length and tokens");
    }
    positions.lengths = {record->length, record->length};
    positions.labels = record->labels;
    return positions;
  }
  if (options.tokens && options.text) throw UsageError("--tokens and --text cannot be combined");
  if (options.tokenizer && !options.text) {
    throw UsageError("--tokenizer needs --text, or a record (EXPR is -)");
  }
  if (options.text && options.tokenizer) {
    positions.labels = tokens_of(*options.text, *options.tokenizer);
  } else if (options.text) {
    const auto words = split_at_blanks(*options.text, " \t\r\n\f\v");
    positions.labels.assign(words.begin(), words.end());
  }
  if (options.tokens) positions.labels = lines_of(read_text(*options.tokens, kMostLabelBytes));
  const bool labelled = options.tokens || options.text;
  const auto count = static_cast<Index>(positions.labels.size());
  if (labelled && options.length && *options.length != count) {
    throw UsageError(fmt::format("-n {}: found {} tokens", *options.length, count));
  }
  std::optional<mask::Lengths> lengths;
  if (options.length) lengths = mask::Lengths{*options.length, *options.length};
  if (!lengths && labelled) lengths = mask::Lengths{count, count};
  for (const mask::MaskExpression& mask : masks) {
    if (!lengths) lengths = mask.own_lengths();
  }
  if (!lengths) throw UsageError("no length: give the number of positions with -n N");
  if (options.offset) {
    positions.offset = *options.offset;
    lengths->keys = lengths->queries + *options.offset;
  }
  if (options.keys) lengths->keys = *options.keys;
  positions.lengths = *lengths;
  return positions;
}

mask::Mask Positions::bind(const mask::MaskExpression& mask) const {
  if (offset == 0) return mask.bind(lengths);
  return mask::query_range(mask.bind({lengths.queries + offset, lengths.keys}), offset,
                           lengths.queries);
}

}  // namespace masque::mask_viz
