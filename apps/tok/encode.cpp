// tok encode: the ids of each line.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/input/line_input.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/ordered_work.hpp"
#include "base/thread/parallel.hpp"
#include "base/thread/shortage.hpp"
#include "cli/input_lines.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "input.hpp"
#include "record.hpp"
#include "records/token_folder.hpp"
#include "records/token_folder_writer.hpp"
#include "text/tokenizer.hpp"

namespace masque::tok {

namespace {

// The options of tok encode, and one thread's encoder that follows them.

struct EncodeCommand {
  std::string tokenizer;
  text::TokenizerOptions open;
  InputOptions input;
  bool special = false;
  bool no_special_in_text = false;
  bool pair = false;
  std::optional<std::int64_t> max_length;
  text::TruncationStrategy strategy = text::TruncationStrategy::kLongestFirst;
  bool cut_left = false;
  bool records = false;
  std::string with_text;
  bool bytes = false;
  int binary = 0;  ///< bytes of an id in a binary file; 0: none is written
  records::BinaryLayout layout = records::BinaryLayout::kNanogpt;
  std::optional<std::string> output;
  std::optional<std::string> folder;  ///< of tokens, which is written
  bool resume = false;                ///< goes on with a folder that an interrupted run left
  std::optional<std::string> shard;   ///< "I/N": only this part of a file
  RecordFields with;
  cli::CommonOptions common;
};

/// Encodes lines on one thread.
class LineTokenizer {
 public:
  LineTokenizer(const text::Tokenizer& tokenizer, const EncodeCommand& options);

  /// The ids alone, valid until the next call.
  const std::vector<TokenId>& ids(std::string_view line);
  /// Throws InputError for a pair that has no tab, or cannot be cut.
  text::Encoding encode(std::string_view line) const;

 private:
  const text::Tokenizer& tokenizer_;
  text::EncodeOptions options_;
  bool pair_;
  text::IdEncoder encoder_;
  std::vector<TokenId> ids_;
};

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

/// Throws UsageError if options do not fit together; fills `with`.
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

// Standard input as a token folder.

/// What was encoded is made durable this often.
constexpr double kSaveSeconds = 10;

/// Lines, and what they become.
struct FolderBatch {
  LineBatch lines;
  std::uint64_t bytes = 0;
  Index last_line = 0;  ///< of the text, from 1
  std::string text;     ///< the digest of the text up to its end
  std::vector<TokenId> ids;
  std::vector<std::size_t> lengths;
  bool whole = false;  ///< all of its lines are encoded
};

Index count_lines(std::string_view text) {
  const auto feeds = std::count(text.begin(), text.end(), '\n');
  return static_cast<Index>(feeds) + (text.empty() || text.ends_with('\n') ? 0 : 1);
}

/// The lines of standard input, with the digest of what was read.
class HashedInput {
 public:
  /// `lines`, which must stay, counts what is left out.
  HashedInput(const EncodeCommand& o, InputLines& lines)
      : input_(cli::open_lines(STDIN_FILENO, kStandardInput, o.input)) {
    lines.leave_out_long(input_);
    if (o.shard) input_.cut(parse_shard(*o.shard));
    // What is no text is refused here.
    input_.read(waiting_);
  }

  bool read(FolderBatch& batch) {
    if (!next(batch.lines)) return false;
    hasher_->add(as_bytes(batch.lines.text));
    lines_ += count_lines(batch.lines.text);
    batch.bytes = batch.lines.text.size();
    batch.last_line = lines_;
    batch.text = hasher_->digest();
    return true;
  }
  bool ready() const { return !waiting_.text.empty() || input_.ready(); }

  /// Passes over as many lines as were `done`. Throws InputError if they are not the same.
  void skip(const records::TokenProgress& done) {
    LineBatch batch;
    while (lines_ < done.lines && next(batch)) {
      std::string_view text = batch.text;
      std::size_t end = 0;
      for (; lines_ < done.lines && end < text.size(); ++lines_)
        end = std::min(text.find('\n', end), text.size() - 1) + 1;
      hasher_->add(as_bytes(text.substr(0, end)));
      waiting_.first_line =
          batch.first_line + static_cast<std::uint64_t>(count_lines(text.substr(0, end)));
      waiting_.text = text.substr(end);
    }
    if (lines_ == done.lines && (done.lines == 0 || hasher_->digest() == done.text)) return;
    throw InputError(kStandardInput,
                     fmt::format("other lines than the {} that were encoded before, expected the "
                                 "same text",
                                 done.lines));
  }

