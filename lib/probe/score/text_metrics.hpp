// Metrics of texts against references: counts per line, and the values from their sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_table.hpp"
#include "probe/score/metric_tokens.hpp"
#include "probe/score/ngram_matches.hpp"

namespace masque::probe {

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
  std::vector<std::string_view> texts_;  ///< of the line: hypothesis, references
  std::vector<CutText> cut_;
  std::vector<std::u32string> symbols_;     ///< of BLEU's or ROUGE's tokens
  std::vector<std::u32string> words_;       ///< words between blanks, as numbers
  std::vector<std::u32string> characters_;  ///< code points
  std::vector<std::u32string> packed_;      ///< code points that are no white space
  std::vector<std::u32string_view> views_;
};

}  // namespace masque::probe
