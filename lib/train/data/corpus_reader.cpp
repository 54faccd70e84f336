// Texts and records to a corpus: pieces of whole lines are encoded by several threads and joined in
// order; records are taken one after the other.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/os.hpp"
#include "base/input/line_input.hpp"
#include "base/input/text_source.hpp"
#include "base/thread/ordered_work.hpp"
#include "records/record.hpp"
#include "records/record_filter.hpp"
#include "records/token_folder.hpp"
#include "train/data/corpus.hpp"
#include "train/data/line_encoder.hpp"

namespace masque::train {

namespace {

// Records to sequences of a corpus.

// Sums of weights stay finite.
constexpr double kLargestWeight = 1e30;

constexpr std::int32_t kUnknownSegment = -1;

/// One record after the other into a corpus.
class RecordTaker {
 public:
  RecordTaker(const records::TokenTable& tokens, const CorpusOptions& options)
      : tokens_(tokens), options_(options) {}

  void take(records::Record& record) {
    if (record.ids.empty()) return;
    records::number_positions(record, options_.positions);
    if (options_.source) {
      join_source(record);
    } else {
      if (options_.labels && record.original.present && !record.labels.present) join(record);
      check_length(record.size() + (options_.dropped ? record.dropped.size() : 0));
    }
    check_places(record);
    check_labels(record);
    if (options_.dropped) restore(record);
    segments_.assign(record.seg.values.begin(), record.seg.values.end());
    CorpusItem item;
    item.ids = record.ids;
    item.segments = segments_;
    item.positions = record.pos.values;
    item.labels = record.labels.values;
    if (record.has_weights) item.weights = record.weights;
    if (record.mask) item.mask = *record.mask;
    item.line = static_cast<Index>(record.number) + 1;
    corpus_.add(item);
  }

  Corpus finish(const std::string& name) {
    if (corpus_.size() == 0) throw InputError(name, "no record with tokens, expected JSON lines");
    if (options_.labels && !learns_)
      throw InputError(name, "no record has labels, expected some to train on");
    if (restored_.value_or(false) && !learns_)
      throw InputError(name, "no record has dropped tokens, expected some to predict");
    if (options_.labels || restored_.value_or(false)) corpus_.set_labels(kind_);
    if (options_.source) corpus_.set_parts_apart();
    return std::move(corpus_);
  }

 private:
  /// What bart hides as a source, the original as its target: read from left to right, each token
  /// predicted by the row before it.
  void join(records::Record& record) const {
    std::vector<std::int32_t>& target = record.original.values;
    check_ids("original", target);
    if (record.mask || record.pos.present || record.seg.present)
      throw InputError("original without labels cannot be combined with mask, pos or seg");
    // Both begin with the token that begins a text: as in pairs, the target has none.
    const bool begins = !target.empty() && target.front() == record.ids.front() &&
                        tokens_.is_special(target.front());
    if (begins) target.erase(target.begin());
    if (target.empty()) throw InputError("original: no tokens, expected at least one");
    const std::size_t source = record.size();
    append_target(target, record);
    const std::size_t n = record.size();
    std::vector<std::int32_t>& labels = record.labels.make(n);
    std::ranges::fill(labels, records::kNoLabel);
    for (std::size_t i = source; i < n; ++i) labels[i - 1] = record.ids[i];
    record.mask = fmt::format("unilm({},{})", source, n - source);
    record.original.clear();
  }

  /// What an encoder reads and what a decoder predicts as one sequence: ids and original, of which
  /// the latter gets the token in front that begins a target; or source_ids and ids, which have it.
  void join_source(records::Record& record) const {
    if (record.original.present == record.source.present || record.labels.present) {
      throw InputError(
          "expected a record with ids and original (droptoken bart), or with source_ids and ids");
    }
    if (record.mask || record.pos.present || record.seg.present)
      throw InputError("a source and a target cannot be combined with mask, pos or seg");
    std::vector<std::int32_t> target = record.original.values;
    if (record.source.present) {
      const std::vector<std::int32_t>& source = record.source.values;
      check_ids("source_ids", source);
      if (source.empty()) throw InputError("source_ids: no tokens, expected at least one");
      target.assign(record.ids.begin(), record.ids.end());
      if (target.size() < 2) {
        throw InputError(
            "ids: 1 token, expected the one that begins a target and those to predict");
      }
      record.ids.assign(source.begin(), source.end());
    } else {
      if (target.empty()) throw InputError("original: no tokens, expected at least one");
      check_ids("original", target);
      target.insert(target.begin(), model::begin_of_target(*options_.source, target.back()));
    }
    check_length(std::max(record.size(), target.size() - 1));
    append_target(target, record);
    record.original.clear();
    record.source.clear();
  }

