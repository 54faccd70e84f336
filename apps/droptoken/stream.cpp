#include "stream.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/comma_list.hpp"
#include "cli/input_lines.hpp"
#include "commands/text_stream.hpp"
#include "records/noise.hpp"
#include "records/token_folder.hpp"
#include "text/tokenizer.hpp"

namespace masque::droptoken {

using records::LineFormat;

namespace {

constexpr const char* kFormatHelp = "format of the lines; auto: decided by the first line";

void add_input(cli::Command& command, RecordStreamOptions& options) {
  command.option("--input", "FILE", options.input, "file of records; -: standard input");
}

/// --shard, --first-record, --max-line, --policy, -j, -q.
void add_lines(cli::Command& command, RecordStreamOptions& options) {
  cli::add_shard(command, options.shard);
  commands::add_first_record(command, options.first_record);
  cli::add_max_line(command, options.max_line);
  cli::add_policy(command, options.bad);
  add_threads(command, options.common);
  add_quiet(command, options.common);
}

}  // namespace

void add_reading(cli::Command& command, RecordStreamOptions& options) {
  add_input(command, options);
  command.choice("--format", options.format,
                 {{"auto", LineFormat::kAuto},
                  {"text", LineFormat::kText},
                  {"ids", LineFormat::kIds},
                  {"jsonl", LineFormat::kJson}},
                 kFormatHelp);
  command.option("--tokenizer", "DIR", options.tokens.tokenizer,
                 "tokenizer that encodes text and defines the special tokens");
  command.flag("--special", options.special, "add the tokenizer's special tokens to text");
  command.option("--mask-token", "ID", options.tokens.mask_token, cli::AllowedRange{0, 2147483647},
                 "id of the mask token [the tokenizer's]");
  command.option("--vocab-size", "N", options.tokens.vocab_size, cli::AllowedRange{1, 2147483647},
                 "number of ids [the tokenizer's]");
  command.read_only_if(
      {"special"}, [&] { return options.tokens.tokenizer.has_value(); }, "without --tokenizer");
  command.option("--special-token", "ID", options.tokens.special_tokens,
                 "another id that is never changed; may be repeated");
  add_lines(command, options);
}

void add_text_reading(cli::Command& command, RecordStreamOptions& options) {
  add_input(command, options);
  command.choice(
      "--format", options.format,
      {{"auto", LineFormat::kAuto}, {"text", LineFormat::kText}, {"jsonl", LineFormat::kJson}},
      kFormatHelp);
  add_lines(command, options);
}

void add_randomness(cli::Command& command, RecordStreamOptions& options) {
  add_seed(command, options.common);
  command.option("--epochs", "K", options.epochs,
                 "write K differently corrupted versions of each record, one after the other");
  command.option("--dup", "K", options.copies, "write each version K times");
  command.option("--stats", "FILE", options.stats, "write the totals as JSON to FILE");
  command.writes({"stats"});
}

void add_binary(cli::Command& command, RecordStreamOptions& options) {
  command.choice(
      "--binary", options.binary, {{"no", 0}, {"u16", 2}, {"u32", 4}},
      "read and write plain ids as binary files, with separate files for labels and positions");
  command.choice("--layout", options.layout, records::binary_layout_names(),
                 "layout of binary files");
  command.option("--length", "N", options.length, cli::AllowedRange{1, 1e9},
                 "ids per binary record");
  command.option("-o,--output", "FILE", options.output, "binary output");
  command.writes({"output"}, records::binary_sidecars());
  command.read_only_if(
      {"layout", "length"}, [&] { return options.binary != 0; }, "without --binary");
  command.read_only_if(
      {"format", "special", "max-line", "policy"}, [&] { return options.binary == 0; },
      "with --binary, which reads plain ids");
}

namespace {

std::int64_t parse_id(const std::string& text) {
  const auto id = parse_unsigned(text);
  if (!id || *id > INT32_MAX) {
    throw UsageError(fmt::format("--special-token: found '{}', expected an id", escape(text)));
  }
  return static_cast<std::int64_t>(*id);
}

void mark(std::vector<std::uint8_t>& flags, std::int64_t id) {
  const auto at = static_cast<std::size_t>(id);
  if (at >= flags.size()) flags.resize(at + 1, 0);
  flags[at] = 1;
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string tally_json(const records::Tally& t, std::uint64_t bad) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("records", t.records).member("bad_records", bad);
  json.member("tokens_in", t.tokens_in).member("tokens_out", t.tokens_out);
  json.member("ordinary", t.ordinary).member("selected", t.selected).member("masked", t.masked);
  json.member("kept", t.kept).member("random", t.random).member("dropped", t.dropped);
  json.member("selected_rate", share_of(t.selected, t.ordinary));
  json.member("masked_rate", share_of(t.masked, t.selected));
  json.member("kept_rate", share_of(t.kept, t.selected));
  json.member("random_rate", share_of(t.random, t.selected));
  json.member("dropped_rate", share_of(t.dropped, t.ordinary)).end_object();
  return text + "\n";
}

std::string tally_text(const records::Tally& t) {
  std::string out =
      fmt::format("{} records, {} tokens in, {} out", t.records, t.tokens_in, t.tokens_out);
  const auto percent = [](std::uint64_t part, std::uint64_t whole) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  if (t.selected > 0 && t.ordinary > 0) {
    out += fmt::format("; {:.2f} % selected", percent(t.selected, t.ordinary));
  }
  if (t.masked + t.kept + t.random > 0 && t.selected > 0) {
    out += fmt::format(" (masked {:.2f} %, kept {:.2f} %, random {:.2f} %)",
                       percent(t.masked, t.selected), percent(t.kept, t.selected),
                       percent(t.random, t.selected));
  }
  if (t.dropped > 0 && t.ordinary > 0) {
    out += fmt::format("; {:.2f} % dropped", percent(t.dropped, t.ordinary));
  }
  return out;
}

std::string words_json(const records::Tally& t, std::uint64_t bad) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("records", t.records).member("bad_records", bad);
  json.member("words", t.ordinary).member("errors", t.selected);
  json.member("error_rate", share_of(t.selected, t.ordinary));
  for (const auto& [name, kind] : records::word_error_names())
    json.member(name, t.errors[static_cast<std::size_t>(kind)]);
  json.end_object();
  return text + "\n";
}

std::string words_text(const records::Tally& t) {
  std::string out = fmt::format("{} records, {} words", t.records, t.ordinary);
  if (t.ordinary == 0) return out;
  out += fmt::format(", {:.2f} % with an error", 100 * share_of(t.selected, t.ordinary));
  const char* before = " (";
  for (const auto& [name, kind] : records::word_error_names()) {
    const std::uint64_t count = t.errors[static_cast<std::size_t>(kind)];
    if (count == 0) continue;
    out += fmt::format("{}{} {}", before, name, count);
    before = ", ";
  }
  return t.selected == 0 ? out : out + ")";
}

}  // namespace

