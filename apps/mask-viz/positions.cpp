#include "positions.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/input/line_filter.hpp"
#include "base/input/line_input.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/parallel.hpp"
#include "cli/session.hpp"
#include "records/record.hpp"
#include "records/record_reader.hpp"
#include "text/tokenizer.hpp"

namespace masque::mask_viz {

namespace {

/// Lengths of runs of equal values, as the arguments of document().
std::string runs_of(const std::vector<std::int32_t>& values) {
  std::string out;
  for (std::size_t begin = 0; begin < values.size();) {
    std::size_t end = begin + 1;
    while (end < values.size() && values[end] == values[begin]) ++end;
    out += fmt::format("{}{}", begin == 0 ? "" : ",", end - begin);
    begin = end;
  }
  return out;
}

std::string mask_of(const records::Record& record) {
  if (record.mask) {
    records::parse_record_mask(*record.mask, static_cast<Index>(record.size()));
    return *record.mask;
  }
  if (record.size() == 0) return "full";
  if (record.doc.present) return fmt::format("document({})", runs_of(record.doc.values));
  if (!record.seg.present) return "full";
  // As UniLM: the source (segment 0) is read by all, the target from left to right.
  std::size_t source = 0;
  while (source < record.size() && record.seg.values[source] == 0) ++source;
  return fmt::format("unilm({},{})", source, record.size() - source);
}

constexpr double kMostPositions = 1e9;
constexpr std::uint64_t kMostLabelBytes = 64 << 20;

/// The tokens of a text, with the special ones that the tokenizer adds.
std::vector<std::string> tokens_of(const std::string& text, const std::string& path,
                                   cli::Session& session) {
  const text::Tokenizer tokenizer = text::Tokenizer::open(path);
  session.notes(tokenizer.parts().path, tokenizer.warnings());
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
                       const std::vector<mask::MaskExpression>& masks, cli::Session& session,
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
    positions.labels = tokens_of(*options.text, *options.tokenizer, session);
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

std::optional<RecordMask> read_record_mask(const std::string& argument,
                                           const std::optional<std::string>& tokenizer,
                                           cli::Session& session) {
  if (argument != "-") return std::nullopt;
  if (::isatty(STDIN_FILENO) == 1) {
    throw UsageError("no input: pipe a record in, or use < file");
  }
  LineInput input(STDIN_FILENO, kStandardInput, 64 << 20);
  LineBatch batch;
  if (!input.read(batch)) throw InputError(kStandardInput, "is empty, expected a record");
  std::string line = batch.text.substr(0, batch.text.find('\n'));
  line.reserve(line.size() + kLinePadding);
  records::JsonRecordReader reader;
  records::Record record;
  if (const auto problem = reader.read(line, record)) {
    throw InputError(kStandardInput, fmt::format("line 1: {}", *problem));
  }
  RecordMask out;
  if (const auto problem = input_error_message([&] { out.expression = mask_of(record); }))
    throw InputError(kStandardInput, fmt::format("line 1: {}", *problem));
  out.length = static_cast<Index>(record.size());
  std::optional<text::Tokenizer> names;
  if (tokenizer) {
    names = text::Tokenizer::open(*tokenizer);
    session.notes(names->parts().path, names->warnings());
  }
  for (std::size_t i = 0; i < record.size(); ++i) {
    out.labels.push_back(names ? std::string(names->token(record.ids[i]))
                               : std::to_string(record.ids[i]));
    if (record.labels.present && record.labels.values[i] != records::kNoLabel) {
      out.labelled.push_back(static_cast<Index>(i));
    }
  }
  return out;
}

}  // namespace masque::mask_viz