  /// Puts `target` as segment 1 after the ids of `record`, which become segment 0.
  static void append_target(std::span<const std::int32_t> target, records::Record& record) {
    const std::size_t source = record.size();
    record.ids.insert(record.ids.end(), target.begin(), target.end());
    std::vector<std::int32_t>& segments = record.seg.make(record.size());
    for (std::size_t i = 0; i < segments.size(); ++i) segments[i] = i < source ? 0 : 1;
  }

  void check_ids(std::string_view name, std::span<const std::int32_t> ids) const {
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= tokens_.size) {
        throw InputError(
            fmt::format("{}: id {}, expected from 0 to {}", name, id, tokens_.size - 1));
      }
    }
  }

  /// Of a record whose dropped tokens are back.
  struct Token {
    std::int32_t position, segment, label;
    TokenId id;
  };

  /// Puts back what was dropped, with labels there.
  void restore(records::Record& record) {
    if (restored_.value_or(record.has_dropped) != record.has_dropped)
      throw InputError("dropped is present only in some records, expected in all or none");
    restored_ = record.has_dropped;
    if (!record.has_dropped) return;
    kind_ = LabelKind::kHidden;
    learns_ = learns_ || !record.dropped.empty();
    std::vector<Token> all;
    for (std::size_t i = 0; i < record.size(); ++i) {
      const std::int32_t segment = record.seg.present ? record.seg.values[i] : 0;
      all.push_back({record.position(i), segment, records::kNoLabel, record.ids[i]});
    }
    for (const auto& [position, id] : record.dropped) {
      if (id < 0 || id >= tokens_.size)
        throw InputError(
            fmt::format("dropped: id {}, expected from 0 to {}", id, tokens_.size - 1));
      check_position("dropped: pos", position);
      all.push_back({position, kUnknownSegment, id, id});
    }
    std::ranges::stable_sort(all, {}, &Token::position);
    const auto same = std::ranges::adjacent_find(all, {}, &Token::position);
    if (same != all.end())
      throw InputError(
          fmt::format("dropped: two tokens at position {}, expected one", same->position));
    // What was dropped has no segment of its own: that of the tokens around it.
    std::int32_t last = kUnknownSegment;
    for (auto token = all.begin(); token != all.end(); ++token) {
      if (token->segment != kUnknownSegment) {
        last = token->segment;
        continue;
      }
      const auto next = std::find_if(
          token, all.end(), [](const Token& one) { return one.segment != kUnknownSegment; });
      const std::int32_t after = next == all.end() ? last : next->segment;
      if (last != kUnknownSegment && last != after)
        throw InputError(
            fmt::format("dropped: position {} is between two segments, expected inside "
                        "one segment",
                        token->position));
      token->segment = last = after;
    }
    take_tokens(all, record);
  }

  static void take_tokens(const std::vector<Token>& all, records::Record& record) {
    const bool segments = record.seg.present;
    bool counted = true;  // as without positions
    record.ids.clear();
    std::vector<std::int32_t>& positions = record.pos.make(0);
    std::vector<std::int32_t>& labels = record.labels.make(0);
    record.seg.values.clear();
    for (const Token& token : all) {
      counted = counted && token.position == std::ssize(positions);
      record.ids.push_back(token.id);
      positions.push_back(token.position);
      labels.push_back(token.label);
      if (segments) record.seg.values.push_back(token.segment);
    }
    if (counted) record.pos.clear();
  }

  void check_length(std::size_t tokens) const {
    if (static_cast<Index>(tokens) > options_.length)
      throw InputError(fmt::format("{} tokens, expected at most {} ({}; tok encode cuts texts)",
                                   tokens, options_.length, field("length")));
  }

  void check_position(std::string_view name, std::int32_t position) const {
    if (position >= 0 && position < options_.length) return;
    throw InputError(fmt::format("{} {}, expected from 0 to {} ({})", name, position,
                                 options_.length - 1, field("length")));
  }

  /// Segments, positions and mask.
  void check_places(const records::Record& record) const {
    for (const std::int32_t segment : record.seg.values) {
      if (segment != 0 && segment != 1)
        throw InputError(fmt::format("seg {}, expected 0 or 1", segment));
    }
    for (const std::int32_t position : record.pos.values) check_position("pos", position);
    if (record.mask) records::bind_record_mask(*record.mask, std::ssize(record.ids));
  }

