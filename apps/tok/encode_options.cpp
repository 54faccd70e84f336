#include "encode_options.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "cli/input_lines.hpp"
#include "cli/shared_options.hpp"

namespace masque::tok {

namespace {

text::EncodeOptions library_options(const EncodeCommand& o) {
  text::EncodeOptions options;
  options.special = o.special;
  options.special_in_text = !o.no_special_in_text;
  options.unit = o.bytes ? text::OffsetUnit::kByte : text::OffsetUnit::kCodePoint;
  if (o.max_length) {
    options.truncation =
        text::Truncation{static_cast<std::size_t>(*o.max_length), o.strategy, o.cut_left};
  }
  return options;
}

}  // namespace

void add_encode(cli::Command& c, EncodeCommand& o) {
  using text::TruncationStrategy;
  c.argument(
      "TOKENIZER", o.tokenizer,
      "tokenizer: a folder, a file, bytes, chars:FILE or whitespace:FILE (one token per line)");
  c.flag("--special", o.special, "adds the special tokens of the template, like [CLS] and [SEP]");
  cli::add_no_special_in_text(c, o.no_special_in_text);
  c.flag("--pair", o.pair, "each line contains two texts separated by a tab");
  c.option("--max-length", "N", o.max_length, cli::AllowedRange{0, 1U << 30},
           "truncates to N tokens, special tokens included");
  c.choice("--truncation", o.strategy,
           {{"longest_first", TruncationStrategy::kLongestFirst},
            {"only_first", TruncationStrategy::kOnlyFirst},
            {"only_second", TruncationStrategy::kOnlySecond}},
           "text of a pair to truncate");
  c.choice("--truncation-side", o.cut_left, {{"right", false}, {"left", true}}, "end to truncate");
  c.flag("--jsonl", o.records, "prints one JSON object per line instead of ids");
  c.option("--with", "FIELDS", o.with_text,
           "more fields for --jsonl, separated by commas: text, offsets, tokens, seg, special");
  c.flag("--bytes", o.bytes, "counts offsets in bytes instead of code points");
  c.choice("--binary", o.binary, {{"none", 0}, {"u16", 2}, {"u32", 4}},
           "writes ids to -o as little-endian integers, without separators between lines");
  c.choice("--layout", o.layout, records::binary_layout_names(),
           "nanogpt: ids only; llmc: ids after the 1024-byte header of llm.c");
  c.option("-o,--output", "FILE", o.output, "output file of --binary");
  c.writes({"output"});
  c.read_only_if(
      {"truncation", "truncation-side"}, [&o] { return o.max_length.has_value(); },
      "without --max-length");
  c.read_only_if(
      {"bytes"}, [&o] { return o.folder || parse_fields(o.with_text).offsets; },
      "without --with offsets");
  c.read_only_if(
      {"layout"}, [&o] { return o.binary != 0; }, "without --binary");
  c.option("--to", "FOLDER", o.folder,
           "writes a token folder, which lm-train and length-gen train on from the disk");
  c.flag("--resume", o.resume, "continues the token folder of an interrupted run");
  cli::add_shard(c, o.shard);
  add_flavor(c, o.open);
  add_input(c, o.input);
  cli::add_policy(c, o.input.bad);
  add_threads(c, o.common);
  add_quiet(c, o.common);
}

void check(EncodeCommand& o) {
  o.with = parse_fields(o.with_text);
  if (!o.with_text.empty() && !o.records) throw UsageError("--with needs --jsonl");
  if (o.records && o.binary != 0) throw UsageError("--jsonl cannot be combined with --binary");
  if ((o.binary != 0) != o.output.has_value())
    throw UsageError("--binary needs -o FILE, and -o needs --binary");
  if (o.resume && !o.folder) throw UsageError("--resume needs --to");
  if (!o.folder) return;
  const auto refuse = [](std::string_view option) {
    throw UsageError(
        fmt::format("{} cannot be combined with --to: a token folder holds the ids of "
                    "lines; special tokens are added when they are read",
                    option));
  };
  if (o.special) refuse("--special");
  if (o.pair) refuse("--pair");
  if (o.max_length) refuse("--max-length");
  if (o.records) refuse("--jsonl");
  if (o.bytes) refuse("--bytes");
  if (o.binary != 0) refuse("--binary");
}

LineTokenizer::LineTokenizer(const text::Tokenizer& tokenizer, const EncodeCommand& options)
    : tokenizer_(tokenizer),
      options_(library_options(options)),
      pair_(options.pair),
      encoder_(tokenizer, options_) {}

text::Encoding LineTokenizer::encode(std::string_view line) const {
  if (!pair_) return tokenizer_.encode(line, options_);
  const std::size_t tab = line.find('\t');
  if (tab == std::string_view::npos)
    throw InputError("no tab, expected two texts separated by a tab");
  return tokenizer_.encode_pair(line.substr(0, tab), line.substr(tab + 1), options_);
}

const std::vector<TokenId>& LineTokenizer::ids(std::string_view line) {
  if (pair_ || options_.truncation) {
    ids_ = encode(line).ids;
  } else {
    ids_.clear();
    encoder_.encode(line, ids_);
  }
  return ids_;
}

}  // namespace masque::tok
