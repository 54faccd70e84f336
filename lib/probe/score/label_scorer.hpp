// Which label a text has, by how well the words of each label fill the gap of a cloze pattern.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "probe/score/cloze.hpp"
#include "probe/score/nbest.hpp"
#include "probe/score/text_scorer.hpp"

namespace masque::probe {

/// The labels of a pattern as one tokenizer writes them.
struct LabelWords {
  std::vector<VerbalizedLabel> labels;
  std::vector<std::vector<std::vector<TokenId>>> ids;  ///< of each word of each label
  Index most_tokens = 0;                               ///< of a word
  bool last = false;  ///< no token of the text stands after the word
};

/// Encodes each word in the pattern. Throws UsageError about `labels` for a word that the tokenizer
/// does not know (its unk token), one without tokens of its own, and two words that are the same
/// tokens.
LabelWords label_words(const ClozeEncoder& encoder, const text::Tokenizer& tokenizer,
                       std::vector<VerbalizedLabel> labels);

/// One number a label: its log-score in nats, larger is better. The scores of labels compare with
/// each other, not with those of other texts or patterns.
struct LabelScores {
  std::uint64_t id = 0;
  std::vector<double> scores;
};

/// Scores the labels of texts, in order. The score of a word is what ScoreOptions::kind sums over
/// its tokens (of kCausal over those after it, too: what stands in front is the same for all
/// labels), divided by `length`; that of a label is the mean over its words, which for words of one
/// token is the mean of their logits, but for a constant (Schick and Schütze 2021,
/// arXiv:2001.07676, §3). A result depends neither on the size of batches nor on other texts.
/// Memory: one batch, and the texts in it.
class LabelScorer {
 public:
  using Sink = std::function<void(LabelScores&&)>;

  /// What is referred to must stay. The policy of `options` is not used, but that of the encoder.
  /// Throws as TextScorer.
  LabelScorer(const model::Model& model, const ClozeEncoder& encoder, const LabelWords& words,
              ScoreOptions options, const LengthNormalization& length, Sink sink);

  LabelScorer(const LabelScorer&) = delete;
  LabelScorer& operator=(const LabelScorer&) = delete;

  /// Whether one pass over a text gives the scores of all labels: each word is one token, the
  /// model has one stream, and what the kind hides or reads does not depend on the word (kElectra;
  /// kCausal with something after the word). Else there are as many passes as the kind takes for
  /// each word.
  bool one_pass() const { return one_pass_; }

  /// The sentences whose scores decide the labels of these texts: one in one pass, else one a word.
  /// Throws InputError (message only) as ClozeEncoder::encode, and where a causal model has nothing
  /// in front of the word.
  std::vector<ClozeSentence> sentences(std::span<const std::string> texts) const;
  /// The same of an input without content.
  std::vector<ClozeSentence> content_free_sentences(const std::string& text) const;

  /// Adds what sentences() gave for a text; runs batches as they fill.
  void add(std::uint64_t id, std::vector<ClozeSentence> sentences);
  /// Runs what waits: all labels have then been given to the sink.
  void flush();

 private:
  using Encode = std::function<ClozeSentence(std::string_view word)>;
  /// A text whose words are being scored.
  struct Pending {
    std::uint64_t id = 0;
    std::vector<double> words;  ///< score of each word of each label
    std::size_t scored = 0;     ///< how many of them are there
    std::uint64_t last_job = 0;
  };
  std::vector<ClozeSentence> encoded(const Encode& encode) const;
  void add_one_pass(Pending& pending, ClozeSentence cloze);
  void deliver();
  LabelScores scores_of(const Pending& pending) const;

  const ClozeEncoder& encoder_;
  const LabelWords& words_;
  ScoreOptions options_;
  LengthNormalization length_;
  bool reads_front_;  ///< each token is predicted from those in front of it, of one stream
  bool one_pass_;
  Sink sink_;
  std::deque<Pending> pending_;
  std::uint64_t jobs_ = 0;
  std::vector<TokenId> first_tokens_;  ///< of each word of each label
  JobRunner runner_;                   ///< of one pass
  TextScorer scorer_;                  ///< of several
};

/// softmax of the scores: a probability for each label.
std::vector<double> label_probabilities(std::span<const double> scores);

/// How likely each label is whatever the text: the mean of label_probabilities over inputs without
/// content ("N/A", …). Zhao et al. 2021, arXiv:2102.09690, §5. Throws InputError for an input that
/// does not fit, and a label of probability 0.
std::vector<double> content_free_probabilities(const model::Model& model,
                                               const ClozeEncoder& encoder, const LabelWords& words,
                                               const ScoreOptions& options,
                                               const LengthNormalization& length,
                                               std::span<const std::string> inputs);

/// p_l / q_l, divided by their sum: what p says beyond the content-free q (their eq. with
/// W = diag(q)⁻¹, b = 0, and the sum in place of a second softmax; the order is the same).
std::vector<double> calibrated(std::span<const double> probabilities,
                               std::span<const double> content_free);

/// The largest one, of equal ones the first.
Index likeliest_label(std::span<const double> probabilities);

}  // namespace masque::probe
