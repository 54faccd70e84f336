// Cloze patterns: a text becomes a sentence with a gap, and words that fit the gap stand for
// labels.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probe/score/length_policy.hpp"
#include "probe/score/sentence.hpp"
#include "text/pattern.hpp"
#include "text/tokenizer.hpp"

namespace masque::probe {

/// A text with a place for one or two texts and one for a word: "X It was [MASK]." Schick and
/// Schütze 2021, arXiv:2001.07676.
class ClozePattern {
 public:
  /// `X` and `Y`, next to which stands no ASCII letter, digit or `_`, are the places of the first
  /// and the second text; `[MASK]`, or `mask_token` if that is not empty, is that of the word.
  /// Throws UsageError about `pattern` unless X and the mask stand there once, and Y at most once.
  ClozePattern(std::string_view pattern, std::string_view mask_token);

  /// How many texts it takes: 1 or 2.
  std::size_t texts() const { return texts_; }

  /// The pattern with all its places filled, and where what is, in bytes.
  struct Filled {
    std::string text;
    std::vector<text::Stretch> texts;
    text::Stretch word;
  };
  /// `texts` has texts() elements.
  Filled fill(std::span<const std::string> texts, std::string_view word) const;

 private:
  static constexpr std::size_t kWord = 2;
  /// What stands in front of a place, and whose it is: text 0 or 1, or the word.
  struct Part {
    std::string before;
    std::size_t place = 0;
  };
  std::vector<Part> parts_;
  std::string end_;
  std::size_t texts_ = 1;
};

/// A label, and the words that stand for it in a pattern.
struct VerbalizedLabel {
  std::string name;
  std::vector<std::string> words;
};

/// "great,terrible", several words a label "great|good,terrible|bad", other names than the first
/// word "1=great|good,0=terrible". Blanks around names and words are left out. Throws UsageError
/// about `labels` for fewer than two labels, empty names and words, and a name or word that stands
/// there twice.
std::vector<VerbalizedLabel> parse_verbalizer(std::string_view text);

/// A pattern with texts and a word as tokens; [begin, end) of the ids are the word's, which
/// `sentence` has as one word of its own, whatever the tokenizer calls a word.
struct ClozeSentence {
  Sentence sentence;
  Index begin = 0;
  Index end = 0;

  Index tokens() const { return end - begin; }
};

/// How texts of any length get into a pattern.
struct ClozeOptions {
  SentenceOptions sentence;
  LengthPolicy policy;  ///< kError; kFirst, kLast: which tokens of a text stay if it is too long
  std::optional<Index> longest;  ///< tokens read at once; nothing: no limit
  std::optional<TokenId> mask;   ///< the tokenizer's mask token, which a text must not hold
};

/// Makes sentences of one pattern. Immutable, thread-safe.
class ClozeEncoder {
 public:
  /// The tokenizer must stay.
  ClozeEncoder(const text::Tokenizer& tokenizer, ClozePattern pattern, const ClozeOptions& options);

  const ClozePattern& pattern() const { return pattern_; }
  const ClozeOptions& options() const { return options_; }

  /// The whole sentence is encoded with the word in its place, so its tokens are those that it has
  /// in a text. A sentence is too long if it would be with a word of `room` tokens: then the texts,
  /// not the pattern, lose tokens as the policy says, of two always the longer one, of equal ones
  /// the second; so a text is cut at the same place for all words of at most `room` tokens. Throws
  /// InputError (message only) for a text with a mask token, one that is too long, and a word that
  /// shares a token with what stands next to it or has none.
  ClozeSentence encode(std::span<const std::string> texts, std::string_view word, Index room) const;
  /// The same of texts without content, where special tokens are found whatever the options, and
  /// `[MASK]` is the tokenizer's mask token, if it has one.
  ClozeSentence encode_content_free(const std::string& text, std::string_view word,
                                    Index room) const;

 private:
  ClozeSentence encode(const ClozePattern::Filled& filled, const SentenceOptions& options,
                       Index room) const;

  const text::Tokenizer& tokenizer_;
  ClozePattern pattern_;
  ClozeOptions options_;
};

}  // namespace masque::probe
