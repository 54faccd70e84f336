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
  kList,   ///< the rest: items `a`, `a-b` (both ends in) or `a@b`
  kFile,   ///< a path
  kText,   ///< a text without a meaning here: cells
};

/// A parameter of a named mask.
struct MaskParameter {
  std::string_view name;                               ///< as in "name=value"
  MaskParameterKind kind = MaskParameterKind::kCount;  ///< what it may be
  std::optional<double> fallback = {};                 ///< absent: must be given
  Index least = 0;                                     ///< of kCount
};

/// An item of a list: `a`, `a-b` or `a@b`. Numbers are from 0 to 2^32.
struct ListItem {
  Index a = 0;              ///< the first number
  std::optional<Index> to;  ///< of `a-b`: b, at least a
  std::optional<Index> at;  ///< of `a@b`: b
};

/// The values of a mask's parameters, defaults filled in.
class MaskValues {
 public:
  /// The number of the parameter `name`, of kCount. Here and below the mask must have the
  /// parameter.
  Index count(std::string_view name) const;
  /// The number of the parameter `name`, of kShare.
  double share(std::string_view name) const;
  /// The number of the parameter `name`, of kSeed.
  std::uint64_t seed(std::string_view name) const;
  /// Whether the number or choice `name` was given; else it has its default. Not for lists, files
  /// and texts.
  bool given(std::string_view name) const;
  /// The items of the list; empty if the mask has none.
  const std::vector<ListItem>& list() const { return list_; }
  /// The list's items as plain numbers, ranges opened up. Throws UsageError for more than 10
  /// million.
  std::vector<Index> numbers() const;
  /// The path of kFile; empty if the mask has none.
  const std::string& file() const { return file_; }
  /// The text of kText; empty if the mask has none.
  const std::string& text() const { return text_; }

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
  std::string text_;
};

/// Which lengths a mask can have.
enum class Fits {
  kAny,     ///< all
  kSquare,  ///< as many queries as keys
  kParts,   ///< square, and its two numbers add up to the length
  kHalves,  ///< square, and the length is even
};

/// What a text itself can say of a mask, where the argument is left out (MaskExpression::open).
enum class Open {
  kNothing,  ///< nothing may be left out
  kWords,    ///< the list: how many tokens each word has
  kSeed,     ///< the seed: drawn anew for each text. Elsewhere the parameter has its default
};

/// A named mask.
struct MaskKind {
  std::string_view name;                  ///< in the mask language
  std::vector<MaskParameter> parameters;  ///< by position
  std::string_view formula;               ///< when (i, j) is visible
  std::string_view origin;                ///< where it comes from
  std::string_view pairs;    ///< number of visible pairs at length n, as a formula; empty if none
  std::string_view example;  ///< an expression for a picture of 16 tokens
  /// Builds it. Throws UsageError (message only) for values that do not fit the lengths, InputError
  /// for a file that cannot be read.
  Mask (*build)(const MaskValues& values, Lengths lengths);
  /// The closed form of `pairs`, if there is one; for tests.
  std::uint64_t (*count)(const MaskValues& values, Index n) = nullptr;
  Fits fits = Fits::kAny;  ///< lengths that it can have
  /// The lengths that the values themselves ask for, if they do (documents add up to one); of
  /// kParts it is the sum of the two numbers.
  std::optional<Lengths> (*own)(const MaskValues& values) = nullptr;
  Open open = Open::kNothing;  ///< what a text may say
};

/// All registered masks, sorted by name. They stay to the end of the program.
std::span<const MaskKind* const> mask_kinds();

/// The mask `name`; nullptr if there is none.
const MaskKind* find_mask_kind(std::string_view name);
/// Whether the mask `name`, if there is one, has a parameter of `kind`.
bool has_mask_parameter(std::string_view name, MaskParameterKind kind);

/// Registers a mask: a static object in the mask's file.
struct MaskRegistration {
  /// Adds `kind`, a static object, too; before main.
  explicit MaskRegistration(const MaskKind& kind);
};

/// What is wrong with a name or its arguments.
struct MaskProblem {
  std::string message;     ///< what was found, and what was expected
  std::size_t column = 0;  ///< in the expression, from 1; 0: of the name
};
/// What is wrong with the name or the arguments of `named`, without lengths; nothing if all is
/// well. With `open`, words may be left to the text.
std::optional<MaskProblem> check_mask(const NamedMask& named, bool open = false);

/// What `named` leaves to the text. Must have passed check_mask with `open`.
Open open_part(const NamedMask& named);

/// The values of the arguments of `named`. Must have passed check_mask.
MaskValues mask_values(const NamedMask& named);

/// The lengths that `named` asks for by its values. Must have passed check_mask, perhaps with
/// `open`.
std::optional<Lengths> mask_lengths(const NamedMask& named);

/// The mask of `named` for `lengths`. Must have passed check_mask, perhaps with `open`. Throws
/// UsageError for values and lengths that do not fit, and for words that are left to a text;
/// InputError for a file that cannot be read.
Mask build_mask(const NamedMask& named, Lengths lengths);

}  // namespace masque::mask
