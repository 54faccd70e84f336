// Cloze patterns: turn a text into a sentence with a gap; the words for the gap represent labels.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evaluate/score/length_policy.hpp"
#include "evaluate/score/sentence.hpp"
#include "text/step/pattern.hpp"
#include "text/tokenizer.hpp"

namespace masque::evaluate {

/// A pattern with a gap for one or two texts and a gap for a word: "X It was [MASK]." Schick and
/// Schütze 2021, arXiv:2001.07676.
class ClozePattern {
 public:
  /// `X` and `Y`, unless next to an ASCII letter, digit or `_`, are the gaps of the first and the
  /// second text; `[MASK]`, or also `mask_token` if that is not empty, is the gap of the word.
  /// Throws UsageError about `pattern` unless X and the mask occur once, and Y at most once.
  ClozePattern(std::string_view pattern, std::string_view mask_token);

  /// How many texts it takes: 1 or 2.
  std::size_t texts() const { return texts_; }

  /// The pattern with all gaps filled, and the byte ranges of the texts and the word.
  struct Filled {
    std::string text;                  ///< the pattern with all gaps filled
    std::vector<text::Stretch> texts;  ///< byte range of each text in `text`
    text::Stretch word;                ///< byte range of the word in `text`
  };
  /// The pattern with `texts`, texts() of them, and `word` in their gaps.
  Filled fill(std::span<const std::string> texts, std::string_view word) const;

 private:
  static constexpr std::size_t kWord = 2;
  /// The text before a gap, and what fills it: text 0 or 1, or the word.
  struct Part {
    std::string before;
    std::size_t place = 0;
  };
  std::vector<Part> parts_;
  std::string end_;
  std::size_t texts_ = 1;
};

/// A label, and the words that represent it in a pattern.
struct VerbalizedLabel {
  std::string name;                ///< as it is printed
  std::vector<std::string> words;  ///< at least one
};

/// Reads the labels in `text`: "great,terrible"; several words per label:
/// "great|good,terrible|bad"; names that differ from the first word: "1=great|good,0=terrible".
/// Blanks around names and words are removed. Throws UsageError about `labels` for fewer than two
/// labels, empty names and words, and a name or word that occurs twice.
std::vector<VerbalizedLabel> parse_verbalizer(std::string_view text);

/// A filled pattern as tokens; [begin, end) of the ids are the word's. `sentence` treats them as
/// one word, even if the tokenizer does not.
struct ClozeSentence {
  Sentence sentence;   ///< the whole pattern, with the tokens of the template
  Index begin = 0;     ///< first token of the word, among the ids
  Index end = 0;       ///< after its last one
  Index left_out = 0;  ///< tokens of the texts that the policy removed

  /// Tokens of the word.
  Index tokens() const { return end - begin; }
};

/// How texts are put into a pattern.
struct ClozeOptions {
  SentenceOptions sentence;      ///< for the filled pattern
  LengthPolicy policy;           ///< kError; kFirst, kLast: which tokens of a long text to keep
  std::optional<Index> longest;  ///< tokens read at once; nothing: no limit
  std::optional<TokenId> mask;   ///< the tokenizer's mask token, which a text must not hold
};

/// Makes sentences of one pattern. Immutable, thread-safe.
class ClozeEncoder {
 public:
  /// Fills `pattern` and encodes it with `tokenizer`, which must outlive this, as `options` say.
  /// The policy must be kError, kFirst or kLast.
  ClozeEncoder(const text::Tokenizer& tokenizer, ClozePattern pattern, const ClozeOptions& options);

  /// The pattern.
  const ClozePattern& pattern() const { return pattern_; }
  /// The options.
  const ClozeOptions& options() const { return options_; }

  /// Encodes the whole sentence with `texts` and `word` in the gaps, so the word has the tokens
  /// that it has in running text. The sentence is too long if it would be with a word of `room`
  /// tokens. Then the policy removes tokens of the texts, not of the pattern: of two texts always
  /// from the longer one, of equal ones from the second. So a text is cut at the same token for all
  /// words of at most `room` tokens. Throws InputError (message only) for a text with a mask token,
  /// a text that is too long, and a word that has no tokens or shares one with its neighbours.
  ClozeSentence encode(std::span<const std::string> texts, std::string_view word, Index room) const;
  /// The same for a content-free input: `text` stands for every text, and `word` and `room` are as
  /// above. Special tokens in it are always recognized, and `[MASK]` is the tokenizer's mask token,
  /// if it has one.
  ClozeSentence encode_content_free(const std::string& text, std::string_view word,
                                    Index room) const;

 private:
  ClozeSentence encode(const ClozePattern::Filled& filled, const SentenceOptions& options,
                       Index room) const;

  const text::Tokenizer& tokenizer_;
  ClozePattern pattern_;
  ClozeOptions options_;
};

}  // namespace masque::evaluate
