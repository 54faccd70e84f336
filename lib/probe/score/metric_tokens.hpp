// Tokenizers of text metrics: those of sacreBLEU and of rouge_score.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/name_table.hpp"
#include "base/regex.hpp"

namespace masque::probe {

/// sacreBLEU's tokenizers.
enum class BleuTokenizer {
  k13a,   ///< mteval-v13a.pl: ASCII punctuation apart, full stops and commas between digits kept
  kIntl,  ///< mteval-v14.pl: the same by Unicode's categories P, S and N
  kChar,  ///< code points
  kNone,  ///< what stands between white space
};
/// Their names in sacreBLEU: "13a", "intl", "char", "none".
NameTable<BleuTokenizer> bleu_tokenizer_names();

/// Whether Python's str.split, str.strip and str.isspace take the code point `c` for white space.
bool is_python_space(char32_t c);

/// A text between its tokens, which are views into `text`. Reusable: memory is kept.
struct CutText {
  std::string text;                      ///< the line, with spaces between tokens
  std::vector<std::string_view> tokens;  ///< views into `text`, or into the line that was cut
};

/// Tokenizes lines as sacreBLEU 2.6, after removing white space at the end. For one thread at a
/// time.
class BleuCutter {
 public:
  /// Cuts as `tokenizer` does.
  explicit BleuCutter(BleuTokenizer tokenizer);

  /// Writes the tokens of `line`, which is valid UTF-8, to `out`. Cost O(length). `intl` takes the
  /// categories of characters from the Oniguruma library, sacreBLEU from Python's `regex`: they
  /// differ for characters newer than either knows (Debian 12: Unicode 14).
  void cut(std::string_view line, CutText& out);

 private:
  enum class Category : std::uint8_t { kNumber, kPunctuation, kSymbol, kOther };

  void cut_13a(std::string_view line, CutText& out);
  void cut_intl(std::string_view line, CutText& out);
  Category category(char32_t c);
  Category find_category(char32_t c) const;

  BleuTokenizer tokenizer_;
  std::string scratch_;
  std::u32string characters_;
  std::u32string scratch_characters_;
  std::unique_ptr<const Regex> categories_;  ///< of intl
  std::array<Category, 128> ascii_{};
  std::unordered_map<char32_t, Category> known_;
};

/// Writes the tokens of `line` to `out`, as rouge_score 0.1.2 without its stemmer: lower case, then
/// runs of a–z and 0–9. Letters of other scripts separate tokens.
void cut_for_rouge(std::string_view line, CutText& out);

}  // namespace masque::probe
