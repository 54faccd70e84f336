// Minimal pairs: does a model score the good sentence above the bad one?
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace masque::probe {

/// Two sentences, of which the first is acceptable and the second is not.
struct MinimalPair {
  std::string good;   ///< the acceptable sentence
  std::string bad;    ///< the other one
  std::string uid;    ///< paradigm; empty: not stated
  std::string field;  ///< syntax, morphology …; empty: not stated
  std::string term;   ///< linguistics_term; empty: not stated
};

/// Reads `line`, a JSON object with `sentence_good` and `sentence_bad`, and `UID`, `field` and
/// `linguistics_term` if it has them (BLiMP, Warstadt 2020, arXiv:1912.00582), or with `good`,
/// `bad`, `uid`. Throws InputError "what was found", without the line's number.
MinimalPair parse_minimal_pair(std::string_view line);

/// Counts of correct pairs, in all and by group.
class PairTally {
 public:
  /// What the pairs of a group have in common: MinimalPair::uid, `term` or `field`, or nothing.
  enum class Level { kParadigm, kTerm, kField, kAll };
  /// A group and its counts.
  struct Row {
    Level level;              ///< by what it is grouped
    std::string name;         ///< of the group; "all" of kAll
    std::uint64_t n = 0;      ///< pairs
    std::uint64_t right = 0;  ///< of them
    /// right / n: parts add up to the whole, bit for bit.
    double accuracy() const { return static_cast<double>(right) / static_cast<double>(n); }
  };

  /// Counts `pair`: correct if the score `good` of its good sentence is strictly above the score
  /// `bad` of the other one.
  void add(const MinimalPair& pair, double good, double bad);
  /// Adds the counts of another run's `row`.
  void add(const Row& row);
  /// Paradigms, terms, fields, each by name, then all.
  std::vector<Row> rows() const;

 private:
  struct Count {
    std::uint64_t n = 0;
    std::uint64_t right = 0;
  };
  std::map<std::pair<Level, std::string>, Count> groups_;
};

/// The name of `level`: "paradigm", "term", "field", "all".
std::string_view level_name(PairTally::Level level);

}  // namespace masque::probe
