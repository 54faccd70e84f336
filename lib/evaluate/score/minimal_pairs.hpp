// Minimal pairs: does a model score the good sentence above the bad one?
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace masque::evaluate {

/// Two sentences, of which the first is acceptable and the second is not.
struct MinimalPair {
  std::string good;                   ///< the acceptable sentence
  std::string bad;                    ///< the other one
  std::string uid;                    ///< paradigm; empty: not stated
  std::string field;                  ///< syntax, morphology …; empty: not stated
  std::string term;                   ///< linguistics_term; empty: not stated
  std::uint64_t lone_surrogates = 0;  ///< in the line, read as U+FFFD
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
    std::string name;         ///< name of the group; "all" for kAll
    std::uint64_t n = 0;      ///< pairs
    std::uint64_t right = 0;  ///< pairs of these that are right
    /// right / n: parts add up to the whole, bit for bit.
    double accuracy() const { return static_cast<double>(right) / static_cast<double>(n); }
  };

  /// Counts `pair`: correct if its good sentence's score, `good`, is strictly higher than `bad`.
  void add(const MinimalPair& pair, double good, double bad) { add(pair, good > bad); }
  /// Counts `pair`, as correct if `right`.
  void add(const MinimalPair& pair, bool right);
  /// Adds the counts of another run's `row`.
  void add(const Row& row);
  /// The number of pairs that were counted.
  std::uint64_t pairs() const;
  /// Paradigms, terms, fields, each by name, then all; none if no pair was counted.
  std::vector<Row> rows() const;

 private:
  struct Count {
    std::uint64_t n = 0;
    std::uint64_t right = 0;
  };
  std::map<std::pair<Level, std::string>, Count> groups_;
};

/// Two models on the same pairs. Not thread-safe.
class PairComparison {
 public:
  /// The counts of one group of pairs.
  struct Row {
    PairTally::Level level;         ///< kind of group
    std::string name;               ///< name of the group
    std::uint64_t n = 0;            ///< pairs
    std::uint64_t first = 0;        ///< pairs that the first model has right
    std::uint64_t second = 0;       ///< pairs that the second model has right
    std::uint64_t only_first = 0;   ///< pairs that the first model alone has right
    std::uint64_t only_second = 0;  ///< pairs that the second model alone has right
    /// McNemar's exact test: how likely is a split at least as uneven, if both are equally good?
    double p() const;
  };

  /// Counts `pair`, with whether the first and the second model are right.
  void add(const MinimalPair& pair, bool first, bool second);
  /// A row a group, in the order of PairTally::rows.
  std::vector<Row> rows() const;

 private:
  PairTally first_, second_, only_first_, only_second_;
};

/// The name of `level`: "paradigm", "term", "field", "all".
std::string_view level_name(PairTally::Level level);

}  // namespace masque::evaluate
