#include <algorithm>
#include <array>

#include "text/bert.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

/// What a byte of ASCII does.
enum Action : std::uint8_t { kCopy, kSpace, kMark, kDelete, kWide };

struct ByteTable {
  std::array<Action, 256> action{};
  std::array<char, 256> copy{};
};

ByteTable make_table(const BertOptions& options) {
  ByteTable table;
  for (unsigned byte = 0; byte < 256; ++byte) {
    table.copy[byte] = static_cast<char>(byte);
    if (byte >= 0x80) {
      table.action[byte] = kWide;
      continue;
    }
    if (options.lowercase && byte >= 'A' && byte <= 'Z') {
      table.copy[byte] = static_cast<char>(byte - 'A' + 'a');
    }
    const CharProperties& p = properties(byte);
    const bool removed = options.clean_text && p.has(kBertRemoved);
    const bool space = p.has(kWhiteSpace) || (options.clean_text && p.has(kBertSpace));
    table.action[byte] = removed ? kDelete : space ? kSpace : p.has(kPunctuation) ? kMark : kCopy;
  }
  return table;
}

class WordWriter {
 public:
  WordWriter(std::string_view text, const BertOptions& options, std::string& words,
             std::vector<std::uint32_t>& ends)
      : text_(text), options_(options), table_(make_table(options)), words_(words), ends_(ends) {}

  void write() {
    words_.clear();
    ends_.clear();
    // Of the characters beyond ASCII, none grows to more than 9 times its bytes, and each such
    // growth is asked for when it happens.
    words_.resize(text_.size() + kSlack);
    std::size_t i = 0;
    while (i < text_.size()) {
      i = write_ascii(i);
      if (i < text_.size()) i = write_wide(i);
    }
    flush_marks();
    end_word();
    words_.resize(size_);
  }

 private:
  static constexpr std::size_t kSlack = 64;

  /// Ensures room for what is left of the text and one more character's result.
  void ensure(std::size_t left) {
    const std::size_t need = size_ + left + kSlack;
    if (need > words_.size()) words_.resize(std::max(need, words_.size() + words_.size() / 2));
  }

  void end_word() {
    if (size_ == word_begin_) return;
    ends_.push_back(static_cast<std::uint32_t>(size_));
    word_begin_ = size_;
  }

  /// The bytes of ASCII from i on; returns where they end.
  std::size_t write_ascii(std::size_t i) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text_[k]); };
    if (i < text_.size() && byte(i) < 0x80) flush_marks();
    char* out = words_.data();
    for (; i < text_.size(); ++i) {
      const unsigned char b = byte(i);
      switch (table_.action[b]) {
        case kCopy: out[size_++] = table_.copy[b]; break;
        case kSpace: end_word(); break;
        case kMark:
          end_word();
          out[size_++] = table_.copy[b];
          end_word();
          break;
        case kDelete: break;
        case kWide: return i;
      }
    }
    return i;
  }

  /// One character beyond ASCII.
  std::size_t write_wide(std::size_t i) {
    const char32_t c = next_char(text_, i);
    ensure(text_.size() - i);
    const CharProperties& p = properties(c);
    if (options_.clean_text && p.has(kBertRemoved)) return i;
    if (options_.clean_text && p.has(kBertSpace)) {
      write_decomposed(U' ');
      return i;
    }
    const bool apart = options_.handle_chinese_chars && p.has(kChinese);
    if (apart) write_decomposed(U' ');
    if (!options_.strip_accents) {
      write_lower(c);
    } else if (is_hangul_syllable(c)) {
      const char32_t index = c - kHangulBase;
      write_decomposed(kHangulL + index / (kHangulVCount * kHangulTCount));
      write_decomposed(kHangulV + index / kHangulTCount % kHangulVCount);
      if (index % kHangulTCount != 0) write_decomposed(kHangulT + index % kHangulTCount);
    } else if (const auto parts = canonical_decomposition(c); !parts.empty()) {
      for (const char32_t part : parts) write_decomposed(part);
    } else {
      write_decomposed(c);
    }
    if (apart) write_decomposed(U' ');
    return i;
  }

  /// A character of the decomposed text: marks are deleted, or wait for their order.
  void write_decomposed(char32_t c) {
    if (!options_.strip_accents) {
      write_lower(c);
      return;
    }
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
    ensure(text_.size() + marks_.size() * 12);
    for (const char32_t c : marks_) write_lower(c);
    marks_.clear();
  }

  void write_lower(char32_t c) {
    const auto parts = options_.lowercase ? lower_case(c) : std::u32string_view();
    if (parts.empty()) write_final(c);
    for (const char32_t part : parts) write_final(part);
  }

  void write_final(char32_t c) {
    const CharProperties& p = properties(c);
    if (p.has(kWhiteSpace)) {
      end_word();
      return;
    }
    if (p.has(kPunctuation)) end_word();
    size_ += put_utf8(c, words_.data() + size_);
    if (p.has(kPunctuation)) end_word();
  }

  std::string_view text_;
  BertOptions options_;
  ByteTable table_;
  std::string& words_;
  std::vector<std::uint32_t>& ends_;
  std::size_t size_ = 0;         // bytes written
  std::size_t word_begin_ = 0;   // of the word being written
  std::vector<char32_t> marks_;  // kept marks that wait for their order
};

}  // namespace

void bert_words(std::string_view text, const BertOptions& options, std::string& words,
                std::vector<std::uint32_t>& word_ends) {
  WordWriter(text, options, words, word_ends).write();
}

}  // namespace masque::text
