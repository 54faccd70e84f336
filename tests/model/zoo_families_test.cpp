// The page of the families says which of them has each position scheme, normalizer, mask and mixer:
// by the designs of tests/data/model and, both parts, of tests/data/encoder_decoder.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "mask/zoo.hpp"
#include "model/family.hpp"
#include "model/family_config.hpp"
#include "model/known_keys.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/normalizer.hpp"
#include "nn/position/position_scheme.hpp"
#include "store/config.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

/// Families by what they have: "alibi".
using Has = std::map<std::string, std::set<std::string>, std::less<>>;

std::vector<std::string> names_of_masks() {
  std::vector<std::string> names;
  for (const mask::MaskKind* kind : mask::mask_kinds()) names.emplace_back(kind->name);
  return names;
}

std::vector<std::string> names_of_normalizers() {
  std::vector<std::string> names;
  for (const nn::AttentionNormalizer* one : nn::normalizers()) names.emplace_back(one->name());
  return names;
}

std::vector<std::string> names_of_mixers() {
  std::vector<std::string> names;
  for (const nn::Mixer* one : nn::mixers()) names.emplace_back(one->info().name);
  return names;
}

/// The words of `text` that are among `names`.
std::set<std::string> named_in(std::string_view text, const std::vector<std::string>& names) {
  std::set<std::string> found;
  std::string word;
  for (const char c : std::string(text) + " ") {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9' && !word.empty()) || c == '_') {
      word += c;
      continue;
    }
    if (std::ranges::find(names, word) != names.end()) found.insert(word);
    word.clear();
  }
  return found;
}

/// The scheme of nn that computes what the positions of `design` do.
std::string scheme_of(const Design& design) {
  if (const auto scheme = position_scheme(design)) return std::string(scheme->name());
  switch (design.position) {
    case PositionType::kT5: return "t5";
    case PositionType::kXlnet: return "xlnet";
    case PositionType::kDisentangled: return "deberta";
    default: return std::string(own_position(design.position).scheme);
  }
}

/// Of config.json's kinds of scaled angles, those that nn has.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kScalings{
    {{"type\": \"linear\"", "rope_pi"},
     {"type\": \"dynamic\"", "rope_ntk"},
     {"type\": \"yarn\"", "rope_yarn"}}};

struct Zoo {
  Has positions, normalizers, masks, mixers;
};

/// Adds what `design`, of `family` by the text `config`, has.
void add_design(const Family& family, const Design& design, std::string_view config, Zoo& zoo) {
  const std::string name = "`" + std::string(family.name) + "`";
  for (const std::string& mask : layer_mask_texts(design)) {
    for (const std::string& kind : named_in(mask, names_of_masks())) zoo.masks[kind].insert(name);
  }
  if (design.variants.mixer != nullptr) {
    zoo.mixers[std::string(mixer_name(design))].insert(name);
    return;
  }
  zoo.positions[scheme_of(design)].insert(name);
  for (const auto& [spelled, scheme] : kScalings) {
    if (design.position == PositionType::kRotary && config.find(spelled) != std::string_view::npos)
      zoo.positions[std::string(scheme)].insert(name);
  }
  for (const std::string& kind : named_in(design.normalizer.text(), names_of_normalizers()))
    zoo.normalizers[kind].insert(name);
}

Zoo zoo_of_families() {
  Zoo zoo;
  const auto add = [&](const test::ModelCase& one, bool both) {
    const auto config = store::ModelConfig::find(one.folder);
    const Family& family = choose_family(*config, "");
    if (family.name == "masque") return;
    const FamilyConfig keys(*config);
    add_design(family, read_plan(family, keys).design, config->text(), zoo);
    if (both) add_design(family, family.decoder(keys).design, config->text(), zoo);
  };
  for (const test::ModelCase& one : test::model_cases()) add(one, false);
  for (const test::ModelCase& one : test::encoder_decoder_cases()) add(one, true);
  return zoo;
}

/// The rows of one kind, and the names of `all` that no family has.
std::pair<std::string, std::string> rows_of(std::string_view kind, const Has& has,
                                            std::vector<std::string> all) {
  std::ranges::sort(all);
  std::string rows;
  std::vector<std::string> others;
  for (const std::string& name : all) {
    const auto found = has.find(name);
    if (found == has.end()) {
      others.push_back("`" + name + "`");
    } else {
      rows += fmt::format(
          "| {} `{}` | {} |\n", kind, name,
          name == "softmax" ? "all others" : fmt::format("{}", fmt::join(found->second, ", ")));
    }
  }
  return {rows, fmt::format("* {}s: {}\n", kind, fmt::join(others, ", "))};
}

TEST_CASE("the page of the families says which has each part of the zoo") {
  const Zoo zoo = zoo_of_families();
  std::string table, others;
  for (const auto& [kind, has, all] :
       {std::tuple("position", &zoo.positions, nn::position_names()),
        std::tuple("normalizer", &zoo.normalizers, names_of_normalizers()),
        std::tuple("mask", &zoo.masks, names_of_masks()),
        std::tuple("mixer", &zoo.mixers, names_of_mixers())}) {
    const auto [rows, rest] = rows_of(kind, *has, all);
    table += rows;
    others += rest;
  }
  const std::string page = test::read_file(MASQUE_SOURCES "/../apps/families.md");
  CHECK_MESSAGE(page.find(table) != std::string::npos, "expected:\n" << table);
  CHECK_MESSAGE(page.find(others) != std::string::npos, "expected:\n" << others);
}

}  // namespace
}  // namespace masque::model
