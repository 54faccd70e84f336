#include "base/input/line_filter.hpp"

#include <algorithm>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/input/text_source.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "base/thread/shortage.hpp"

namespace masque {

namespace {

// Cut by bytes of the input alone: the same pieces for any number of threads.
constexpr std::size_t kPiece = 256 << 10;

/// A stream, or a shard of it.
class Input {
 public:
  Input(const std::string& path, const LineFilter& filter) : name_(path), given_(filter.read) {
    if (given_) return;
    stream_.emplace(path);
    name_ = stream_->name();
    source_.emplace(stream_->descriptor(), name_);
  }

  const std::string& name() const { return name_; }

  /// Up to `size` bytes; 0 at the end.
  std::size_t read(char* out, std::size_t size) {
    return given_ ? given_(out, size) : source_->read(out, size);
  }

  /// Limits reading to a shard, and returns how many lines stand before it.
  std::uint64_t cut(const Shard& shard) {
    MASQUE_CHECK(source_.has_value());
    return source_->cut(shard);
  }

 private:
  std::string name_;
  std::function<std::size_t(char* out, std::size_t size)> given_;
  std::optional<InputStream> stream_;
  std::optional<TextSource> source_;  ///< of the stream
};

/// Collects bytes, and gives them away in pieces of whole lines.
class Pieces {
 public:
  Pieces(Input& input, const LineFilter& filter)
      : input_(input),
        filter_(filter),
        line_(filter.first_line + (filter.shard ? input.cut(*filter.shard) : 0)),
        first_(line_) {}

  /// The next pieces, at most `count`; none at the end. Valid until the next call.
  std::vector<LinePiece> next(std::size_t count) {
    buffer_.erase(0, used_);
    used_ = 0;
    std::vector<LinePiece> pieces;
    while (pieces.size() < count) {
      const std::size_t size = before_long_line(piece_size());
      if (size == 0) break;
      pieces.push_back({std::string_view(), line_});
      sizes_.push_back(size);
      const std::string_view text = std::string_view(buffer_).substr(used_, size);
      line_ += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
      if (text.back() != '\n') ++line_;
      used_ += size;
    }
    // The buffer no longer moves: now the views can be set.
    buffer_.reserve(buffer_.size() + kLinePadding);
    std::size_t at = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].text = std::string_view(buffer_).substr(at, sizes_[i]);
      at += sizes_[i];
    }
    sizes_.clear();
    return pieces;
  }

  std::uint64_t lines() const { return line_ - first_; }

  /// To be called at the end.
  void check_length() const {
    if (!too_long_) return;
    throw InputError(input_.name(), fmt::format("line {}: more than {} bytes, expected fewer ({})",
                                                line_ + 1, filter_.max_line, field("max_line")));
  }

 private:
  /// Up to the last line feed within kPiece bytes, or the first one after them; 0 at the end.
  std::size_t piece_size() {
    if (too_long_) return 0;
    fill(used_ + kPiece);
    const std::size_t rest = buffer_.size() - used_;
    if (rest == 0) return 0;
    if (rest <= kPiece && ended_) return rest;
    const std::size_t last = buffer_.rfind('\n', used_ + kPiece - 1);
    if (last != std::string::npos && last >= used_) return last + 1 - used_;
    std::size_t searched = kPiece;
    while (true) {
      const std::size_t found = buffer_.find('\n', used_ + searched);
      const std::size_t end = found == std::string::npos ? buffer_.size() : found;
      if (end - used_ > filter_.max_line) {
        too_long_ = true;
        return 0;
      }
      if (found != std::string::npos) return found + 1 - used_;
      if (ended_) return end - used_;
      searched = end - used_;
      fill(buffer_.size() + kPiece);
    }
  }

  /// The bytes of the next piece's first `size` that stand before a line beyond max_line.
  std::size_t before_long_line(std::size_t size) {
    if (filter_.max_line >= kPiece) return size;  // piece_size() has looked at longer lines
    const std::string_view text = std::string_view(buffer_).substr(used_, size);
    for (std::size_t begin = 0; begin < size;) {
      const std::size_t end = std::min(text.find('\n', begin), size);
      if (end - begin > filter_.max_line) {
        too_long_ = true;
        return begin;
      }
      begin = end + 1;
    }
    return size;
  }

  /// Reads until the buffer holds `size` bytes or the input ends.
  void fill(std::size_t size) {
    while (!ended_ && buffer_.size() < size) {
      const std::size_t before = buffer_.size();
      buffer_.resize(before + std::max<std::size_t>(size - before, 1 << 16));
      const std::size_t count = input_.read(buffer_.data() + before, buffer_.size() - before);
      buffer_.resize(before + count);
      ended_ = count == 0;
    }
  }

  Input& input_;
  const LineFilter& filter_;
  std::string buffer_;
  std::size_t used_ = 0;
  std::vector<std::size_t> sizes_;
  std::uint64_t line_;
  std::uint64_t first_;
  bool ended_ = false;
  bool too_long_ = false;
};

}  // namespace

std::uint64_t filter_lines(const std::string& path, const LineFilter& filter) {
  Input input(path, filter);
  Pieces source(input, filter);
  const int threads = filter.threads > 0 ? filter.threads : default_threads();
  // A few pieces for each thread: threads start seldom, and pieces of unequal cost even out.
  const std::size_t batch = threads == 1 ? 1 : static_cast<std::size_t>(threads) * 8;
  std::vector<std::string> outputs(batch);
  std::vector<std::exception_ptr> errors(batch);
  for (bool first = true;; first = false) {
    throw_if_interrupted();
    const std::vector<LinePiece> pieces = source.next(batch);
    if (pieces.empty()) break;
    if (first && filter.start) filter.start(pieces.front());
    for (std::size_t i = 0; i < pieces.size(); ++i) outputs[i].clear();
    parallel_for(static_cast<Index>(pieces.size()), threads, [&](Index i) {
      const auto at = static_cast<std::size_t>(i);
      errors[at] = caught([&] { filter.work(pieces[at], outputs[at]); });
    });
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (!is_unfinished(errors[i])) filter.sink(outputs[i]);
      if (errors[i]) std::rethrow_exception(errors[i]);
    }
  }
  source.check_length();
  return source.lines();
}

}  // namespace masque
