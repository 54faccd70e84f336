// The generator against its paper, the normal numbers against the standard library and statistics.
#include "base/random/random.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <vector>

#include <doctest/doctest.h>

#include "base/digest/hash.hpp"
#include "support/near.hpp"

namespace masque {
namespace {

std::vector<double> normals(const RandomStream& stream, std::uint64_t first, std::size_t n) {
  std::vector<double> out(n);
  stream.normal(first, n, out.data());
  return out;
}

/// Mean of a function of (x, y) over two equally long lists.
template <class F>
double mean(const std::vector<double>& x, const std::vector<double>& y, F f) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += f(x[i], y[i]);
  return sum / static_cast<double>(x.size());
}

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  return mean(x, y, [](double a, double b) { return a * b; });
}

TEST_CASE("Philox gives the known answers of its authors") {
  CHECK(philox({0, 0, 0, 0}, 0) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("seed, purpose, item and block each give other numbers") {
  const PhiloxBlock one = RandomStream(1, "a", 0).block(0);
  CHECK(one == RandomStream(1, "a").block(0));
  CHECK(one != RandomStream(2, "a", 0).block(0));
  CHECK(one != RandomStream(1, "b", 0).block(0));
  CHECK(one != RandomStream(1, "a", 1).block(0));
  CHECK(one != RandomStream(1, "a", std::uint64_t{1} << 32).block(0));
  CHECK(one != RandomStream(1, "a", 0).block(1));
  CHECK(one != RandomStream(1, "a", 0).block(std::uint64_t{1} << 32));
}

TEST_CASE("any part of a stream of normals equals that part of the whole") {
  const RandomStream stream(7, "part");
  const std::vector<double> whole = normals(stream, 0, 64);
  for (std::size_t first = 0; first < 20; ++first) {
    for (std::size_t n = 0; n < 20; ++n) {
      const std::vector<double> part = normals(stream, first, n);
      CAPTURE(first);
      CAPTURE(n);
      REQUIRE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<long>(first)));
    }
  }
  const std::uint64_t far = (std::uint64_t{1} << 40) + 3;
  CHECK(normals(stream, far, 9)[5] == normals(stream, far + 5, 1)[0]);
}

TEST_CASE("normals are Box-Muller of the stream's words as the standard library computes it") {
  const RandomStream stream(11, "accuracy");
  constexpr std::size_t kBlocks = 50'000;
  std::vector<double> expected;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const PhiloxBlock words = stream.block(i);
    for (std::size_t pair = 0; pair < 4; pair += 2) {
      const double radius = std::sqrt(-2 * std::log((words[pair] + 1.0) * 0x1p-32));
      const double angle = 2 * std::numbers::pi * (words[pair + 1] * 0x1p-32);
      expected.push_back(radius * std::cos(angle));
      expected.push_back(radius * std::sin(angle));
    }
  }
  // 2π·turn itself is rounded in the expectation: an absolute error of up to 7·4e-16.
  CHECK(test::far_off(normals(stream, 0, 4 * kBlocks), expected, 1e-14, 1e-12) == "");
}

TEST_CASE("the moments of a million normals are those of the normal distribution") {
  constexpr std::size_t kCount = 1'000'000;
  const double sigmas = 4 / std::sqrt(static_cast<double>(kCount));
  for (const std::uint64_t seed : {0U, 1U, 2024U}) {
    const std::vector<double> x = normals(RandomStream(seed, "moments"), 0, kCount);
    const auto moment = [&](int power) {
      return mean(x, x, [power](double a, double) { return std::pow(a, power); });
    };
    CAPTURE(seed);
    CHECK(std::abs(moment(1)) < sigmas);
    CHECK(std::abs(moment(2) - 1) < sigmas * std::sqrt(2.0));
    CHECK(std::abs(moment(3)) < sigmas * std::sqrt(15.0));
    CHECK(std::abs(moment(4) - 3) < sigmas * std::sqrt(96.0));
    CHECK(*std::max_element(x.begin(), x.end()) < 6.7);
    CHECK(*std::min_element(x.begin(), x.end()) > -6.7);
  }
}