Tokens::Tokens(const RecordStreamOptions& options) {
  const TokenOptions& o = options.tokens;
  if (o.tokenizer) {
    tokenizer_ = std::make_shared<const text::Tokenizer>(text::Tokenizer::open(*o.tokenizer));
    table_.size = static_cast<TokenId>(tokenizer_->size());
    table_.mask = tokenizer_->roles().mask.value_or(-1);
    table_.special.assign(tokenizer_->size(), 0);
    table_.begins_word.assign(tokenizer_->size(), 0);
    for (std::size_t i = 0; i < tokenizer_->size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      table_.special[i] = tokenizer_->is_special(id) ? 1 : 0;
      table_.begins_word[i] = tokenizer_->begins_word(id) ? 1 : 0;
    }
    if (text::has_ids_only(*tokenizer_)) table_.begins_word.clear();
  }
  if (tokenizer_ && records::is_token_folder(options.input))
    records::TokenFolderInfo::read(options.input).check_tokenizer(options.input, *tokenizer_);
  if (o.mask_token) {
    table_.mask = static_cast<TokenId>(*o.mask_token);
    mark(table_.special, *o.mask_token);
  }
  if (o.vocab_size) table_.size = static_cast<TokenId>(*o.vocab_size);
  for (const std::string& id : o.special_tokens) mark(table_.special, parse_id(id));
  if (table_.size > 0 && table_.mask >= table_.size) {
    throw UsageError(fmt::format("--mask-token {}, expected an id below the vocabulary size {}",
                                 table_.mask, table_.size));
  }
}

