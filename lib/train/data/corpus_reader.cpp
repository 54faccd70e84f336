// Texts to a corpus: pieces of whole lines are encoded by several threads and joined in order.
#include <cerrno>
#include <functional>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/line_input.hpp"
#include "base/ordered_work.hpp"
#include "base/os.hpp"
#include "base/text_source.hpp"
#include "records/token_folder.hpp"
#include "train/data/corpus.hpp"
#include "train/data/corpus_records.hpp"
#include "train/data/line_encoder.hpp"

namespace masque::train {

namespace {

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
  if (corpus.size() > 0) return corpus;
  if (sink.left_out > 0) {
    throw InputError(name, fmt::format("all {} pairs have texts with different numbers of tokens, "
                                       "expected pairs with equal numbers",
                                       sink.left_out));
  }
  throw InputError(name, "no pairs, expected lines of source, tab and target");
}

}  // namespace

namespace {

/// The tokens of a token folder or a file of ids; nullptr for any other path.
std::shared_ptr<const records::TokenSource> open_tokens(const std::string& path,
                                                        const text::Tokenizer& tokenizer) {
  if (records::is_token_file(path))
    return records::open_token_file(path, static_cast<Index>(tokenizer.size()));
  if (path == "-" || !is_folder(path)) return nullptr;
  auto folder = records::TokenFolder::open(path);
  folder->info().check_tokenizer(path, tokenizer);
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
  if (cut.size() == 0) {
    throw InputError(text.source,
                     options.format == CorpusFormat::kBlocks
                         ? fmt::format("{} tokens of text, expected at least {} for one sequence "
                                       "of {}",
                                       cut.text_tokens(), lines.shape().room, options.length)
                         : "no tokens, expected a text");
  }
  Corpus corpus(cut, options.format == CorpusFormat::kLines ? text.lines : std::vector<Index>());
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
