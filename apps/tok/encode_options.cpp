#include "encode_options.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/parallel.hpp"

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
  c.argument("TOKENIZER", o.tokenizer,
             "a folder, a file, bytes, chars:FILE or whitespace:FILE (a token a line)");
  c.flag("--special", o.special, "with the tokens of the template ([CLS], [SEP] …)");
  c.flag("--no-special-in-text", o.no_special_in_text,
         "special tokens that stand in the text are ordinary text");
  c.flag("--pair", o.pair, "a line holds two texts, separated by a tab");
  c.option("--max-length", "N", o.max_length, cli::AllowedRange{0, 1U << 30},
           "cut to N tokens, the template's included");
  c.choice("--truncation", o.strategy,
           {{"longest_first", TruncationStrategy::kLongestFirst},
            {"only_first", TruncationStrategy::kOnlyFirst},
            {"only_second", TruncationStrategy::kOnlySecond}},
           "which text of a pair is cut");
  c.choice("--truncation-side", o.cut_left, {{"right", false}, {"left", true}},
           "which end is cut off");
  c.flag("--jsonl", o.records, "records instead of ids: one JSON object a line");
  c.option("--with", "FIELDS", o.with_text,
           "more fields of the records: text, offsets, tokens, seg, special (commas between)");
  c.flag("--bytes", o.bytes, "offsets count bytes, not code points");
  c.choice("--binary", o.binary, {{"none", Width::kNone}, {"u16", Width::k16}, {"u32", Width::k32}},
           "ids as little-endian integers of this width, without anything between lines; needs -o");
  c.choice("--layout", o.layout,
           {{"nanogpt", records::BinaryLayout::kNanogpt}, {"llmc", records::BinaryLayout::kLlmc}},
           "nothing but ids, or after the 1024-byte header of llm.c");
  c.option("-o,--output", "FILE", o.output, "the file of --binary");
  add_flavor(c, o.open);
  add_input(c, o.input);
  add_threads(c, o.common);
  add_quiet(c, o.common);
}

void check(EncodeCommand& o) {
  o.with = parse_fields(o.with_text);
  if (!o.with_text.empty() && !o.records) throw UsageError("--with needs --jsonl");
  if (o.records && o.binary != Width::kNone) throw UsageError("--jsonl and --binary, expected one");
  if ((o.binary != Width::kNone) != o.output.has_value())
    throw UsageError("--binary and -o need each other");
}

LineEncoder::LineEncoder(const text::Tokenizer& tokenizer, const EncodeCommand& options)
    : tokenizer_(tokenizer),
      options_(library_options(options)),
      pair_(options.pair),
      encoder_(tokenizer, options_) {}

text::Encoding LineEncoder::encode(std::uint64_t number, std::string_view line) const {
  if (!pair_) return tokenizer_.encode(line, options_);
  const std::size_t tab = line.find('\t');
  if (tab == std::string_view::npos)
    throw InputError(kStandardInput, fmt::format("line {}: no tab, expected two texts", number));
  text::Encoding encoding;
  // A pair that cannot be cut is the line's fault.
  const auto problem = input_error_message([&] {
    encoding = tokenizer_.encode_pair(line.substr(0, tab), line.substr(tab + 1), options_);
  });
  if (problem) throw InputError(kStandardInput, fmt::format("line {}: {}", number, *problem));
  return encoding;
}

const std::vector<TokenId>& LineEncoder::ids(std::uint64_t number, std::string_view line) {
  if (pair_ || options_.truncation) {
    ids_ = encode(number, line).ids;
  } else {
    ids_.clear();
    encoder_.encode(line, ids_);
  }
  return ids_;
}

}  // namespace masque::tok