records::RecordFilter filter_of(const RecordStreamOptions& options, const Tokens& tokens,
                                cli::Session& session) {
  if (tokens.tokenizer())
    session.notes(tokens.tokenizer()->parts().path, tokens.tokenizer()->warnings());
  records::RecordFilter filter;
  filter.input = options.input;
  filter.format = options.format;
  if (tokens.tokenizer()) {
    const std::shared_ptr<const text::Tokenizer>& tokenizer = tokens.tokenizer();
    const text::EncodeOptions encode{.special = options.special};
    filter.make_encoder = [tokenizer, encode]() -> records::EncodeFunction {
      const auto encoder = std::make_shared<text::IdEncoder>(tokenizer->id_encoder(encode));
      return [tokenizer, encoder](std::string_view line, std::vector<TokenId>& ids) {
        encoder->encode(line, ids);
      };
    };
  }
  filter.threads = options.common.threads;
  filter.first_record = options.first_record;
  if (options.shard) filter.shard = parse_shard(*options.shard);
  filter.max_line = options.max_line;
  if (options.epochs < 1 || options.copies < 1) {
    throw UsageError("--epochs and --dup: expected at least 1");
  }
  filter.epochs = options.epochs;
  filter.copies = options.copies;
  filter.strict = options.bad == cli::BadLines::kError;
  filter.tokens = tokens.table();
  filter.sink = [&session](std::string_view out) { session.print(out); };
  return filter;
}

cli::ExitCode report_bad(const RecordStreamOptions& options, const records::FilterResult& result,
                         cli::Session& session) {
  if (result.bad == 0 && result.repaired.lines == 0 && result.surrogates.lines == 0)
    return cli::ExitCode::kDone;
  session.flush();
  const std::string name = input_name(options.input);
  cli::note_repaired(result.repaired, name, session);
  cli::note_surrogates(result.surrogates, name, session);
  if (result.bad == 0) return cli::ExitCode::kDone;
  for (const records::BadRecord& bad : result.first_bad) {
    session.error(fmt::format("{}: line {}: {}", escape(name), bad.line, bad.message));
  }
  session.error_at_end(counted(result.bad, "bad record") + " skipped");
  return cli::ExitCode::kInput;
}

cli::ExitCode run_stream(const RecordStreamOptions& options, const Tokens& tokens,
                         const records::Corruption* corruption, cli::Session& session) {
  if (options.binary != 0) {
    if (!options.output) throw UsageError("--binary needs -o FILE");
    if (options.epochs != 1 || options.copies != 1 || options.shard) {
      throw UsageError("--binary cannot be combined with --epochs, --dup or --shard");
    }
    if (tokens.tokenizer())
      session.notes(tokens.tokenizer()->parts().path, tokens.tokenizer()->warnings());
    records::BinaryFilter filter{.input = options.input,
                                 .output = *options.output,
                                 .bytes = options.binary,
                                 .layout = options.layout,
                                 .length = static_cast<std::size_t>(options.length),
                                 .threads = options.common.threads,
                                 .first_record = options.first_record,
                                 .tokens = tokens.table()};
    const records::Tally tally = filter_binary(filter, *corruption);
    session.note(tally_text(tally));
    if (options.stats) replace_text(*options.stats, tally_json(tally, 0));
    return cli::ExitCode::kDone;
  }
  if (options.output) throw UsageError("-o needs --binary; records are printed to standard output");
  const records::FilterResult result =
      filter_records(filter_of(options, tokens, session), corruption);
  if (options.stats) replace_text(*options.stats, tally_json(result.tally, result.bad));
  const cli::ExitCode code = report_bad(options, result, session);
  session.flush();
  session.note(tally_text(result.tally));
  return code;
}

cli::ExitCode run_text_stream(const RecordStreamOptions& options,
                              const records::Corruption& corruption, bool pairs,
                              cli::Session& session) {
  records::RecordFilter filter = filter_of(options, Tokens(options), session);
  filter.text = true;
  if (pairs) filter.print = records::append_pair;
  const records::FilterResult result = filter_records(filter, &corruption);
  if (options.stats) replace_text(*options.stats, words_json(result.tally, result.bad));
  const cli::ExitCode code = report_bad(options, result, session);
  session.flush();
  session.note(words_text(result.tally));
  return code;
}

}  // namespace masque::droptoken
