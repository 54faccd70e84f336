#include "length/arms.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/name_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "mask/expression.hpp"
#include "model/variants.hpp"
#include "train/run/mask_check.hpp"

namespace masque::length {

namespace {

constexpr Index kMostTokens = 1000000;
constexpr Index kMostHeads = 10000;

constexpr std::string_view kHeads = "num_attention_heads";
constexpr std::string_view kMasks = "mask";

/// What may be a list.
struct Choice {
  std::string_view name;
  std::string train::DesignRecipe::*field;  ///< nullptr: heads, masks
  bool bare_names = false;                  ///< whether a name is clear without the field's
  std::vector<std::string> names = {};
};

Index heads_of(const std::string& text) {
  const auto heads = parse_number<Index>(text);
  if (!heads || *heads < 1 || *heads > kMostHeads) {
    throw UsageError(fmt::format("{}: found '{}', expected numbers from 1 to {}",
                                 field("num_attention_heads"), escape(text), kMostHeads));
  }
  return *heads;
}

std::vector<std::string> names_of(const std::vector<std::vector<mask::MaskLayer>>& masks) {
  std::vector<std::string> names;
  names.reserve(masks.size());
  for (const auto& one : masks)
    names.push_back(one.empty() ? std::string(kOwn) : mask::layers_text(one));
  return names;
}

/// As set_mask takes it; empty: the objective's.
std::string mask_of(const std::string& name, const train::DesignRecipe& recipe) {
  const std::vector<mask::MaskLayer> masks = parse_masks(name).front();
  if (masks.empty()) return "";
  model::Design design;
  design.num_hidden_layers = recipe.num_hidden_layers;
  design.num_attention_heads = recipe.num_attention_heads;
  train::set_given_masks(name, design);
  if (std::ranges::any_of(masks, [](const mask::MaskLayer& one) { return one.mask.open(); })) {
    throw UsageError(fmt::format(
        "{} '{}': depends on words or a seed of each text, expected a mask of positions alone",
        field("mask"), escape(name)));
  }
  return name;
}

void choose(const Choice& choice, const std::string& name, LengthArm& arm) {
  if (choice.field != nullptr) {
    const bool attention = choice.field == &train::DesignRecipe::mixer && name == "none";
    arm.recipe.*choice.field = attention ? "" : name;
  } else if (choice.name == kHeads) {
    arm.recipe.num_attention_heads = heads_of(name);
  } else {
    arm.mask = mask_of(name, arm.recipe);
  }
}

}  // namespace

std::vector<Index> parse_lengths(std::string_view name, std::string_view text, Index least) {
  const auto refuse = [&]() {
    throw UsageError(fmt::format(
        "{}: found '{}', expected different numbers from {} to {}, such as 64,128 or 1-40",
        field(name), escape(text), least, kMostTokens));
  };
  const auto number = [&](std::string_view word) {
    const auto value = parse_number<Index>(word);
    if (!value || *value < least || *value > kMostTokens) refuse();
    return *value;
  };
  std::vector<Index> lengths;
  for (const std::string_view word : split(text, ',')) {
    const auto [begin, end] = split_at_first(word, '-');
    const Index first = number(begin);
    const Index last = end ? number(*end) : first;
    const auto count = static_cast<Index>(lengths.size()) + last - first + 1;
    if (last < first || count > kMostTokens) refuse();  // more cannot be different
    for (Index length = first; length <= last; ++length) lengths.push_back(length);
  }
  std::vector<Index> sorted = lengths;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) refuse();
  return lengths;
}

std::vector<std::vector<mask::MaskLayer>> parse_masks(std::string_view text) {
  std::vector<std::vector<mask::MaskLayer>> all;
  for (const std::string_view part : split(text, ';')) {
    const std::string name(trim(part));
    auto& masks = all.emplace_back();
    if (name != kOwn) masks = mask::parse_open_mask_layers(name);
    if (std::ranges::count(all, masks) > 1) {
      throw UsageError(
          fmt::format("{}: found '{}', expected different masks separated by semicolons",
                      field("mask"), escape(text)));
    }
  }
  return all;
}

std::vector<LengthArm> make_arms(const train::DesignRecipe& recipe, std::string_view heads,
                                 std::string_view masks) {
  using train::DesignRecipe;
  std::array<Choice, 9> choices{{{"layer_kind", &DesignRecipe::layer_kind, true},
                                 {"norm_placement", &DesignRecipe::norm_placement, true},
                                 {kHeads, nullptr},
                                 {"mixer", &DesignRecipe::mixer},
                                 {"talking_heads", &DesignRecipe::talking_heads},
                                 {"previous_scores", &DesignRecipe::previous_scores},
                                 {kMasks, nullptr},
                                 {"position", &DesignRecipe::position, true},
                                 {"normalizer", &DesignRecipe::normalizer, true}}};
  bool varies = false;
  for (Choice& choice : choices) {
    std::string text = choice.field != nullptr ? recipe.*choice.field
                       : choice.name == kHeads ? std::string(heads)
                                               : std::string(masks);
    if (choice.field == &DesignRecipe::mixer && text.empty()) text = "none";
    choice.names =
        choice.name == kMasks ? names_of(parse_masks(text)) : split_names(choice.name, text);
    if (choice.field == &DesignRecipe::position) {
      // One spelling of each, so that none is there twice.
      std::string spelled;
      for (const std::string& name : choice.names)
        spelled += (spelled.empty() ? "" : ",") + model::position_text(name);
      choice.names = split_names(choice.name, spelled);
    }
    varies = varies || choice.names.size() > 1;
  }
  std::vector<LengthArm> arms{{"", recipe}};
  for (const Choice& choice : choices) {
    // A single design is called by these two.
    const bool always = !varies && (choice.field == &DesignRecipe::position ||
                                    choice.field == &DesignRecipe::normalizer);
    std::vector<LengthArm> more;
    for (const LengthArm& arm : arms) {
      for (const std::string& name : choice.names) {
        LengthArm next = arm;
        choose(choice, name, next);
        if (choice.names.size() > 1 || always) {
          next.name += (next.name.empty() ? "" : " ") +
                       (choice.bare_names ? name : fmt::format("{}={}", choice.name, name));
        }
        more.push_back(std::move(next));
      }
    }
    arms = std::move(more);
  }
  std::vector<std::pair<model::Design, std::string>> designs;
  std::erase_if(arms, [&](const LengthArm& arm) {
    DesignRecipe checked = arm.recipe;
    checked.vocab_size = checked.max_position_embeddings = 1;
    const std::pair design{design_of(checked), arm.mask};
    if (std::ranges::find(designs, design) != designs.end()) return true;
    designs.push_back(design);
    return false;
  });
  return arms;
}

}  // namespace masque::length
