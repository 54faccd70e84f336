// Small designs of every variant that training has.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/design.hpp"
#include "model/family.hpp"
#include "train/data/example.hpp"

namespace masque::test {

struct NetworkCase {
  std::string name;
  model::Design design;
  std::optional<model::ModelPlan> plan;  ///< none: saved_design(design).plan
};

/// A transformer of two layers: hidden size 8, two heads, 13 tokens, post-norm, masked head.
model::Design small_design();

/// One of each position scheme, normalizer, mixer, arrangement.
std::vector<NetworkCase> network_cases();

/// Two sequences of 5 and 3 tokens with some rows wanted, and masks where two streams want them.
std::vector<train::Example> small_examples(const model::Design& design);

/// Moves the wanted rows of `chunk` to the ones before them, where a head of `design` reads those.
void shift_wanted(const model::Design& design, train::ExampleChunk& chunk);

}  // namespace masque::test
