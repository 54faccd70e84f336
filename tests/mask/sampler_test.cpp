#include "mask/sampler.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "mask/permutation.hpp"

namespace masque::mask {
namespace {

double share(const std::vector<bool>& flags) {
  return static_cast<double>(std::count(flags.begin(), flags.end(), true)) /
         static_cast<double>(flags.size());
}

TEST_CASE("XLNet selects exactly num_predict of 512: 85, never a functional token") {
  std::vector<bool> functional(512, false);
  functional[255] = functional[510] = functional[511] = true;
  for (std::uint64_t i = 0; i < 200; ++i) {
    Draw draw(4, "spans", i);
    const auto selected = select_spans(512, {.predict = 85}, functional, draw);
    CHECK(std::count(selected.begin(), selected.end(), true) == 85);
    for (std::size_t j = 0; j < 512; ++j) CHECK_FALSE((selected[j] && functional[j]));
  }
}

TEST_CASE("transformers' collator selects about a sixth, within 3 sigma") {
  const std::vector<bool> none(512, false);
  double sum = 0;
  double squares = 0;
  const int runs = 4000;
  for (int i = 0; i < runs; ++i) {
    Draw draw(5, "hf", static_cast<std::uint64_t>(i));
    const double selected = share(select_spans_hf(512, none, draw));
    sum += selected;
    squares += selected * selected;
  }
  const double mean = sum / runs;
  const double sigma = std::sqrt((squares / runs - mean * mean) / runs);
  // The expectation, from the chances of where contexts of 6 … 30 tokens begin.
  CHECK(std::abs(mean - 0.16664671) < 3 * sigma);
}

TEST_CASE("XLNet's visibility: who reads whom follows from selection and rank") {
  PermutationRequest request;
  request.length = 60;
  request.seed = 7;
  request.selection.predict = 12;
  request.functional.assign(60, false);
  request.functional[59] = true;
  const PermutationDraw draw = xlnet_permutation(request);
  const Mask mask = draw.mask();
  for (Index i = 0; i < 60; ++i) {
    for (Index j = 0; j < 60; ++j) {
      const auto a = static_cast<std::size_t>(i);
      const auto b = static_cast<std::size_t>(j);
      const bool plain_i = !draw.selected[a] && !request.functional[a];
      const bool plain_j = !draw.selected[b] && !request.functional[b];
      bool expected = plain_j;  // ordinary tokens are read by all
      if (!plain_j && !plain_i) {
        expected = draw.selected[a] ? draw.rank[b] < draw.rank[a] : draw.rank[b] <= draw.rank[a];
      }
      CHECK(mask.allows(i, j) == expected);
    }
  }
}

TEST_CASE("transformers uses one order for both halves") {
  int both = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const PermutationDraw own = xlnet_hf_permutation(40, seed);
    for (std::size_t i = 0; i < 20; ++i) {
      if (!own.selected[i] || !own.selected[i + 20]) continue;
      CHECK(own.rank[i] + 20 == own.rank[i + 20]);
      ++both;
    }
  }
  CHECK(both > 0);
  const PermutationDraw draw = xlnet_hf_permutation(40, 3);
  const Mask mask = draw.mask();
  for (Index i = 0; i < 40; ++i) {
    for (Index j = 0; j < 40; ++j) {
      const auto a = static_cast<std::size_t>(i);
      const auto b = static_cast<std::size_t>(j);
      CHECK(mask.allows(i, j) == !(draw.rank[a] <= draw.rank[b] && draw.selected[b]));
    }
  }
}

}  // namespace
}  // namespace masque::mask