 private:
  bool next(LineBatch& batch) {
    if (waiting_.text.empty()) return input_.read(batch);
    std::swap(batch, waiting_);
    waiting_.text.clear();
    return true;
  }

  LineInput input_;
  LineBatch waiting_;  ///< read ahead: the first lines, and what was not skipped
  std::unique_ptr<Hasher> hasher_ = make_xxh3();
  Index lines_ = 0;
};

/// Besides the tokenizer, what decides the ids.
std::string settings_of(const EncodeCommand& o) {
  return fmt::format(
      "special tokens in text: {}, lines that are not UTF-8: {}{}",
      o.no_special_in_text ? "no" : "yes",
      o.input.invalid == cli::Invalid::kSkip ? "skipped" : "repaired",
      o.input.json() ? fmt::format(", field: {}", o.input.field.value_or("text")) : "");
}

/// Writes the ids of standard input's lines as the token folder of `options`, with `tokenizer`.
/// After an interruption, a run with --resume goes on after the lines that were saved. Throws
/// InputError, also if these lines are not what they were.
cli::ExitCode encode_to_folder(const EncodeCommand& o, const text::Tokenizer& tokenizer,
                               cli::Session& session) {
  EncodeCommand options = o;
  options.input.crlf = true;  // as training reads text
  // What it refuses leaves no folder.
  InputLines lines(options.input);
  HashedInput input(options, lines);
  records::TokenFolderWriter writer(
      *o.folder, static_cast<Index>(tokenizer.size()), text::tokenizer_digest(tokenizer),
      o.resume ? records::TokenFolderStart::kResume : records::TokenFolderStart::kNew,
      settings_of(o));
  if (!writer.complete())
    session.say_if_interrupted(fmt::format("{} is incomplete; --resume continues", *o.folder));
  const int threads = o.common.threads > 0 ? o.common.threads : default_threads();
  std::vector<std::unique_ptr<LineTokenizer>> encoders;
  encoders.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i)
    encoders.push_back(std::make_unique<LineTokenizer>(tokenizer, options));
  input.skip(writer.saved());
  if (const Index encoded = writer.saved().lines; encoded > 0)
    session.note(fmt::format("resuming after line {}", encoded));
  const auto progress = session.progress("encoding");
  const std::uint64_t total = cli::size_of_input(
      STDIN_FILENO, o.shard ? std::optional(parse_shard(*o.shard)) : std::nullopt);
  std::uint64_t bytes = 0;
  records::TokenProgress done = writer.saved();
  auto saved = std::chrono::steady_clock::now();
  OrderedSteps<FolderBatch> steps;
  steps.read = [&](FolderBatch& batch) { return input.read(batch); };
  steps.ready = [&] { return input.ready(); };
  steps.work = [&](FolderBatch& batch, int worker) {
    batch.ids.clear();
    batch.lengths.clear();
    batch.whole = false;
    lines.each(batch.lines, [&](std::uint64_t /*number*/, std::string_view line) {
      const auto& ids = encoders[static_cast<std::size_t>(worker)]->ids(line);
      if (ids.empty()) return;
      batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
      batch.lengths.push_back(ids.size());
    });
    batch.whole = true;
  };
  bool half = false;  // of a batch is added
  steps.write = [&](FolderBatch& batch) {
    if (!batch.whole) return;
    half = true;
    std::span<const TokenId> ids = batch.ids;
    {
      // A batch is there as a whole: what is saved after a signal ends with it.
      const InterruptsPutOff whole;
      for (const std::size_t length : batch.lengths) {
        writer.add(ids.first(length));
        ids = ids.subspan(length);
      }
      done.lines = batch.last_line;
      done.text = batch.text;
      half = false;
    }
    bytes += batch.bytes;
    if (progress && total > 0) progress(std::min(bytes, total), total);
    if (seconds_since(saved) < kSaveSeconds) return;
    writer.save(done.lines, done.text);
    saved = std::chrono::steady_clock::now();
  };
  const std::exception_ptr failed = caught([&] { ordered_work(threads, steps); });
  if (failed) {
    // Of half a batch, without memory and on a full disk, what was saved before stays.
    const InterruptsHeld held;
    if (!half && !is_shortage(failed)) caught([&] { writer.save(done.lines, done.text); });
    std::rethrow_exception(failed);
  }
  writer.commit(done.lines);
  session.clear_progress();
  if (writer.complete())
    session.note(fmt::format("{} was complete and holds the ids of this text", *o.folder));
  return lines.finish(session);
}

// The command.

/// Bytes of output for which a batch keeps its memory.
constexpr std::size_t kMostKept = std::size_t{16} << 20;

struct EncodeBatch {
  LineBatch lines;
  std::string out;
};

void append_line(EncodeBatch& batch, const std::vector<TokenId>& ids) {
  records::append_ids(batch.out, ids, ' ');
  batch.out += '\n';
}

cli::ExitCode run(EncodeCommand& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.common);
  check(o);
  need_stream(command);
  const text::Tokenizer tokenizer = open_tokenizer(o.tokenizer, o.open, session);
  if (o.folder) return encode_to_folder(o, tokenizer, session);
  std::unique_ptr<BinaryOutput> binary;
  if (o.binary != 0)
    binary = std::make_unique<BinaryOutput>(*o.output, o.binary, o.layout, tokenizer.size());
  const int threads = o.common.threads > 0 ? o.common.threads : default_threads();
  std::vector<std::unique_ptr<LineTokenizer>> encoders;
  encoders.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i)
    encoders.push_back(std::make_unique<LineTokenizer>(tokenizer, o));
  LineInput input = cli::open_lines(0, kStandardInput, o.input);
  if (o.shard) input.cut(parse_shard(*o.shard));
  InputLines lines(o.input);
  lines.leave_out_long(input);
  OrderedSteps<EncodeBatch> steps;
  steps.read = [&](EncodeBatch& batch) { return input.read(batch.lines); };
  steps.ready = [&] { return input.ready(); };
  steps.work = [&](EncodeBatch& batch, int worker) {
    LineTokenizer& encoder = *encoders[static_cast<std::size_t>(worker)];
    batch.out.clear();
    lines.each(batch.lines, [&](std::uint64_t number, std::string_view line) {
      const auto encode = [&] {
        if (o.records && o.with.need_encoding()) {
          append_record(batch.out, encoder.encode(line), line, o.with);
        } else if (o.records) {
          append_record(batch.out, encoder.ids(line), line, o.with);
        } else if (binary) {
          binary->append(batch.out, encoder.ids(line));
        } else {
          append_line(batch, encoder.ids(line));
        }
      };
      // A pair that has no tab, or cannot be cut, is the line's fault.
      if (!o.pair) return encode();
      if (const auto problem = input_error_message(encode)) lines.refuse(number, *problem);
    });
  };
  steps.write = [&](EncodeBatch& batch) {
    if (binary) {
      binary->write(batch.out);
      return;
    }
    session.print(batch.out);
    if (batch.out.capacity() > kMostKept) batch = {};
    if (session.stdout_is_terminal() || !input.ready()) session.flush();
  };
  ordered_work(threads, steps);
  if (binary) binary->commit();
  return lines.finish(session);
}

}  // namespace

void declare_encode(cli::Command& tool) {
  auto o = std::make_shared<EncodeCommand>();
  cli::Command& c = tool.subcommand("encode", "prints the token ids of each input line");
  c.example("tok encode bert-base-uncased/ < text", "one line of ids per line of text");
  c.example("tok encode bert-base-uncased/ --special --jsonl --with text,offsets,tokens < text",
            "JSON records, including [CLS] and [SEP]");
  c.example("tok encode gpt2/ --binary u16 -o train.bin < text",
            "a binary file of ids for nanoGPT");
  c.example("tok encode gpt2/ --to tokens < text", "a token folder for lm-train");
  add_encode(c, *o);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::tok
