// What every corruption of records has in common.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random/random.hpp"
#include "mask/sampler.hpp"
#include "records/record.hpp"

namespace masque::records {

/// What a corruption must know of a tokenizer.
struct TokenTable {
  TokenId size = 0;                   ///< ids are 0 … size − 1; 0: not known
  TokenId mask = -1;                  ///< -1: there is none
  std::vector<std::uint8_t> special;  ///< 1 for tokens that are never changed; by id, may be short
  std::vector<std::uint8_t> begins_word;  ///< 1 for tokens that begin a word; by id, may be empty

  /// Whether the token `id` is never changed.
  bool is_special(TokenId id) const {
    return static_cast<std::size_t>(id) < special.size() &&
           special[static_cast<std::size_t>(id)] != 0;
  }
};

/// Counts over many records. Sums of parts are the whole's.
struct Tally {
  std::uint64_t records = 0;     ///< each version of a record counts
  std::uint64_t tokens_in = 0;   ///< before corruption
  std::uint64_t tokens_out = 0;  ///< after it
  std::uint64_t ordinary = 0;    ///< tokens that could be corrupted: not special
  std::uint64_t selected = 0;    ///< tokens that were chosen
  std::uint64_t masked = 0;      ///< of the selected: replaced by the mask token
  std::uint64_t kept = 0;        ///< of the selected: unchanged
  std::uint64_t random = 0;      ///< of the selected: replaced by another token
  std::uint64_t dropped = 0;     ///< tokens that were removed
  /// Of text: words are counted as `ordinary`, those with an error as `selected`, and here by kind.
  std::array<std::uint64_t, kWordErrorKinds> errors{};

  /// Adds the counts of `other`.
  void add(const Tally& other);
};

/// The numbers of one purpose: for each record and epoch a stream of its own. Thread-safe.
class RandomSource {
 public:
  /// Numbers of other purposes or seeds are independent; `purpose` and `seed` name them.
  RandomSource(std::uint64_t seed, std::string_view purpose);
  /// The numbers of the record with the number `record` in this `epoch`.
  RandomStream stream(std::uint64_t epoch, std::uint64_t record) const;

 private:
  std::uint64_t seed_;
  std::string purpose_;
  std::vector<RandomStream> first_;  ///< of the first epochs
};

/// Memory that records pass through one after the other: for one thread, its content of no meaning
/// between them.
struct Scratch {
  std::vector<std::uint32_t> words;   ///< random words
  std::vector<std::uint8_t> flags;    ///< one a token
  std::vector<std::int32_t> numbers;  ///< positions
};

/// Changes records. Immutable, thread-safe: the result depends on the record, its number and epoch
/// alone.
class Corruption {
 public:
  Corruption() = default;
  Corruption(const Corruption&) = delete;
  Corruption& operator=(const Corruption&) = delete;
  virtual ~Corruption() = default;

  /// Changes `record` and adds to `tally` what it did, but not records and numbers of tokens.
  /// Throws InputError (message only) if the record does not fit; it may then be changed in part.
  /// Several threads may call it, each with a `scratch` of its own.
  virtual void apply(Record& record, Scratch& scratch, Tally& tally) const = 0;
};

/// `share`, from 0 to 1, as a threshold for 32-bit words: u < share_threshold(p) with probability
/// p, within 2^-32.
std::uint64_t share_threshold(double share);

}  // namespace masque::records
