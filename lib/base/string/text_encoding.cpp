#include "base/string/text_encoding.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/utf8.hpp"

namespace masque {

namespace {

using namespace std::string_view_literals;

/// Bytes in which NUL bytes count.
constexpr std::size_t kFirstBytes = 64 << 10;
/// The fewest bytes that tell encodings apart: a byte of UTF-16 and UTF-32 may look like a line
/// end.
constexpr std::size_t kLeastBytes = 64;

struct Mark {
  std::string_view bytes;
  std::string_view encoding;  ///< as iconv calls it; empty: UTF-8
};
/// The first match counts: that of UTF-32 begins as that of UTF-16.
constexpr std::array kMarks{Mark{kUtf8Mark, {}}, Mark{"\xFF\xFE\0\0"sv, "UTF-32"sv},
                            Mark{"\0\0\xFE\xFF"sv, "UTF-32"sv}, Mark{"\xFF\xFE"sv, "UTF-16"sv},
                            Mark{"\xFE\xFF"sv, "UTF-16"sv}};

/// An encoding whose byte order is not known.
constexpr std::string_view kAnyOrder = "UTF-16";

[[noreturn]] void refuse_encoding(const std::string& name, std::string_view encoding,
                                  std::string_view how) {
  throw InputError(name, fmt::format("{}{}, expected UTF-8: iconv -f {} -t UTF-8 converts it",
                                     encoding, how, encoding));
}

/// Throws for a mark of another encoding.
void refuse_mark(std::string_view first, const std::string& name) {
  const auto mark =
      std::ranges::find_if(kMarks, [&](const Mark& one) { return first.starts_with(one.bytes); });
  if (mark != kMarks.end() && !mark->encoding.empty()) refuse_encoding(name, mark->encoding, "");
}

bool is_control(char c) { return (c >= 0 && c < ' ' && (c < '\t' || c > '\r')) || c == '\x7F'; }

/// Whether all surrogates of `text`, UTF-16 with the low byte at place `low` of two, are in pairs.
bool pairs_surrogates(std::string_view text, std::size_t low) {
  bool open = false;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int kind = text[i + 1 - low] & 0xFC;
    if ((kind == 0xDC) != open) return false;
    open = kind == 0xD8;
  }
  return true;
}

/// What a text is as UTF-16 of one byte order.
struct WideText {
  bool valid = false;          ///< all surrogates are in pairs, nine units in ten are `usual`
  std::size_t separators = 0;  ///< line ends, spaces and punctuation marks
};

/// Whether a code unit is in a block of common scripts and marks.
bool is_usual_unit(unsigned unit) {
  constexpr std::array<std::pair<unsigned, unsigned>, 13> kBlocks{{{0x9, 0xD},
                                                                   {0x20, 0x7E},
                                                                   {0xA0, 0x6FF},
                                                                   {0x900, 0xDFF},
                                                                   {0xE00, 0xEFF},
                                                                   {0x10A0, 0x11FF},
                                                                   {0x1E00, 0x1EFF},
                                                                   {0x2000, 0x206F},
                                                                   {0x3000, 0x30FF},
                                                                   {0x4E00, 0x9FFF},
                                                                   {0xAC00, 0xD7A3},
                                                                   {0xD800, 0xDFFF},
                                                                   {0xFF00, 0xFFEF}}};
  return std::ranges::any_of(
      kBlocks, [&](const auto& block) { return unit >= block.first && unit <= block.second; });
}

/// `text` with the low byte of each code unit at place `low` of two.
WideText as_wide(std::string_view text, std::size_t low) {
  // None of these is common with its bytes exchanged.
  constexpr std::array<unsigned, 12> kSeparators{0xA,    0xD,    0x20,   0x964,  0x60C,  0x201C,
                                                 0x201D, 0x3001, 0x3002, 0xFF0C, 0xFF1A, 0xFF1F};
  WideText out;
  std::size_t usual = 0;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const unsigned unit = static_cast<unsigned char>(text[i + low]) |
                          static_cast<unsigned>(static_cast<unsigned char>(text[i + 1 - low])) << 8;
    usual += is_usual_unit(unit) ? 1U : 0U;
    out.separators += std::ranges::find(kSeparators, unit) != kSeparators.end() ? 1U : 0U;
  }
  out.valid = usual * 10 >= text.size() / 2 * 9 && pairs_surrogates(text, low);
  return out;
}