TEST_CASE("streams and neighbouring values do not correlate") {
  constexpr std::size_t kCount = 250'000;
  const double bound = 4 / std::sqrt(static_cast<double>(kCount));
  const std::vector<double> x = normals(RandomStream(3, "a"), 0, kCount);
  CHECK(std::abs(correlation(x, normals(RandomStream(3, "b"), 0, kCount))) < bound);
  CHECK(std::abs(correlation(x, normals(RandomStream(4, "a"), 0, kCount))) < bound);
  CHECK(std::abs(correlation(x, normals(RandomStream(3, "a", 1), 0, kCount))) < bound);
  for (const std::uint64_t lag : {1U, 2U, 3U, 4U}) {
    CAPTURE(lag);
    CHECK(std::abs(correlation(x, normals(RandomStream(3, "a"), lag, kCount))) < bound);
  }
}

TEST_CASE("the bits of the normals never change") {
  const std::vector<double> x = normals(RandomStream(42, "frozen", 5), 0, 10'000);
  const auto hasher = make_xxh3();
  hasher->add(std::as_bytes(std::span(x)));
  CHECK(hasher->digest() == "6eadadbd085ccceaa8e4369b649b5fb5");
}

TEST_CASE("many words at once are the blocks, in order") {
  const RandomStream stream(7, "test", 3);
  CHECK(stream.for_item(9).block(2) == RandomStream(7, "test", 9).block(2));
  for (const std::size_t n :
       {0UL, 1UL, 3UL, 7UL, 8UL, 9UL, 15UL, 16UL, 31UL, 32UL, 33UL, 65UL, 1000UL}) {
    std::vector<std::uint32_t> words(n + 1, 42);
    stream.words(n, words.data());
    CHECK(words[n] == 42);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(words[i] == stream.block(i / 4)[i % 4]);
    stream.words(std::uint64_t{1} << 32, n, words.data());
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(words[i] == stream.block((std::uint64_t{1} << 32) + i / 4)[i % 4]);
    }
  }
}

TEST_CASE("many numbers below n are those drawn one by one") {
  for (const Index n : {Index{1}, Index{7}, Index{3000000001}, Index{1} << 32}) {
    Draw one(4, "many");
    Draw many(4, "many");
    for (const std::size_t count : {3U, 5000U, 1U, 1024U, 1026U, 9000U}) {
      std::vector<std::uint32_t> out(count);
      many.below(n, out);
      CHECK(std::all_of(out.begin(), out.end(), [&](std::uint32_t x) {
        return x == static_cast<std::uint32_t>(one.below(n));
      }));
    }
    CHECK(one.word() == many.word());
  }
}

TEST_CASE("numbers below n are uniform") {
  Draw draw(1, "test");
  std::vector<double> counts(7, 0);
  const int n = 70000;
  for (int i = 0; i < n; ++i) ++counts[static_cast<std::size_t>(draw.below(7))];
  for (const double count : counts) CHECK(std::abs(count - n / 7.0) < 5 * std::sqrt(n * 6.0 / 49));
}

TEST_CASE("all orders of three are equally likely, every order is a permutation") {
  std::map<std::vector<Index>, int> seen;
  for (std::uint64_t i = 0; i < 6000; ++i) {
    Draw draw(2, "order", i);
    auto order = random_order(3, draw);
    ++seen[order];
    std::sort(order.begin(), order.end());
    CHECK(order == std::vector<Index>{0, 1, 2});
  }
  CHECK(seen.size() == 6);
  for (const auto& [order, count] : seen)
    CHECK(std::abs(count - 1000) < 5 * std::sqrt(1000 * 5.0 / 6));
}

TEST_CASE("subsets have the requested size and are fair") {
  std::vector<double> counts(9, 0);
  for (std::uint64_t i = 0; i < 9000; ++i) {
    Draw draw(3, "subset", i);
    const auto chosen = random_subset(9, 4, draw);
    CHECK(std::count(chosen.begin(), chosen.end(), true) == 4);
    for (std::size_t j = 0; j < 9; ++j) counts[j] += chosen[j];
  }
  for (const double count : counts) CHECK(std::abs(count - 4000) < 5 * std::sqrt(9000 * 20.0 / 81));
}

}  // namespace
}  // namespace masque
