#include "text/step/bert.hpp"

#include <algorithm>
#include <array>

#include "base/thread/interrupt.hpp"
#include "text/step/normal_form.hpp"
#include "text/step/rewriter.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

/// Rewrites the characters that change(c) is true of by write(rewriter, c); the others stay.
template <typename Changes, typename Write>
void rewrite(AlignedText& text, const Changes& changes, const Write& write) {
  const std::string_view old = text.text;
  Rewriter rewriter(text);
  bool changed = false;
  SparseLooks looks;
  for (std::size_t i = 0; i < old.size();) {
    looks.step();
    const std::size_t begin = i;
    const char32_t c = next_char(old, i);
    if (!changes(c)) continue;
    rewriter.keep(begin);
    write(rewriter, c);
    changed = true;
  }
  if (!changed) return;
  rewriter.keep(old.size());
  rewriter.finish();
}

}  // namespace

void lower(AlignedText& text) {
  rewrite(
      text, [](char32_t c) { return !lower_case(c).empty(); },
      [](Rewriter& rewriter, char32_t c) {
        const std::u32string_view parts = lower_case(c);
        for (std::size_t i = 0; i < parts.size(); ++i) rewriter.put(parts[i], i == 0 ? 0 : 1);
      });
}

void bert_normalize(AlignedText& text, const BertOptions& options) {
  if (options.clean_text) {
    filter(text, [](char32_t c) { return !is(c, kBertRemoved); });
    rewrite(
        text, [](char32_t c) { return is(c, kBertSpace); },
        [](Rewriter& rewriter, char32_t) { rewriter.put(U' ', 0); });
  }
  if (options.handle_chinese_chars) {
    rewrite(
        text, [](char32_t c) { return is(c, kChinese); },
        [](Rewriter& rewriter, char32_t c) {
          rewriter.put(U' ', 0);
          rewriter.put(c, 1);
          rewriter.put(U' ', 1);
        });
  }
  if (options.strip_accents) {
    normalize(text, NormalForm::kNfd);
    filter(text, [](char32_t c) { return !is(c, kBertMark); });
  }
  if (options.lowercase) lower(text);
}

namespace {

/// What a byte does. Bits 0 and 1 say whether a word ends after it: before a byte that breaks (bit
/// 0), before one that does not (bit 1). So kBlank has none, a letter the first, punctuation both.
enum Action : std::uint8_t {
  kBlank = 0,
  kInWord = 1 | 4,
  kPunctuated = 3 | 4,
  kSlow = 8,  ///< deleted, or no ASCII
};
constexpr std::uint8_t kWritten = 2;  // the position of the bit that letters and punctuation have

struct ByteTable {
  std::array<std::uint8_t, 256> action{};
  std::array<std::uint8_t, 256> goes_on{};  ///< 0 if the byte breaks a word, else 1
  std::array<char, 256> copy{};
};

ByteTable make_table(bool clean_text, bool lowercase) {
  ByteTable table;
  for (unsigned byte = 0; byte < 256; ++byte) {
    table.copy[byte] = static_cast<char>(byte);
    table.action[byte] = kSlow;
    table.goes_on[byte] = 1;
    if (byte >= 0x80) continue;
    if (lowercase && byte >= 'A' && byte <= 'Z') {
      table.copy[byte] = static_cast<char>(byte - 'A' + 'a');
    }
    const CharProperties& p = properties(byte);
    if (clean_text && p.has(kBertRemoved)) continue;
    const bool space = p.has(kWhiteSpace) || (clean_text && p.has(kBertSpace));
    table.action[byte] = space ? kBlank : p.has(kPunctuation) ? kPunctuated : kInWord;
    table.goes_on[byte] = table.action[byte] == kInWord ? 1 : 0;
  }
  return table;
}

const ByteTable& table_for(const BertOptions& options) {
  static const std::array<ByteTable, 4> kTables{make_table(false, false), make_table(true, false),
                                                make_table(false, true), make_table(true, true)};
  return kTables[(options.clean_text ? 1U : 0U) + (options.lowercase ? 2U : 0U)];
}

class WordWriter {
 public:
  WordWriter(std::string_view text, const BertOptions& options, std::string& words,
             std::vector<std::uint32_t>& ends)
      : text_(text), options_(options), table_(table_for(options)), words_(words), ends_(ends) {}

  void write() {
    ensure(text_.size());
    std::size_t i = 0;
    while (i < text_.size()) {
      if (static_cast<unsigned char>(text_[i]) < 0x80) {
        i = write_ascii(i);
      } else {
        i = write_wide(i);
      }
    }
    flush_marks();
    end_word();
    words_.resize(size_);
    ends_.resize(count_);
  }

 private:
  /// More than one character can become, in bytes and in words.
  static constexpr std::size_t kSlack = 64;
  static constexpr std::size_t kBlock = 16;

  /// Ensures room for `left` bytes and one more character's result.
  void ensure(std::size_t left) {
    const std::size_t need = size_ + left + kSlack;
    if (need > words_.size()) words_.resize(std::max(need, words_.size() + words_.size() / 2));
    ensure_ends();
  }

  void ensure_ends() {
    if (count_ + kSlack > ends_.size())
      ends_.resize(count_ + kSlack + text_.size() / 4 + count_ / 2);
  }

