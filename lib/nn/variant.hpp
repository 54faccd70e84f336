// The description of each variant: the rows of `attn-probe variants`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace masque::nn {

/// Which masks a variant supports: a hidden key reaches no row through it. From many to few.
enum class MaskSupport {
  kAny,
  kCausal,  ///< the full and the causal mask
  kFull,    ///< the full mask only
};

/// The name of `masks` in tables and messages: "any", "full, causal", "full".
std::string_view masks_text(MaskSupport masks);

/// One variant, as its registry entry describes itself. Texts are short and of one line.
struct VariantInfo {
  std::string kind;        ///< "normalizer", "position", "mixer", "structure", "evaluation"
  std::string name;        ///< as on the command line
  std::string parameters;  ///< "base=512, clip=16"; trained ones with their shapes; empty: none
  std::string masks;       ///< masks_text of the supported masks
  bool exact = true;       ///< false: an approximation
  std::string cost;    ///< "n² d" and the like: multiplications of one layer, n tokens, width d
  std::string source;  ///< author, year, arXiv number or address
  /// Fields and values of a design that select it; N is a size of the user's choice. Empty: tools
  /// choose it themselves.
  std::vector<std::pair<std::string, std::string>> use = {};
};

/// All variants of all registries, by kind, then name.
std::vector<VariantInfo> variants();

/// Registers a registry with `variants`. Each registry has one, in the file that holds it.
struct VariantSource {
  /// Adds the registry whose entries `list` returns; variants() calls it each time.
  explicit VariantSource(std::vector<VariantInfo> (*list)());
};

}  // namespace masque::nn
