// Draws a few examples of each label and makes training records from cloze patterns.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random/random.hpp"
#include "evaluate/score/cloze.hpp"
#include "evaluate/score/score_kind.hpp"
#include "records/record.hpp"

namespace masque::evaluate {

/// A text with its label.
struct Shot {
  std::uint64_t id = 0;            ///< number of its line
  Index label = 0;                 ///< from 0
  std::vector<std::string> texts;  ///< ClozePattern::texts() of them
};

/// Draws `count` texts of each label uniformly without repetition: those with the smallest random
/// numbers, which are a function of the seed and the id. Memory: the texts drawn so far.
class ShotSampler {
 public:
  /// Draws `count` texts (at least 1) of each of `labels` labels by `seed`.
  ShotSampler(Index labels, Index count, std::uint64_t seed);

  /// Considers `shot`. The ids of all shots must differ.
  void add(Shot shot);
  /// The drawn texts, by their ids. Throws InputError for a label with fewer than `count` texts;
  /// `names` are for its message.
  std::vector<Shot> drawn(const std::vector<VerbalizedLabel>& names) const;

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  ///< random number, id

  Index count_;
  RandomStream stream_;
  std::vector<std::map<Key, Shot>> drawn_;  ///< lines drawn for each label
};

/// Whether there are training records for this `kind`: the masked kinds and kTta.
bool has_cloze_records(ScoreKind kind);

/// Training records for the word of `cloze`, as the score of `kind` reads it. Masked kinds: a
/// record for each of its tokens t, with the tokens of M(t) replaced by `mask` and t as the only
/// label (`hidden_with`). kTta: one record with the word's tokens as labels. Ids include the
/// template's tokens; a label belongs to its own position.
std::vector<records::Record> cloze_records(const ClozeSentence& cloze, ScoreKind kind,
                                           TokenId mask);

}  // namespace masque::evaluate
