// Every named mask: what it takes, what it means, where it comes from. One file per group of
// relatives under mask/zoo/ registers its names; parser, help, gallery and tests read the registry.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mask/mask.hpp"
#include "mask/named_mask.hpp"

namespace masque::mask {

/// What a parameter may be.
enum class MaskParameterKind {
  kCount,  ///< a whole number ≥ `least`
  kShare,  ///< a number in [0, 1]
  kSeed,   ///< a whole number ≥ 0
  kList,   ///< the rest: items a, a-b (both ends in) or a@b
  kFile,   ///< a path
};

struct MaskParameter {
  std::string_view name;
  MaskParameterKind kind = MaskParameterKind::kCount;
  std::optional<double> fallback = {};  ///< absent: must be given
  Index least = 0;                      ///< of kCount
};

/// An item of a list: a, a-b or a@b.
struct ListItem {
  Index a = 0;
  std::optional<Index> to;  ///< of a-b
  std::optional<Index> at;  ///< of a@b
};

/// The values of a mask's parameters, defaults filled in.
class MaskValues {
 public:
  Index count(std::string_view name) const;
  double share(std::string_view name) const;
  std::uint64_t seed(std::string_view name) const;
  bool given(std::string_view name) const;
  const std::vector<ListItem>& list() const { return list_; }
  /// The list's items as plain numbers, ranges opened up.
  std::vector<Index> numbers() const;
  const std::string& file() const { return file_; }

 private:
  friend class ValueReader;
  struct Value {
    std::string_view name;
    double number = 0;
    std::uint64_t seed = 0;
    bool given = false;
  };
  const Value& get(std::string_view name) const;
  std::vector<Value> values_;
  std::vector<ListItem> list_;
  std::string file_;
};

/// Which lengths a mask can have.
enum class Fits {
  kAny,
  kSquare,  ///< as many queries as keys
  kParts,   ///< square, and its two numbers add up to the length
  kHalves,  ///< square, and the length is even
};

/// What a text itself can say of a mask, where the argument is left out (MaskExpression::open).
enum class Open {
  kNothing,
  kWords,  ///< the list: how many tokens each word has
  kSeed,   ///< the seed: drawn anew for each text. Elsewhere the parameter has its default
};

/// A named mask.
struct MaskKind {
  std::string_view name;
  std::vector<MaskParameter> parameters;
  std::string_view formula;  ///< when (i, j) is visible
  std::string_view origin;   ///< where it comes from
  std::string_view pairs;    ///< number of visible pairs at length n, as a formula; empty if none
  std::string_view example;  ///< an expression for a picture of 16 tokens
  /// Builds it. Throws UsageError (message only) for values that do not fit the lengths.
  Mask (*build)(const MaskValues& values, Lengths lengths);
  /// The closed form of `pairs`, if there is one; for tests.
  std::uint64_t (*count)(const MaskValues& values, Index n) = nullptr;
  Fits fits = Fits::kAny;
  /// The lengths that the values themselves ask for, if they do (documents add up to one); of
  /// kParts it is the sum of the two numbers.
  std::optional<Lengths> (*own)(const MaskValues& values) = nullptr;
  Open open = Open::kNothing;
};

/// All registered masks, sorted by name.
std::span<const MaskKind* const> mask_kinds();

/// nullptr if there is none of this name.
const MaskKind* find_mask_kind(std::string_view name);

struct MaskRegistration {
  explicit MaskRegistration(const MaskKind& kind);
};

/// What is wrong with a name and its arguments, without lengths. With `open`, words may be left to
/// the text.
struct MaskProblem {
  std::string message;
  std::size_t column = 0;  ///< in the expression, from 1; 0: of the name
};
std::optional<MaskProblem> check_mask(const NamedMask& named, bool open = false);

/// What a name leaves to the text. Must have passed check_mask with `open`.
Open open_part(const NamedMask& named);

/// The values of a name's arguments. Must have passed check_mask.
MaskValues mask_values(const NamedMask& named);

/// The lengths that a name asks for by its values. Must have passed check_mask.
std::optional<Lengths> mask_lengths(const NamedMask& named);

/// The mask of a name. Throws UsageError for values and lengths that do not fit, and for words that
/// are left to a text.
Mask build_mask(const NamedMask& named, Lengths lengths);

}  // namespace masque::mask
