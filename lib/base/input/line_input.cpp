#include "base/input/line_input.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque {

namespace {

constexpr std::size_t kInputBlock = 1 << 18;

}  // namespace

LineInput::LineInput(int fd, std::string name, std::uint64_t max_line, std::string field)
    : source_(fd, name), name_(std::move(name)), max_line_(max_line), field_(std::move(field)) {}

void LineInput::cut(const Shard& shard) { next_line_ += source_.cut(shard); }

void LineInput::refuse_json(std::string advice) {
  json_.emplace();
  advice_ = std::move(advice);
}

bool LineInput::ready() const { return ended_ || source_.ready(); }

/// Throws for JSON where text is meant.
void LineInput::check_kind(std::string_view lines) {
  if (!json_) return;
  // What a part of a file is, the begin of the file shows.
  if (!begun_) json_->add(source_.begin_of_file());
  begun_ = true;
  if (!json_->add(lines)) return;
  throw InputError(name_, fmt::format("{}, expected a text: {}", json_->kind(), advice_));
}

void LineInput::leave_out_long(
    std::function<void(std::uint64_t line, const std::string& problem)> tell) {
  tell_ = std::move(tell);
}

bool LineInput::read(LineBatch& batch) {
  do {
    fill(batch);
  } while (drop_long(batch));
  check_kind(batch.text);
  next_line_ += static_cast<std::uint64_t>(std::count(batch.text.begin(), batch.text.end(), '\n'));
  return !batch.text.empty();
}

/// Whole lines, from next_line_ on; without a line end if the line is too long.
void LineInput::fill(LineBatch& batch) {
  batch.first_line = next_line_;
  batch.text.clear();
  batch.text.swap(rest_);
  // Only what is new is searched: a long line costs its length once.
  for (std::size_t searched = 0;;) {
    const std::string_view added = std::string_view(batch.text).substr(searched);
    if (const std::size_t end = added.rfind('\n'); end != std::string_view::npos) {
      rest_.assign(added.substr(end + 1));
      batch.text.resize(searched + end + 1);
      return;
    }
    if (ended_ || batch.text.size() > max_line_) return;
    searched = batch.text.size();
    batch.text.resize(searched + kInputBlock);
    const std::size_t count = source_.read(batch.text.data() + searched, kInputBlock);
    batch.text.resize(searched + count);
    ended_ = count == 0;
  }
}

/// Cuts `batch` before the first line that is too long. If that is the first of all, it is refused,
/// or left out: true, and nothing of the batch counts.
bool LineInput::drop_long(LineBatch& batch) {
  if (batch.text.size() <= max_line_) return false;
  std::uint64_t line = batch.first_line;
  for (std::size_t begin = 0; begin < batch.text.size(); ++line) {
    const std::size_t end = std::min(batch.text.find('\n', begin), batch.text.size());
    if (end - begin <= max_line_) {
      begin = end + 1;
      continue;
    }
    if (begin > 0) {
      // The good lines go first; the bad one is found again at the next call.
      rest_.insert(0, batch.text, begin);
      batch.text.resize(begin);
      return false;
    }
    const std::string problem =
        fmt::format("more than {} bytes, expected fewer{}", max_line_,
                    field_.empty() ? "" : fmt::format(" ({})", field(field_)));
    if (!tell_) throw InputError(name_, fmt::format("line {}: {}", line, problem));
    tell_(line, problem);
    ++next_line_;
    if (end < batch.text.size()) {
      rest_.insert(0, batch.text, end + 1);
    } else {
      skip_to_line_end();
    }
    return true;
  }
  return false;
}

/// Reads on to what follows the next line end.
void LineInput::skip_to_line_end() {
  std::string block;
  while (!ended_) {
    block.resize(kInputBlock);
    block.resize(source_.read(block.data(), kInputBlock));
    ended_ = block.empty();
    const std::size_t end = block.find('\n');
    if (end == std::string::npos) continue;
    rest_.assign(block, end + 1);
    return;
  }
}

}  // namespace masque