  void check_labels(const records::Record& record) {
    if (!options_.labels) {
      if (!record.labels.present && !record.has_weights && !record.original.present) return;
      throw InputError(fmt::format("{} in a record, which only {} records can use",
                                   record.labels.present ? "labels"
                                   : record.has_weights  ? "weights"
                                                         : "original",
                                   field("objective")));
    }
    if (!record.labels.present)
      throw InputError(fmt::format(
          "no labels, expected an id to predict for each token, -100 for none{}",
          record.has_dropped
              ? fmt::format(", or {} mae, which predicts dropped tokens", field("objective"))
              : ""));
    const LabelKind kind = record.original.present ? LabelKind::kReplaced : LabelKind::kTokens;
    if (kind_ == LabelKind::kNone) kind_ = kind;
    if (kind != kind_)
      throw InputError(
          fmt::format("labels {} original, but other records differ; expected records of one kind",
                      kind == LabelKind::kReplaced ? "with" : "without"));
    for (std::size_t i = 0; i < record.size(); ++i) {
      const std::int32_t label = record.labels.values[i];
      if (label == records::kNoLabel) continue;
      learns_ = true;
      // The filter has looked at those that are ids.
      if (kind == LabelKind::kReplaced && label != 0 && label != 1)
        throw InputError(
            fmt::format("labels: {} at token {}, expected from 0 to 1, or -100", label, i));
    }
    for (const double weight : record.weights) {
      if (!(weight >= 0)) throw InputError(fmt::format("weights: {}, expected at least 0", weight));
      if (weight > kLargestWeight)
        throw InputError(fmt::format("weights: {}, expected at most {}", weight, kLargestWeight));
    }
  }

  const records::TokenTable& tokens_;
  const CorpusOptions& options_;
  Corpus corpus_;
  std::vector<std::uint8_t> segments_;
  LabelKind kind_ = LabelKind::kNone;
  bool learns_ = false;
  std::optional<bool> restored_;  ///< whether records have what was dropped
};

/// Reads `path` as read_corpus(path, tokenizer, options) does for CorpusFormat::kRecords; messages
/// name the file `name` and the line. `tokenizer` encodes records that have a text. Throws
/// InputError for a file without a record or without anything to predict, a line that is no record,
/// ids and positions out of range, records that are longer than `options.length`, labels that are
/// missing or not of one kind, and fields that the records of this training cannot have.
Corpus read_records(const std::string& path, const std::string& name,
                    const text::Tokenizer& tokenizer, const CorpusOptions& options) {
  records::RecordFilter filter{.input = path, .format = records::LineFormat::kJson};
  text::EncodeOptions with_template;
  with_template.special = true;
  filter.make_encoder = [&]() -> records::EncodeFunction {
    const auto encoder = std::make_shared<text::IdEncoder>(tokenizer.id_encoder(with_template));
    return
        [encoder](std::string_view line, std::vector<TokenId>& ids) { encoder->encode(line, ids); };
  };
  filter.threads = options.threads;
  filter.strict = true;
  filter.tokens = token_table(tokenizer);
  filter.sink = [](std::string_view) {};
  RecordTaker taker(filter.tokens, options);
  const records::FilterResult result = records::walk_records(
      filter, [&](records::Record& record, std::string&) { taker.take(record); });
  Corpus corpus = taker.finish(name);
  corpus.add_surrogates(result.surrogates);
  return corpus;
}

// Lines and pairs to sequences.

/// Bytes of a line: of a file, of a stream or what is unpacked, of a device, which may have no end.
constexpr std::uint64_t kLongestLine = std::uint64_t{1} << 30;
constexpr std::uint64_t kLongestStreamLine = std::uint64_t{64} << 20;
constexpr std::uint64_t kLongestDeviceLine = std::uint64_t{1} << 20;
/// Tokens that are kept in memory: 8 GiB.
constexpr Index kMostTokens = Index{1} << 31;

/// Lines of a text, and what they become.
struct TextPiece {
  LineBatch lines;
  EncodedLines encoded;
};

/// What shows that a file was changed while it was read.
struct FileState {
  bool file;
  off_t size;
  timespec changed;

  explicit FileState(const InputStream& stream) {
    struct stat status {};
    if (os::stat_fd(stream.descriptor(), status) != 0)
      throw system_error(stream.name(), "cannot be read", errno);
    file = S_ISREG(status.st_mode);
    size = file ? status.st_size : 0;
    changed = file ? status.st_mtim : timespec{};
  }
  bool operator==(const FileState& other) const {
    return size == other.size && changed.tv_sec == other.changed.tv_sec &&
           changed.tv_nsec == other.changed.tv_nsec;
  }
};

