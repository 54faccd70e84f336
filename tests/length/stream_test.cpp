// How a text is cut at several lengths.
#include "length/stream.hpp"

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "length/length_bench.hpp"

namespace masque::length {
using namespace train;
namespace {

using test::Bench;
using Kind = evaluate::LengthPolicy::Kind;

/// Targets by their position in the text.
std::map<Index, TokenId> targets_of(const LengthStream& stream, Index length) {
  std::map<Index, TokenId> all;
  std::size_t next = 0;
  for (const Example& block : stream.examples(length)) {
    for (const TokenId target : block.targets) {
      CHECK(all.emplace(stream.positions(length)[next], target).second);
      ++next;
    }
  }
  CHECK(next == stream.positions(length).size());
  return all;
}

TEST_CASE("whatever the policy, the same tokens are targets at every length") {
  const std::vector<Index> lengths{33, 9, 16};
  for (const bool with_template : {true, false}) {
    const Bench bench(with_template);
    for (const char* objective : {"mlm", "tta", "clm"}) {
      if (!with_template && std::string(objective) == "mlm") continue;  // nothing to hide with
      for (const evaluate::LengthPolicy policy :
           {evaluate::LengthPolicy{Kind::kChunk, 0}, evaluate::LengthPolicy{Kind::kSlide, 5},
            evaluate::LengthPolicy{Kind::kLast, 0}}) {
        CAPTURE(objective);
        CAPTURE(evaluate::policy_text(policy));
        StreamRequest request = bench.request(objective, lengths);
        request.policy = policy;
        const LengthStream stream = bench.stream(request);
        const bool causal = std::string(objective) == "clm";
        const auto expected = targets_of(stream, 9);
        CHECK(expected.size() > 5);
        std::map<Index, TokenId> read;  // what stands in the text at a position
        for (const Index length : lengths) {
          CHECK(targets_of(stream, length) == expected);
          std::size_t next = 0;
          for (const Example& block : stream.examples(length)) {
            CHECK(block.size() == length);
            for (std::size_t r = 0; r < block.rows.size(); ++r) {
              const Index position = stream.positions(length)[next++];
              const Index row = block.rows[r] + (causal ? 1 : 0);
              CHECK(block.targets[r] == stream.ids()[static_cast<std::size_t>(position)]);
              // Hidden in the same way.
              const TokenId id = block.ids.at(static_cast<std::size_t>(row));
              CHECK(read.emplace(position, id).first->second == id);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a text of which not all tokens are read has a note") {
  const Bench bench(true);
  StreamRequest request = bench.request("tta", {9, 16});
  const LengthStream whole = bench.stream(request);
  CHECK_FALSE(whole.note());
  request.tokens = static_cast<Index>(whole.ids().size()) - 9;
  const LengthStream part = bench.stream(request);
  REQUIRE(part.note());
  CHECK(part.note()->find("the first " + std::to_string(request.tokens) + " of ") !=
        std::string::npos);
}

TEST_CASE("with the policy last, longer blocks end at the same tokens") {
  const Bench bench;
  StreamRequest request = bench.request("tta", {9, 33});
  request.policy = {Kind::kLast, 0};
  const LengthStream stream = bench.stream(request);
  REQUIRE(stream.examples(9).size() == stream.examples(33).size());
  REQUIRE(stream.examples(9).size() > 3);
  for (std::size_t i = 0; i < stream.examples(9).size(); ++i) {
    const Example& near = stream.examples(9)[i];
    const Example& far = stream.examples(33)[i];
    CHECK(near.targets == far.targets);
    CHECK(std::ssize(near.targets) == 7);
    CHECK(std::equal(near.ids.begin() + 1, near.ids.end(), far.ids.end() - 8));
  }
}

TEST_CASE("a stream is refused") {
  const Bench bench;
  StreamRequest request = bench.request("mlm", {9, 16});
  request.policy = {Kind::kSlide, 8};
  CHECK_THROWS_AS(bench.stream(request), UsageError);
  request.policy = {Kind::kFirst, 0};
  CHECK_THROWS_AS(bench.stream(request), UsageError);
  request = bench.request("plm", {9});
  CHECK_THROWS_AS(bench.stream(request), UsageError);
  request = bench.request("mlm", {9, 4000});
  CHECK_THROWS_AS(bench.stream(request), InputError);
}

}  // namespace
}  // namespace masque::length
