// How a normalizer rewrites a text while its alignment follows.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "text/step/aligned_text.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

/// Builds the new form of a text from left to right. The steps are those of the reference's
/// `NormalizedString::transform`: a new character stands for the next old one, or is an addition
/// that shares the place of the old character before it.
class Rewriter {
 public:
  /// Rewrites `text`, which must outlive it and stays as it is until finish().
  explicit Rewriter(AlignedText& text) : text_(text) {
    out_.text.reserve(text.text.size());
    out_.origin.reserve(text.text.size());
  }

  /// Whether no old characters are left.
  bool done() const { return at_ == text_.text.size(); }
  /// The byte at which the next old character begins.
  std::size_t position() const { return at_; }

  /// Writes the character `c`. `change` 0: c replaces the next old character; -n: so, and n old
  /// ones after it are gone; 1: c is an addition. Looks for signals now and then.
  void put(char32_t c, std::int64_t change) {
    looks_.step();
    Span span;
    if (change > 0) {
      span = at_ > 0 ? text_.origin[at_ - 1] : start();
    } else {
      span = done() ? start() : text_.origin[at_];
      drop(1 - change);
    }
    append_utf8(out_.text, c);
    out_.origin.resize(out_.text.size(), span);
  }

  /// The next `count` old characters are gone.
  void drop(std::int64_t count) {
    for (; count > 0 && !done(); --count) at_ += char_bytes(text_.text[at_]);
  }

  /// The next old characters up to byte `end` stay.
  void keep(std::size_t end) {
    out_.text.append(text_.text, at_, end - at_);
    const auto from = text_.origin.begin();
    out_.origin.insert(out_.origin.end(), from + static_cast<std::ptrdiff_t>(at_),
                       from + static_cast<std::ptrdiff_t>(end));
    at_ = end;
  }

  /// The text becomes what was built. Call once, at the end.
  void finish() { text_ = std::move(out_); }

 private:
  Span start() const {
    if (text_.origin.empty()) return {};
    return {text_.origin.front().begin, text_.origin.front().begin};
  }

  AlignedText& text_;
  AlignedText out_;
  std::size_t at_ = 0;
  SparseLooks looks_;
};

/// Puts `content` in front of `text`, if that is not empty; it shares the span of the first
/// character.
inline void prepend(AlignedText& text, std::string_view content) {
  if (text.text.empty()) return;
  const Span first = text.origin.front();
  text.text.insert(0, content);
  text.origin.insert(text.origin.begin(), content.size(), first);
}

/// Keeps the characters of `text` for which `keep`(c) is true.
template <typename Keep>
void filter(AlignedText& text, const Keep& keep) {
  SparseLooks looks;
  std::size_t to = 0;
  for (std::size_t i = 0; i < text.text.size();) {
    looks.step();
    const std::size_t from = i;
    if (!keep(next_char(text.text, i))) continue;
    for (std::size_t k = from; k < i; ++k, ++to) {
      text.text[to] = text.text[k];
      text.origin[to] = text.origin[k];
    }
  }
  text.text.resize(to);
  text.origin.resize(to);
}

/// Throws InputError for a `text` of more than 64 KiB that is more than 64 times as long as what it
/// comes from: a file may have rules that double a text again and again.
inline void check_growth(const AlignedText& text) {
  constexpr std::size_t kSmall = 64 << 10;
  constexpr std::size_t kTimes = 64;
  if (text.text.size() <= kSmall) return;
  const std::size_t original = text.origin.back().end - text.origin.front().begin;
  if (text.text.size() / kTimes > original) {
    throw InputError(fmt::format(
        "the tokenizer's normalizer makes {} bytes from {}, expected at most {} times as many",
        text.text.size(), original, kTimes));
  }
}

}  // namespace masque::text
