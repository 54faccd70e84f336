// The mask language: names with parameters, & | ~ and parentheses, lists of layers.
//
//   layers     := layer ("," layer)*            layer := [count "*"] mask
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

#include "mask/mask.hpp"
#include "mask/named_mask.hpp"

namespace masque::mask {

/// A parsed mask, not yet bound to lengths. Immutable; copies share.
class MaskExpression {
 public:
  enum class Kind { kName, kAnd, kOr, kNot };

  MaskExpression(std::string name, std::vector<MaskArgument> arguments, std::size_t column = 0);
  MaskExpression(Kind kind, MaskExpression a, std::optional<MaskExpression> b,
                 std::size_t column = 0);

  Kind kind() const;
  /// Of kName.
  const NamedMask& named() const;
  const std::string& name() const { return named().name; }
  const std::vector<MaskArgument>& arguments() const { return named().arguments; }
  /// Operands: one of kNot, two of kAnd and kOr.
  const std::vector<MaskExpression>& operands() const;

  /// The expression in the language, with as few parentheses as it needs: parse(text()) equals it.
  std::string text() const;
  bool operator==(const MaskExpression& other) const;

  /// The mask for given lengths. Throws UsageError "column N: …" for an unknown name or parameters
  /// that do not fit, InputError for files that cannot be read.
  Mask bind(Lengths lengths) const;

  /// Throws UsageError "'MASK' for a sequence of N tokens: the mask is for n × m tokens" if
  /// own_lengths() are others.
  void check_sequence(Index length) const;
  /// The mask for a sequence of so many tokens, after that check; what bind() refuses is reported
  /// in the same words.
  Mask bind_sequence(Index length) const;

  /// The lengths that a name in it asks for by itself: document(3,5) asks for 8 × 8, explicit(FILE)
  /// for those of the file. Nothing if none does.
  std::optional<Lengths> own_lengths() const;

  /// Whether a name in it leaves something to each text (Open in mask/zoo.hpp): tta_word its words,
  /// disco its seed.
  bool open() const;
  /// The expression with what the text says: the lengths of its words, one after the other, and a
  /// seed of its own. Not open.
  MaskExpression closed(std::span<const Index> words, std::uint64_t seed) const;
  /// The first name in it that reads a file; empty: none does.
  std::string_view file_reader() const;

 private:
  struct Node;
  std::shared_ptr<const Node> node_;
};

/// One mask of a list of layers, and for how many layers it stands.
struct MaskLayer {
  Index count = 1;
  MaskExpression mask;
  bool operator==(const MaskLayer&) const = default;
};

/// Parses one mask. Throws UsageError "'TEXT': column N: what was found, what was expected"; names
/// and numbers of arguments are checked too. Cost O(length); nesting at most 200.
MaskExpression parse_mask(std::string_view text);

/// The same, with a mask whose words are left to each text: "tta_word".
MaskExpression parse_open_mask(std::string_view text);

/// Parses a list of layers: "3*window(128), full".
std::vector<MaskLayer> parse_mask_layers(std::string_view text);

/// The same, with masks whose words are left to each text: "tta_word".
std::vector<MaskLayer> parse_open_mask_layers(std::string_view text);

/// The list in the language.
std::string layers_text(const std::vector<MaskLayer>& layers);

}  // namespace masque::mask
