// Metrics of texts against references: counts per line, and the values from their sums.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/string/name_table.hpp"
#include "base/string/regex.hpp"

namespace masque::evaluate {

// Tokenizers of text metrics: those of sacreBLEU and of rouge_score.

/// sacreBLEU's tokenizers.
enum class BleuTokenizer {
  k13a,   ///< mteval-v13a.pl: ASCII punctuation apart, full stops and commas between digits kept
  kIntl,  ///< mteval-v14.pl: the same by Unicode's categories P, S and N
  kChar,  ///< code points
  kNone,  ///< what stands between white space
};
/// Their names in sacreBLEU: "13a", "intl", "char", "none".
NameTable<BleuTokenizer> bleu_tokenizer_names();

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
  std::unique_ptr<const Regex> categories_;  ///< for intl
  std::array<Category, 128> ascii_{};
  std::unordered_map<char32_t, Category> known_;
};

// Counts the n-grams of a text that occur in reference texts.

/// Gives words the numbers 0, 1 …, equal ones the same, and forgets them. Reusable: memory is kept.
class WordNumbers {
 public:
  /// Forgets everything, and makes room for `words` calls of number().
  void start(std::size_t words);
  /// The number of `word`, the next one if it is new. The text of `word` must stay where it is
  /// until the next start().
  char32_t number(std::string_view word);

 private:
  struct Slot {
    std::string_view word;
    std::uint64_t round = 0;  ///< last round that used the slot; another than the current one: free
    char32_t number = 0;
  };
  std::vector<Slot> slots_;  ///< a power of two, at most half full
  std::uint64_t round_ = 0;
  char32_t next_ = 0;
};

/// Counts n-grams of texts of symbols: code points, or numbers of words. For one thread; reusable.
class NgramMatcher {
 public:
  /// `matches`[n − 1] for n = 1 … matches.size(): Σ over different n-grams of the least of how
  /// often `hypothesis` has it and how often that of `references` with most of it does (BLEU's
  /// clipped counts: Papineni 2002, doi:10.3115/1073083.1073135). Exact: n-grams are compared, not
  /// their hashes. Cost O(orders · symbols).
  void match(std::u32string_view hypothesis, std::span<const std::u32string_view> references,
             std::span<std::uint32_t> matches);

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint64_t round = 0;
    std::uint32_t id = 0;
  };
  std::size_t slot_of(std::uint64_t key) const;
  std::uint32_t intern(std::uint64_t key);

  std::vector<Slot> slots_;  ///< a power of two, at most half full
  std::uint64_t round_ = 0;
  unsigned shift_ = 0;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> hypothesis_;  ///< at each place the number of the n-gram there
  std::vector<std::uint32_t> references_;  ///< references of all references, one after the other
  std::vector<std::uint32_t> most_;        ///< largest count of each n-gram in one reference
  std::vector<std::uint32_t> count_;
};

// The metrics.

/// Values are functions of sums over lines, so they can be resampled. With several references per
/// line, BLEU clips each n-gram by the reference that has most of it and uses the length nearest to
/// the hypothesis; the other metrics use the reference with the best value for the line (chrF: F;
/// wer: the fewest errors), of equally good ones the first.
enum class TextMetric {
  kExactMatch,     ///< share of lines that are a reference, byte for byte
  kTokenAccuracy,  ///< Σ places with the same word / Σ words of the longer text of each line
  kBleu,           ///< sacreBLEU's, 0 … 100: 4-grams, smoothing exp
  kChrf,           ///< sacreBLEU's chrF2, 0 … 100: 6-grams of characters, β = 2 (Popović 2015)
  kRougeL,        ///< mean over lines of rouge_score's rougeL F1: of the longest common subsequence
  kWer,           ///< Σ word errors / Σ words of the reference
  kEditDistance,  ///< mean over lines of edits in code points, exchanged neighbours one edit
};

/// Counts of chrF: for each order the n-grams of the hypothesis, of the reference, and in common.
inline constexpr std::size_t kMostCounts = 18;

/// The names of all metrics, in the order of the output: "exact_match", "token_accuracy", …
NameTable<TextMetric> text_metric_names();

/// Number of counts that `metric` keeps per line, at most kMostCounts.
std::size_t count_width(TextMetric metric);
/// The sum of these numbers over several `metrics`.
std::size_t count_width(std::span<const TextMetric> metrics);

/// `terms` ← what a line with these `counts` adds to the sums of `metric`: as many as it has
/// counts.
void put_terms(TextMetric metric, const std::uint32_t* counts, double* terms);
/// The value of `metric` for a corpus from the `sums` of its lines' terms. NaN if the divisor is 0
/// (wer without a word in the references), never infinite.
double metric_value(TextMetric metric, std::span<const double> sums);
/// The value of `metric` for one line with these `counts`. BLEU uses sacreBLEU's effective order:
/// n-gram orders for which the line is too short do not count.
double line_value(TextMetric metric, const std::uint32_t* counts);

/// Counts lines. Keeps its memory; for one thread.
class LineCounter {
 public:
  /// Counts for `metrics`; BLEU reads lines as `tokenizer` cuts them.
  LineCounter(std::vector<TextMetric> metrics, BleuTokenizer tokenizer);

  /// Appends to `counts` those of a line, `hypothesis` against `references`, in the order of the
  /// metrics: count_width() numbers for each. Texts are valid UTF-8 of less than 4 GiB, and there
  /// is a reference. Cost of all but two metrics O(length); wer and edit_distance, and rouge_l in
  /// its words, as edit_distance(). Throws Interrupted.
  void add(std::string_view hypothesis, std::span<const std::string_view> references,
           std::vector<std::uint32_t>& counts);

 private:
  void add_metric(TextMetric metric, std::uint32_t* out);
  void count_bleu(std::uint32_t* out);
  void count_chrf(std::uint32_t* out);
  void count_rouge(std::uint32_t* out);
  void count_accuracy(std::uint32_t* out) const;
  void count_wer(std::uint32_t* out) const;
  void count_edits(std::uint32_t* out) const;
  /// Cuts every text, the hypothesis first, and writes the numbers of their tokens to symbols_.
  template <class Cut>
  void number_tokens(const Cut& cut);
  void read_words();
  void read_characters();

  std::vector<TextMetric> metrics_;
  BleuCutter cutter_;
  WordNumbers numbers_;
  NgramMatcher matcher_;
  std::vector<std::string_view> texts_;  ///< texts of the line: hypothesis, references
  std::vector<CutText> cut_;
  std::vector<std::u32string> symbols_;     ///< symbols of BLEU's or ROUGE's tokens
  std::vector<std::u32string> words_;       ///< words between blanks, as numbers
  std::vector<std::u32string> characters_;  ///< code points
  std::vector<std::u32string> packed_;      ///< code points that are no white space
  std::vector<std::u32string_view> views_;
};

}  // namespace masque::evaluate
