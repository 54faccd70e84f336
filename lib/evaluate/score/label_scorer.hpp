// Classifies texts by how well the words of each label fill the gap of a cloze pattern.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "evaluate/score/cloze.hpp"
#include "evaluate/score/nbest.hpp"
#include "evaluate/score/text_scorer.hpp"

namespace masque::evaluate {

/// The labels and the tokens of their words under one tokenizer.
struct LabelWords {
  std::vector<VerbalizedLabel> labels;                 ///< names and words
  std::vector<std::vector<std::vector<TokenId>>> ids;  ///< ids of each word of each label
  Index most_tokens = 0;                               ///< largest number of tokens of a word
  bool last = false;  ///< no token of the text stands after the word
};

/// Encodes each word of `labels` in the pattern of `encoder`, with its `tokenizer`. Throws
/// UsageError about `labels` for a word with the unk token, a word that has no tokens or shares one
/// with its neighbours, and two words with the same tokens.
LabelWords label_words(const ClozeEncoder& encoder, const text::Tokenizer& tokenizer,
                       std::vector<VerbalizedLabel> labels);

/// One number per label: its log-score in nats, larger is better. Scores are comparable between the
/// labels of one text, not between texts or patterns.
struct LabelScores {
  std::uint64_t id = 0;        ///< as LabelScorer::add got it
  std::vector<double> scores;  ///< one a label, in their order
};

/// Scores the labels of texts, in order. The score of a word is the sum that ScoreOptions::kind
/// defines over its tokens, divided by `length`. For kCausal it includes the tokens after the word;
/// those before it are the same for all labels. The score of a label is the mean over its words;
/// for words of one token this is the mean of their logits up to a constant (Schick and Schütze
/// 2021, arXiv:2001.07676, §3). A result depends neither on the size of batches nor on other texts.
/// Memory: one batch, and the texts in it.
class LabelScorer {
 public:
  /// Takes the scores of a text.
  using Sink = std::function<void(LabelScores&&)>;

  /// `model`, `encoder` and `words` must outlive this. `sink` receives the scores in the order in
  /// which the texts were added, during add() and flush(). The encoder's length policy is used, not
  /// that of `options`. Throws as TextScorer.
  LabelScorer(const model::Model& model, const ClozeEncoder& encoder, const LabelWords& words,
              ScoreOptions options, const LengthNormalization& length, Sink sink);

  LabelScorer(const LabelScorer&) = delete;
  LabelScorer& operator=(const LabelScorer&) = delete;

  /// Whether one pass over a text gives the scores of all labels: each word is one token, the model
  /// has one stream, and the input does not depend on the word (it does for kElectra and kElectric,
  /// and for kCausal with tokens after the word). Otherwise each word takes the passes of its
  /// kind.
  bool one_pass() const { return one_pass_; }

  /// The sentences to score for these texts: one if one_pass(), else one per word. Throws
  /// InputError (message only) as ClozeEncoder::encode, and if a causal model has no token before
  /// the word.
  std::vector<ClozeSentence> sentences(std::span<const std::string> texts) const;
  /// The same for the content-free input `text`.
  std::vector<ClozeSentence> content_free_sentences(const std::string& text) const;

  /// Adds the `sentences` of a text, made by sentences(); runs batches as they fill. `id` is handed
  /// to the sink.
  void add(std::uint64_t id, std::vector<ClozeSentence> sentences);
  /// Runs the waiting texts. All labels have then been given to the sink.
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
  std::vector<TokenId> first_tokens_;  ///< first token of each word of each label
  JobRunner runner_;                   ///< for words of one pass
  TextScorer scorer_;                  ///< for words of several passes
};

/// softmax of `scores`: a probability for each label.
std::vector<double> label_probabilities(std::span<const double> scores);

/// The probability of each label for the content-free `inputs` ("N/A", …), at least one: the mean
/// of label_probabilities over them. `model`, `encoder`, `words`, `options` and `length` are as for
/// LabelScorer. Zhao et al. 2021, arXiv:2102.09690, §5. Throws InputError for an input that is too
/// long, and for a label with probability 0.
std::vector<double> content_free_probabilities(const model::Model& model,
                                               const ClozeEncoder& encoder, const LabelWords& words,
                                               const ScoreOptions& options,
                                               const LengthNormalization& length,
                                               std::span<const std::string> inputs);

/// p_l / q_l, normalised to sum to 1: the `probabilities` p corrected by the `content_free` ones q
/// (the equation of Zhao et al. with W = diag(q)⁻¹, b = 0, and a sum instead of a second softmax;
/// the order is the same).
std::vector<double> calibrated(std::span<const double> probabilities,
                               std::span<const double> content_free);

/// The index of the largest of `probabilities`, of equal ones the first.
Index likeliest_label(std::span<const double> probabilities);

}  // namespace masque::evaluate