/// What a file's lines are read into.
struct LineSink {
  /// Called in order; returns how many tokens there are so far.
  std::function<Index(const EncodedLines& piece, Index first_line)> add;
  RepairedLines repaired, surrogates;
  CutText cut;
  Index left_out = 0;
};

/// Encodes all lines of the file or stream `path`.
void read_lines(const std::string& path, const text::Tokenizer& tokenizer, const LineEncoder& lines,
                const CorpusOptions& options, LineSink& sink) {
  const InputStream stream(path);
  const FileState before(stream);
  const bool packed = packing_of_file(stream.descriptor(), stream.name()) != Packing::kNone;
  LineInput input(stream.descriptor(), stream.name(),
                  before.file && !packed ? kLongestLine
                  : stream.is_device()   ? kLongestDeviceLine
                                         : kLongestStreamLine,
                  {});
  if (options.format != CorpusFormat::kPairs && !options.field && !options.json_is_text)
    input.refuse_json(options.json_advice);
  const int threads = options.threads > 0 ? options.threads : default_threads();
  std::vector<std::unique_ptr<text::IdEncoder>> encoders(static_cast<std::size_t>(threads));
  std::uint64_t line = 0, bytes = 0;
  OrderedSteps<TextPiece> steps;
  steps.read = [&](TextPiece& piece) {
    const bool found = input.read(piece.lines);
    bytes += piece.lines.text.size();
    stream.refuse_endless(bytes);
    return found;
  };
  steps.ready = [&] { return input.ready(); };
  steps.work = [&](TextPiece& piece, int worker) {
    auto& encoder = encoders[static_cast<std::size_t>(worker)];
    if (!encoder) encoder = std::make_unique<text::IdEncoder>(tokenizer.id_encoder({}));
    piece.encoded.text = piece.lines.text;
    lines.encode(*encoder, piece.encoded);
  };
  steps.write = [&](TextPiece& piece) {
    const EncodedLines& encoded = piece.encoded;
    const auto first = static_cast<Index>(line);
    line += encoded.lines;
    sink.repaired.add(encoded.repaired);
    sink.surrogates.add(encoded.surrogates);
    sink.cut.add(encoded.cut);
    sink.left_out += encoded.left_out;
    if (!encoded.problem.empty())
      throw InputError(stream.name(), fmt::format("line {}: {}", line, encoded.problem));
    if (sink.add(encoded, first) <= kMostTokens) return;
    throw InputError(
        stream.name(),
        fmt::format("more than {} tokens, too many to keep in memory; lines without pairs can be "
                    "trained on from the disk: tok encode makes a token folder of them",
                    kMostTokens));
  };
  ordered_work(threads, steps);
  if (!(FileState(stream) == before))
    throw InputError(stream.name(),
                     "changed while it was read, expected a file that stays as it is");
}

Corpus read_pairs(const std::string& path, const std::string& name,
                  const text::Tokenizer& tokenizer, const CorpusOptions& options) {
  const LineEncoder lines(tokenizer, options);
  Corpus corpus;
  LineSink sink;
  sink.add = [&](const EncodedLines& piece, Index first_line) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < piece.lengths.size(); ++i) {
      const auto count = static_cast<std::size_t>(piece.lengths[i]);
      CorpusItem item;
      item.ids = std::span(piece.ids).subspan(at, count);
      if (!piece.segments.empty()) item.segments = std::span(piece.segments).subspan(at, count);
      if (!piece.labels.empty()) item.labels = std::span(piece.labels).subspan(at, count);
      item.line = first_line + piece.places[i];
      corpus.add(item);
      at += count;
    }
    return corpus.tokens();
  };
  read_lines(path, tokenizer, lines, options, sink);
  corpus.add_repaired(sink.repaired);
  corpus.add_cut(sink.cut);
  corpus.set_left_out(sink.left_out);
  if (options.corrections) corpus.set_labels(LabelKind::kTokens);
  if (options.source) corpus.set_parts_apart();
  if (corpus.size() > 0) return corpus;
  if (sink.left_out > 0) {
    throw InputError(name, fmt::format("all {} pairs have texts with different numbers of tokens, "
                                       "expected pairs with equal numbers",
                                       sink.left_out));
  }
  if (sink.cut.sequences > 0) {
    throw InputError(name, evaluate::all_too_long("pairs", options.length));
  }
  throw InputError(name, "no pairs, expected lines of source, tab and target");
}