  void end_word() {
    if (size_ == (count_ == 0 ? 0 : ends_[count_ - 1])) return;
    ends_[count_++] = static_cast<std::uint32_t>(size_);
  }

  /// Bytes of ASCII from i on, one at least; returns where they end.
  std::size_t write_ascii(std::size_t i) {
    flush_marks();
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text_[k]); };
    if (table_.goes_on[byte(i)] == 0) {
      ensure_ends();
      end_word();
    }
    while (i + kBlock < text_.size() && write_block(i)) i += kBlock;
    // What the block did not do: a few bytes one by one.
    for (const std::size_t end = std::min(text_.size(), i + kBlock); i < end; ++i) {
      const unsigned char b = byte(i);
      if (b >= 0x80) return i;
      ensure_ends();
      if (table_.goes_on[b] == 0) end_word();
      const std::uint8_t action = table_.action[b];
      if ((action & kInWord) == kInWord) words_[size_++] = table_.copy[b];
      if (action == kPunctuated) end_word();
    }
    return i;
  }

  /// A block of bytes without a branch between them, if there is nothing slow among them and the
  /// one after. Otherwise what was written does not count.
  bool write_block(std::size_t i) {
    ensure_ends();
    const char* in = text_.data() + i;
    char* out = words_.data();
    std::uint32_t* ends = ends_.data();
    std::size_t size = size_;
    std::size_t count = count_;
    auto b = static_cast<unsigned char>(in[0]);
    unsigned seen = 0;
    for (std::size_t k = 1; k <= kBlock; ++k) {
      const unsigned action = table_.action[b];
      out[size] = table_.copy[b];
      size += action >> kWritten & 1;
      seen |= action;
      b = static_cast<unsigned char>(in[k]);
      ends[count] = static_cast<std::uint32_t>(size);
      count += action >> table_.goes_on[b] & 1;
    }
    if (((seen | table_.action[b]) & kSlow) != 0) return false;
    size_ = size;
    count_ = count;
    return true;
  }

  /// One character beyond ASCII.
  std::size_t write_wide(std::size_t i) {
    ensure(text_.size() - i);
    const std::size_t begin = i;
    const char32_t c = next_char(text_, i);
    const CharProperties& p = properties(c);
    if (options_.clean_text && p.has(kBertRemoved)) return i;
    const bool space = p.has(kWhiteSpace) || (options_.clean_text && p.has(kBertSpace));
    const bool apart = options_.handle_chinese_chars && p.has(kChinese);
    if (!space && p.has(kBertPlain)) {
      flush_marks();
      const bool alone = apart || p.has(kPunctuation);
      if (alone) end_word();
      for (std::size_t k = begin; k < i; ++k) words_[size_++] = text_[k];
      if (alone) end_word();
      return i;
    }
    if (space || apart) end_after_marks();
    if (space) return i;
    if (!options_.strip_accents) {
      write_lower(c);
    } else {
      write_decomposition(c);
    }
    if (apart) end_after_marks();
    return i;
  }

  void end_after_marks() {
    flush_marks();
    end_word();
  }

  void write_decomposition(char32_t c) {
    if (is_hangul_syllable(c)) {
      const char32_t index = c - kHangulBase;
      write_decomposed(kHangulL + index / (kHangulVCount * kHangulTCount));
      write_decomposed(kHangulV + index / kHangulTCount % kHangulVCount);
      if (index % kHangulTCount != 0) write_decomposed(kHangulT + index % kHangulTCount);
      return;
    }
    const auto parts = canonical_decomposition(c);
    if (parts.empty()) write_decomposed(c);
    for (const char32_t part : parts) write_decomposed(part);
  }

  /// A character of the decomposed text: marks are deleted, or wait for their order.
  void write_decomposed(char32_t c) {
    const CharProperties& p = properties(c);
    if (p.has(kBertMark)) return;
    if (p.combining_class != 0) {
      marks_.push_back(c);
      return;
    }
    flush_marks();
    write_lower(c);
  }

  void flush_marks() {
    if (marks_.empty()) return;
    std::stable_sort(marks_.begin(), marks_.end(), [](char32_t a, char32_t b) {
      return properties(a).combining_class < properties(b).combining_class;
    });
    for (const char32_t c : marks_) {
      ensure(text_.size());
      write_lower(c);
    }
    ensure(text_.size());
    marks_.clear();
  }

  void write_lower(char32_t c) {
    const auto parts = options_.lowercase ? lower_case(c) : std::u32string_view();
    if (parts.empty()) write_final(c);
    for (const char32_t part : parts) write_final(part);
  }

  void write_final(char32_t c) {
    const CharProperties& p = properties(c);
    if (p.has(kWhiteSpace | kPunctuation)) end_word();
    if (p.has(kWhiteSpace)) return;
    size_ += put_utf8(c, words_.data() + size_);
    if (p.has(kPunctuation)) end_word();
  }

  std::string_view text_;
  BertOptions options_;
  const ByteTable& table_;
  std::string& words_;                // its first size_ bytes count
  std::vector<std::uint32_t>& ends_;  // its first count_ items count
  std::size_t size_ = 0;
  std::size_t count_ = 0;
  std::vector<char32_t> marks_;  // kept marks that wait for their order
};

}  // namespace

void bert_words(std::string_view text, const BertOptions& options, std::string& words,
                std::vector<std::uint32_t>& word_ends) {
  WordWriter(text, options, words, word_ends).write();
}

}  // namespace masque::text
