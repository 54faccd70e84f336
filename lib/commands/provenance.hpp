// Provenance: how a result says how it was made, and results of parts, which a tool printed as
// JSON lines, read again to merge them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "evaluate/statistics/summary.hpp"
#include "kernel/number/precision.hpp"

namespace masque::commands {

/// Reads members of one line's object, or of one inside it. InputError for what is missing, of
/// another kind, or no finite number. Cheap to copy; `expected` outlives it.
class ResultReader {
 public:
  /// `expected` ends the message about a missing member: "a line that --json printed".
  explicit constexpr ResultReader(std::string_view expected) : expected_(expected) {}

  /// The member `name` of `root`, which is of this `kind`. The reference is into `root`.
  const JsonValue& member(const JsonValue& root, std::string_view name, JsonKind kind) const;
  /// The string `name` of `root`. The reference is into `root`.
  const std::string& text(const JsonValue& root, std::string_view name) const;
  /// The finite number `name` of `root`.
  double number(const JsonValue& root, std::string_view name) const;
  /// The whole number from 0 `name` of `root`.
  std::uint64_t count(const JsonValue& root, std::string_view name) const;
  /// The members `n`, `mean` and `sum_squares` of `root`.
  evaluate::Moments moments(const JsonValue& root) const;

 private:
  std::string_view expected_;
};

/// The member of a part with the number of lines that were left out of it; none: 0.
inline constexpr std::string_view kLeftOut = "skipped";
// The members of a part with digests of what it has read.
inline constexpr std::string_view kInputDigest = "input_xxh3";      ///< of the whole input
inline constexpr std::string_view kWeightsDigest = "weights_xxh3";  ///< of all tensors
inline constexpr std::string_view kConfigDigest = "config_xxh3";    ///< of config.json
inline constexpr std::string_view kMaskDigest = "mask_xxh3";        ///< of a mask that was given
inline constexpr std::string_view kTokenizerDigest = "tokenizer_xxh3";  ///< tokenizer_digest()

/// The members that say how a result was made: their names, and their values as JSON.
using ProvenanceMembers = std::vector<std::pair<std::string, std::string>>;

/// The members of `root`, a line, but for its `results`, which are all of the others: a member that
/// is new says how a result was made until it is listed there. Throws InputError for a value that
/// is an array or an object.
ProvenanceMembers provenance_of(const JsonValue& root, std::span<const std::string_view> results);
/// `members` as JSON has them, without braces: "model":"m","mask":"causal".
std::string provenance_text(const ProvenanceMembers& members);
/// `members` without the digests of what a part has read.
ProvenanceMembers without_contents(const ProvenanceMembers& members);
/// The precision that `members` name; f32 where they name none.
kernel::Precision precision_of(const ProvenanceMembers& members);
/// Throws InputError that begins with `what` and names the members in which `found`, of this part,
/// and `expected`, of the parts before, differ, or says which of the digests of what they have
/// read do; does nothing if they are equal, in any order.
void check_provenance(std::string_view what, const ProvenanceMembers& found,
                      const ProvenanceMembers& expected);

/// Returns the lines of a part of a run: `objects`, each JSON in one line without its end. The last
/// members of each are "line", which line of how many it is, as 2/7, and "xxh3", the digest of it
/// and of all lines of the part before it, which for_each_result() compares.
std::string part_lines(std::span<const std::string> objects);

/// Calls `use` with the value of every line of `text`, the content of a file, that is not empty;
/// lines of part_lines() come without the last two members. Throws InputError "path: line N: …"
/// with this `path` for what is not JSON, for a line of part_lines() that was changed since, or
/// does not follow the one before it, for a line with a "shard" that is none of part_lines(), and
/// for an InputError of `use`; and InputError for a part whose last lines are missing.
void for_each_result(std::string_view text, const std::string& path,
                     const std::function<void(const JsonValue& root)>& use);

}  // namespace masque::commands
