#include "base/line_input.hpp"

#include <algorithm>
#include <string_view>

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

bool LineInput::read(LineBatch& batch) {
  batch.first_line = next_line_;
  batch.text.clear();
  batch.text.swap(rest_);
  while (!ended_) {
    const std::size_t before = batch.text.size();
    batch.text.resize(before + kInputBlock);
    const std::size_t count = source_.read(batch.text.data() + before, kInputBlock);
    batch.text.resize(before + count);
    ended_ = count == 0;
    // Only what is new is searched: a long line costs its length once.
    const std::string_view added = std::string_view(batch.text).substr(before);
    if (const std::size_t end = added.rfind('\n'); end != std::string_view::npos) {
      rest_.assign(added.substr(end + 1));
      batch.text.resize(before + end + 1);
      break;
    }
    if (batch.text.size() > max_line_) break;
  }
  check_lengths(batch);
  check_kind(batch.text);
  next_line_ += static_cast<std::uint64_t>(std::count(batch.text.begin(), batch.text.end(), '\n'));
  return !batch.text.empty();
}

void LineInput::check_lengths(LineBatch& batch) {
  if (batch.text.size() <= max_line_) return;
  std::uint64_t line = batch.first_line;
  for (std::size_t begin = 0; begin < batch.text.size(); ++line) {
    const std::size_t end = std::min(batch.text.find('\n', begin), batch.text.size());
    if (end - begin > max_line_) {
      if (begin == 0) {
        throw InputError(
            name_, fmt::format("line {}: more than {} bytes, expected fewer{}", line, max_line_,
                               field_.empty() ? "" : fmt::format(" ({})", field(field_))));
      }
      // The good lines go first; the bad one is found again at the next call.
      rest_.insert(0, batch.text, begin);
      batch.text.resize(begin);
      return;
    }
    begin = end + 1;
  }
}

}  // namespace masque