/// Which encoding `text` is in, by the places of its NUL bytes and by what stands between words and
/// lines; empty: none.
std::string_view encoding_of(std::string_view text) {
  std::array<std::size_t, 4> nul{};  // by the place in four bytes
  for (std::size_t i = 0; i < text.size(); ++i) nul[i % 4] += text[i] == '\0' ? 1U : 0U;
  const std::size_t all = nul[0] + nul[1] + nul[2] + nul[3];
  if (all == text.size()) return {};
  const auto most = [](std::size_t part, std::size_t whole) { return part * 10 >= whole * 9; };
  // Some characters have a low byte that is NUL, too.
  const auto more = [](std::size_t part, std::size_t whole) { return part * 3 >= whole * 2; };
  if (most(nul[2] + nul[3], text.size() / 2)) return "UTF-32LE";
  if (most(nul[0] + nul[1], text.size() / 2)) return "UTF-32BE";
  const WideText little = as_wide(text, 0);
  const WideText big = as_wide(text, 1);
  if (little.valid && little.separators > 4 * big.separators) return "UTF-16LE";
  if (big.valid && big.separators > 4 * little.separators) return "UTF-16BE";
  // In Chinese a NUL may be the low byte as well as the high one.
  if (all * 4 < text.size()) return little.valid || big.valid ? kAnyOrder : std::string_view();
  if (more(nul[1] + nul[3], all) && pairs_surrogates(text, 0)) return "UTF-16LE";
  if (more(nul[0] + nul[2], all) && pairs_surrogates(text, 1)) return "UTF-16BE";
  return {};
}

}  // namespace

bool mark_is_open(std::string_view first) {
  return std::ranges::any_of(kMarks, [&](const Mark& mark) {
    return first.size() < mark.bytes.size() && mark.bytes.starts_with(first);
  });
}

void EncodingCheck::add(std::string_view bytes) {
  if (done_) return;
  first_ += bytes.substr(0, kFirstBytes - first_.size());
  const bool all = bytes.empty() || first_.size() == kFirstBytes;
  if (all || !mark_is_open(first_)) refuse_mark(first_, name_);
  const std::size_t nul = first_.find('\0');
  if (nul != std::string::npos) {
    // Up to the end of a line, which comes in one piece or in several.
    const std::size_t end = first_.find('\n', std::max(nul, kLeastBytes));
    if (end == std::string::npos && !all) return;
    judge(std::string_view(first_).substr(0, end == std::string::npos ? end : end + 1));
  }
  if (nul == std::string::npos && !all) return;
  done_ = true;
  first_ = {};
}

void EncodingCheck::judge(std::string_view text) const {
  std::string valid;
  const std::uint64_t odd = append_replacing_invalid(text, valid) +
                            static_cast<std::uint64_t>(std::ranges::count_if(text, is_control));
  // UTF-16 of Indian scripts looks like tabs and line ends between letters.
  std::array<std::size_t, 2> low{};
  for (std::size_t i = 0; i < text.size(); ++i)
    low[i % 2] += text[i] >= 0 && text[i] <= ' ' ? 1U : 0U;
  const bool alternates = std::ranges::max(low) * 40 >= text.size() * 17;
  if (odd * 8 < text.size() && !alternates) return;
  if (text.substr(std::min<std::size_t>(text.size(), 257)).starts_with("ustar"))
    throw InputError(name_, "a tar archive, expected a text: extract it first");
  const std::string_view encoding = encoding_of(text);
  if (encoding == kAnyOrder) {
    throw InputError(name_,
                     "UTF-16 without a byte-order mark, expected UTF-8: iconv -f UTF-16LE "
                     "-t UTF-8, or -f UTF-16BE, converts it");
  }
  if (!encoding.empty()) refuse_encoding(name_, encoding, " without a byte-order mark");
  throw InputError(name_, "NUL bytes, expected a text in UTF-8");
}

void refuse_other_encoding(std::string_view first, const std::string& name) {
  EncodingCheck check(name);
  check.add(first);
  check.add({});
}

}  // namespace masque
