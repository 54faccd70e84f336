// The mask language: names with parameters, & | ~ and parentheses, lists of layers.
//
//   layers     := layer ("," layer)*            layer := [count "*"] (mask | heads)
//   heads      := "[" head ("," head)* "]"       head  := [count "*"] mask
//   mask       := and ("|" and)*                and := unary ("&" unary)*
//   unary      := "~" unary | "(" mask ")" | name ["(" argument ("," argument)* ")"]
//   argument   := [name "="] value              value := number | a-b | a@b | "text" | word
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mask/bit_matrix.hpp"
#include "mask/mask.hpp"
#include "mask/named_mask.hpp"

namespace masque::mask {

/// A parsed mask, not yet bound to lengths. Immutable; copies share.
class MaskExpression {
 public:
  /// A name with its arguments, an operator, or a list with one mask for each head of a layer.
  enum class Kind { kName, kAnd, kOr, kNot, kHeads };

  /// The mask `name` with `arguments`, not checked; `column` is where it stands in a text, from 1,
  /// or 0.
  MaskExpression(std::string name, std::vector<MaskArgument> arguments, std::size_t column = 0);
  /// `kind`, an operator, of `a` and, but for kNot, `b`; `column` as above.
  MaskExpression(Kind kind, MaskExpression a, std::optional<MaskExpression> b,
                 std::size_t column = 0);
  /// kHeads: the masks of the heads of a layer, at least one and none of them kHeads.
  explicit MaskExpression(std::vector<MaskExpression> heads);

  /// What it is.
  Kind kind() const;
  /// Name and arguments of kName. The reference lives as long as a copy of the expression.
  const NamedMask& named() const;
  /// The name of kName; empty for an operator.
  const std::string& name() const { return named().name; }
  /// The arguments of kName, as they were written.
  const std::vector<MaskArgument>& arguments() const { return named().arguments; }
  /// Operands: one of kNot, two of kAnd and kOr, one a head of kHeads.
  const std::vector<MaskExpression>& operands() const;
  /// The masks of the heads of kHeads; empty for what is one mask for all heads.
  std::span<const MaskExpression> heads() const;
  /// What any of the heads() may read, as one mask; without heads the expression itself.
  MaskExpression any_head() const;

  /// The expression in the language, with as few parentheses as it needs: parse(text()) equals it.
  std::string text() const;
  bool operator==(const MaskExpression& other) const;

  /// The mask for `lengths`. Names and arguments must have passed check_mask, as those of a parsed
  /// text have. Throws UsageError "NAME: …" for values or lengths that do not fit, for words that
  /// are left to a text and for kHeads, InputError for files that cannot be read.
  Mask bind(Lengths lengths) const;

  /// Throws UsageError "'MASK' for a sequence of N tokens: the mask is for n × m tokens" if
  /// own_lengths() are others than `length` × `length`.
  void check_sequence(Index length) const;
  /// The mask for a sequence of `length` tokens, after that check; what bind() refuses is reported
  /// in the same words.
  Mask bind_sequence(Index length) const;

  /// The lengths that a name in it asks for by itself: document(3,5) asks for 8 × 8, explicit(FILE)
  /// for those of the file. Nothing if none does. Throws InputError for a file that cannot be read.
  std::optional<Lengths> own_lengths() const;

  /// Whether a name in it leaves something to each text (Open in mask/zoo.hpp): tta_word its words,
  /// disco its seed.
  bool open() const;
  /// The expression with what the text says: the lengths of its `words` in tokens, one after the
  /// other, and a `seed` of its own. Not open, unless a name needs words and there are none.
  MaskExpression closed(std::span<const Index> words, std::uint64_t seed) const;
  /// text() for a message: the cells of `matrix` are cut after 40 bytes.
  std::string shown() const;

 private:
  struct Node;
  std::shared_ptr<const Node> node_;
};

/// One mask of a list of layers, and for how many layers it stands.
struct MaskLayer {
  Index count = 1;      ///< number of layers, from 1 to 100000
  MaskExpression mask;  ///< of each of them
  bool operator==(const MaskLayer&) const = default;
};

/// Whether a mask may name a file to read. Only what a user has typed may: data, such as a record
/// or a config.json, names no files to open.
enum class MaskFiles { kRefused, kAllowed };

/// Parses `text` as one mask. Throws UsageError "'TEXT': column N: what was found, what was
/// expected"; names and numbers of arguments are checked too, and that no file is named unless
/// `files` are allowed. Cost O(length); nesting at most 200, names at most 1000.
MaskExpression parse_mask(std::string_view text, MaskFiles files = MaskFiles::kRefused);

/// Parses `text` in the same way; words may be left to each text: "tta_word".
MaskExpression parse_open_mask(std::string_view text);

/// Parses `text` as a list of layers: "3*window(128), full", where a layer may have one mask a
/// head: "[2*causal, 6*window(128)]". Throws as parse_mask, with the same meaning of `files`.
std::vector<MaskLayer> parse_mask_layers(std::string_view text,
                                         MaskFiles files = MaskFiles::kRefused);

/// Parses `text` in the same way, with `files` as there; words may be left to each text:
/// "tta_word".
std::vector<MaskLayer> parse_open_mask_layers(std::string_view text,
                                              MaskFiles files = MaskFiles::kRefused);

/// `layers` in the language: parse_mask_layers() reads it back, if none is open.
std::string layers_text(const std::vector<MaskLayer>& layers);
/// `layers` for a message: as layers_text() of MaskExpression::shown().
std::string shown_layers(const std::vector<MaskLayer>& layers);

// A mask of cells as an expression of the mask language, which names no file.

/// The expression `matrix(keys,"rows")` with the cells of `bits`, which has as many rows as
/// columns, at least one. Cost and memory O(cells).
MaskExpression matrix_mask(const BitMatrix& bits);

}  // namespace masque::mask
