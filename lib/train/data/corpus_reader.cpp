// Files to a corpus: pieces of whole lines are encoded by several threads and joined in order.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/line_filter.hpp"
#include "base/mapped_file.hpp"
#include "base/ordered_work.hpp"
#include "train/data/corpus.hpp"
#include "train/data/corpus_records.hpp"
#include "train/data/line_encoder.hpp"

namespace masque::train {

namespace {

constexpr std::uint64_t kLongestStream = std::uint64_t{4} << 30;  // files are mapped
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

/// Cuts a stream of ids into sequences between the tokens of a template.
class BlockCutter {
 public:
  BlockCutter(const LineEncoder& lines, Corpus& corpus) : lines_(lines), corpus_(corpus) {}

  void add(std::span<const TokenId> ids) {
    tokens_ += ids.size();
    open_.insert(open_.end(), ids.begin(), ids.end());
    const auto room = static_cast<std::size_t>(lines_.room());
    std::size_t at = 0;
    for (; open_.size() - at >= room; at += room) {
      block_ = lines_.around().before;
      const auto begin = open_.begin() + static_cast<std::ptrdiff_t>(at);
      block_.insert(block_.end(), begin, begin + lines_.room());
      block_.insert(block_.end(), lines_.around().after.begin(), lines_.around().after.end());
      corpus_.add(block_);
    }
    open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::uint64_t tokens() const { return tokens_; }

 private:
  const LineEncoder& lines_;
  Corpus& corpus_;
  std::vector<TokenId> open_;
  std::vector<TokenId> block_;
  std::uint64_t tokens_ = 0;
};

/// The next whole lines of a text.
std::string_view take_piece(std::string_view& rest) {
  std::size_t end = rest.size();
  if (end > kPieceBytes) end = std::min(end, rest.find('\n', kPieceBytes - 1) + 1);
  if (end == 0) end = rest.size();  // no line feed after it
  const std::string_view piece = rest.substr(0, end);
  rest.remove_prefix(end);
  return piece;
}

/// A file's text, and what holds it.
struct TextFile {
  std::shared_ptr<const MappedFile> mapped;
  std::string read;

  explicit TextFile(const std::string& path) {
    if (path == "-" || is_stream(path)) {
      read = read_text(path, kLongestStream);
    } else {
      mapped = MappedFile::map(InputFile::open(path));
      refuse_other_kind(text(), path);
    }
  }
  std::string_view text() const {
    if (!mapped) return read;
    return {reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()};
  }
};

Corpus read_lines(const std::string& path, const std::string& name,
                  const text::Tokenizer& tokenizer, const CorpusOptions& options) {
  const LineEncoder lines(tokenizer, options);
  const TextFile file(path);
  std::string_view rest = file.text();
  const int threads = options.threads > 0 ? options.threads : default_threads();
  std::vector<std::unique_ptr<text::IdEncoder>> encoders(static_cast<std::size_t>(threads));
  Corpus corpus;
  BlockCutter blocks(lines, corpus);
  std::uint64_t line = 0;
  OrderedSteps<EncodedLines> steps;
  steps.read = [&](EncodedLines& piece) {
    if (rest.empty()) return false;
    piece.text = take_piece(rest);
    return true;
  };
  steps.work = [&](EncodedLines& piece, int worker) {
    auto& encoder = encoders[static_cast<std::size_t>(worker)];
    if (!encoder) encoder = std::make_unique<text::IdEncoder>(tokenizer.id_encoder({}));
    lines.encode(*encoder, piece);
  };
  steps.write = [&](EncodedLines& piece) {
    line += piece.lines;
    corpus.add_repaired(piece.repaired);
    corpus.set_left_out(corpus.left_out() + piece.left_out);
    if (!piece.problem.empty()) {
      throw InputError(name, fmt::format("line {}: {}", line, piece.problem));
    }
    if (options.format == CorpusFormat::kBlocks) {
      // The separator in front of the first line.
      const bool cut = blocks.tokens() == 0 && lines.separates() && !piece.ids.empty();
      return blocks.add(std::span<const TokenId>(piece.ids).subspan(cut ? 1 : 0));
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < piece.lengths.size(); ++i) {
      const auto count = static_cast<std::size_t>(piece.lengths[i]);
      CorpusItem item;
      item.ids = std::span<const TokenId>(piece.ids).subspan(at, count);
      if (!piece.segments.empty())
        item.segments = std::span<const std::uint8_t>(piece.segments).subspan(at, count);
      if (!piece.labels.empty())
        item.labels = std::span<const std::int32_t>(piece.labels).subspan(at, count);
      item.line = static_cast<Index>(line - piece.lines) + piece.places[i];
      corpus.add(item);
      at += count;
    }
  };
  ordered_work(threads, steps);
  if (options.corrections) corpus.set_labels(LabelKind::kTokens);
  corpus.set_begin_token(lines.begin());
  if (corpus.size() > 0) return corpus;
  if (corpus.left_out() > 0) {
    throw InputError(name, fmt::format("all {} pairs have texts with different numbers of tokens, "
                                       "expected pairs with equal numbers",
                                       corpus.left_out()));
  }
  if (options.format == CorpusFormat::kBlocks) {
    throw InputError(name,
                     fmt::format("{} tokens of text, expected at least {} for one sequence of {}",
                                 blocks.tokens(), lines.room(), options.length));
  }
  throw InputError(name, options.format == CorpusFormat::kPairs
                             ? "no pairs, expected lines of source, tab and target"
                             : "no tokens, expected a text");
}

}  // namespace

Corpus read_corpus(const std::string& path, const text::Tokenizer& tokenizer,
                   const CorpusOptions& options) {
  const std::string name = input_name(path);
  Corpus corpus = options.format == CorpusFormat::kRecords
                      ? read_records(path, name, tokenizer, options)
                      : read_lines(path, name, tokenizer, options);
  corpus.set_source(name);
  return corpus;
}

}  // namespace masque::train