/// The tokens of a token folder, which is read once to see that it is whole, or of a file of ids;
/// nullptr for any other path.
std::shared_ptr<const records::TokenSource> open_tokens(const std::string& path,
                                                        const text::Tokenizer& tokenizer) {
  if (records::is_token_file(path))
    return records::open_token_file(path, static_cast<Index>(tokenizer.size()));
  if (path == "-" || !is_folder(path)) return nullptr;
  auto folder = records::TokenFolder::open(path);
  folder->info().check_tokenizer(path, tokenizer);
  if (const auto damage = folder->find_damage())
    throw InputError(fmt::format("{}; see \"tok check {}\"", *damage, escape(path)));
  return folder;
}

}  // namespace

TextTokens read_text_tokens(const std::string& path, const text::Tokenizer& tokenizer,
                            const CorpusOptions& options) {
  if (auto tokens = open_tokens(path, tokenizer)) return {std::move(tokens), path, {}, {}, {}};
  // Of the ids of a line alone, nothing depends on the length.
  CorpusOptions any;
  any.length = std::numeric_limits<Index>::max();
  any.field = options.field;
  TextTokens out;
  out.source = input_name(path);
  const auto tokens = std::make_shared<records::TokenList>();
  LineSink sink;
  sink.add = [&](const EncodedLines& piece, Index first_line) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < piece.lengths.size(); ++i) {
      const auto count = static_cast<std::size_t>(piece.lengths[i]);
      tokens->add(std::span(piece.ids).subspan(at, count));
      out.lines.push_back(first_line + piece.places[i]);
      at += count;
    }
    return tokens->tokens();
  };
  read_lines(path, tokenizer, LineEncoder(tokenizer, any), options, sink);
  out.repaired = sink.repaired;
  out.surrogates = sink.surrogates;
  out.tokens = tokens;
  return out;
}

Corpus cut_corpus(const TextTokens& text, const text::Tokenizer& tokenizer,
                  const CorpusOptions& options) {
  const LineEncoder lines(tokenizer, options);
  if (options.format == CorpusFormat::kLines && !text.tokens->has_boundaries()) {
    throw InputError(
        text.source,
        fmt::format("ids without the boundaries of lines, expected {} blocks", field("format")));
  }
  const CutSequences cut(text.tokens, lines.shape());
  const auto too_long = cut.first_too_long();
  if (too_long && options.policy == evaluate::LengthPolicy::Kind::kError) {
    const auto at = static_cast<std::size_t>(*too_long);
    throw InputError(
        text.source,
        fmt::format("line {}: {}", text.lines.empty() ? *too_long + 1 : text.lines[at],
                    evaluate::too_long(text.tokens->length(*too_long) + lines.shape().around(),
                                       options.length)));
  }
  if (cut.size() == 0 && too_long) {
    throw InputError(text.source, evaluate::all_too_long("lines", options.length));
  }
  if (cut.size() == 0) {
    throw InputError(text.source,
                     options.format == CorpusFormat::kBlocks
                         ? fmt::format("{} tokens of text, expected at least {} for one sequence "
                                       "of {}",
                                       cut.text_tokens(), lines.shape().room, options.length)
                         : "no tokens, expected a text");
  }
  std::vector<Index> numbers;
  if (options.format == CorpusFormat::kLines && !text.lines.empty()) {
    numbers.reserve(static_cast<std::size_t>(cut.size()));
    for (Index i = 0; i < cut.size(); ++i)
      numbers.push_back(text.lines[static_cast<std::size_t>(cut.line(i))]);
  }
  Corpus corpus(cut, std::move(numbers));
  corpus.set_source(text.source);
  corpus.add_repaired(text.repaired);
  corpus.add_surrogates(text.surrogates);
  corpus.set_begin_token(lines.begin());
  return corpus;
}

Corpus read_corpus(const std::string& path, const text::Tokenizer& tokenizer,
                   const CorpusOptions& options) {
  const std::string name = input_name(path);
  if (options.field && options.format != CorpusFormat::kLines &&
      options.format != CorpusFormat::kBlocks) {
    throw UsageError(
        fmt::format("{}: only for {} lines or blocks", field("field"), field("format")));
  }
  if (options.format == CorpusFormat::kLines || options.format == CorpusFormat::kBlocks) {
    const LineEncoder checked(tokenizer, options);  // before long work
    return cut_corpus(read_text_tokens(path, tokenizer, options), tokenizer, options);
  }
  if (path != "-" && (is_folder(path) || records::is_token_file(path))) {
    throw UsageError(
        fmt::format("{}: {} holds tokens, expected lines or blocks", field("format"), path));
  }
  Corpus corpus = options.format == CorpusFormat::kRecords
                      ? read_records(path, name, tokenizer, options)
                      : read_pairs(path, name, tokenizer, options);
  corpus.set_source(name);
  return corpus;
}

}  // namespace masque::train
