#include "mask/flow.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "mask/expression.hpp"
#include "support/message.hpp"

namespace masque::mask {
namespace {

using test::contains;
using test::message_of;

std::vector<Mask> stack(const char* text, Index n, Index layers) {
  return std::vector<Mask>(static_cast<std::size_t>(layers), parse_mask(text).bind({n, n}));
}

FlowRequest request_of(const char* mask, Index n, Index layers) {
  FlowRequest request;
  request.layers = stack(mask, n, layers);
  request.threads = 1;
  return request;
}

std::string path_of(const FlowResult& result, bool two_streams = false) {
  return result.leak ? path_text(result.leak->path, two_streams) : "clean";
}

TEST_CASE(
    "the classic mistake: a diagonal mask over layers that read each other leaks at layer 2") {
  FlowRequest request = request_of("tta", 8, 3);
  request.query = QueryStart::kPosition;
  request.prediction = Prediction::kSelf;
  const FlowResult naive = follow_flow(request);
  REQUIRE(naive.leak);
  CHECK(naive.leak->layer == 2);
  CHECK(path_of(naive) == "token 0 -> layer 1 position 1 -> layer 2 position 0");
  request.query = QueryStart::kToken;
  const FlowResult token = follow_flow(request);
  REQUIRE(token.leak);
  CHECK(token.leak->layer == 1);
  CHECK(path_of(token) == "token 0 -> layer 1 position 0");
  request.query = QueryStart::kPosition;
  request.keys = KeySource::kInput;
  request.layers = stack("tta", 8, 12);
  CHECK_FALSE(follow_flow(request).leak);
}

TEST_CASE("block diffusion: a noised row reads its block and the clean blocks before it") {
  FlowRequest request = request_of("block_diffusion(4)", 32, 12);
  request.prediction = Prediction::kClean;
  const FlowResult found = follow_flow(request);
  CHECK_FALSE(found.leak);
  for (Index i = 0; i < 16; ++i) {
    for (Index j = 0; j < 32; ++j) {
      const bool own_noised = j < 16 && j / 4 == i / 4;
      const bool clean_before = j >= 16 && (j - 16) / 4 < i / 4;
      CHECK(found.reach.get(i, j) == (own_noised || clean_before));
    }
  }
  // Under a mask that lets a noised row read its own clean block.
  request.layers = stack("block_diffusion(4) | chunk(16)", 32, 1);
  CHECK_FALSE(follow_flow(request).leak);
  request.layers = stack("block_diffusion(4) | dilated(1,16)", 32, 1);
  CHECK(path_of(follow_flow(request)) == "token 16 -> layer 1 position 0");
  request.layers = stack("full", 31, 1);
  CHECK(contains(message_of<UsageError>([&] { follow_flow(request); }), "expected an even number"));
}

TEST_CASE("two towers know all tokens but their own, and leak as soon as one looks ahead") {
  FlowRequest request = request_of("causal", 9, 3);
  for (const Mask& mask : stack("reverse", 9, 3)) request.layers.push_back(mask);
  request.towers = true;
  request.prediction = Prediction::kSelf;
  const FlowResult clean = follow_flow(request);
  CHECK_FALSE(clean.leak);
  CHECK(clean.fields.size() == 6);
  CHECK(clean.fields.back().layer == 6);
  for (Index i = 0; i < 9; ++i) {
    for (Index j = 0; j < 9; ++j) CHECK(clean.reach.get(i, j) == (i != j));
  }
  // The second tower's last layer reads one token to the left.
  request.layers.back() = parse_mask("reverse | window(1)").bind({9, 9});
  const FlowResult leaking = follow_flow(request);
  REQUIRE(leaking.leak);
  CHECK(leaking.leak->layer == 6);
  CHECK(leaking.leak->pairs == 8);
  CHECK(path_of(leaking) ==
        "token 0 -> layer 4 position 0 -> layer 5 position 0 -> layer 6 position 1");
  CHECK(leaking.reach.get(0, 0));
  CHECK_FALSE(leaking.reach.get(8, 8));
  request.prediction = Prediction::kNone;
  request.forbidden = {{{4, 5}, {4, 5}}};
  CHECK(follow_flow(request).leak->pairs == 1);
  for (const Forbidden& beyond : {Forbidden{{4, 10}, {4, 5}}, Forbidden{{4, 5}, {4, 10}}}) {
    request.forbidden = {beyond};
    CHECK(message_of<UsageError>([&] { follow_flow(request); }) ==
          "a forbidden range ends after the last of 9 positions");
  }
  request.forbidden.clear();
  request.keys = KeySource::kInput;
  CHECK(contains(message_of<UsageError>([&] { follow_flow(request); }),
                 "two towers cannot be combined"));
  request.keys = KeySource::kLayer;
  request.layers.pop_back();
  CHECK(contains(message_of<UsageError>([&] { follow_flow(request); }), "an even number"));
}

TEST_CASE("causal layers may predict the next token, not their own") {
  FlowRequest request = request_of("causal", 16, 12);
  request.prediction = Prediction::kNext;
  CHECK_FALSE(follow_flow(request).leak);
  request.prediction = Prediction::kSelf;
  REQUIRE(follow_flow(request).leak);
  CHECK(follow_flow(request).leak->layer == 1);
}

TEST_CASE("two streams: a permutation is clean, a bidirectional content stream leaks at layer 2") {
  FlowRequest request = request_of("perm_query(seed=4)", 10, 6);
  request.content = stack("perm_content(seed=4)", 10, 6);
  request.query = QueryStart::kPosition;
  request.prediction = Prediction::kSelf;
  CHECK_FALSE(follow_flow(request).leak);
  request.content = stack("full", 10, 6);
  const FlowResult result = follow_flow(request);
  REQUIRE(result.leak);
  CHECK(result.leak->layer == 2);
  CHECK(path_of(result, true).find("layer 1 content") != std::string::npos);
  CHECK(path_of(result, true).find("layer 2 query") != std::string::npos);
}

TEST_CASE("UniAE without its latent path: the target is independent of the source") {
  FlowRequest request = request_of("uniae(4,4)", 8, 12);
  request.forbidden = {{{0, 4}, {4, 8}}};
  CHECK_FALSE(follow_flow(request).leak);
  request.layers = stack("uniae_latent(4,4)", 8, 12);
  const FlowResult result = follow_flow(request);
  REQUIRE(result.leak);
  CHECK(path_of(result) == "token 0 -> layer 1 position 4");
}

TEST_CASE("T-TA's single token, odd lengths and empty masks are defined") {
  for (const Index n : {Index{1}, Index{3}, Index{5}}) {
    FlowRequest request = request_of("~full", n, 3);
    request.query = QueryStart::kPosition;
    request.prediction = Prediction::kSelf;
    const FlowResult result = follow_flow(request);
    CHECK_FALSE(result.leak);
    CHECK(result.fields.back().maximum == 0);
  }
  FlowRequest request = request_of("~full", 3, 2);
  request.prediction = Prediction::kSelf;
  CHECK(follow_flow(request).leak->layer == 1);  // the residual carries the token
  request.residual = Residual::kOff;
  CHECK_FALSE(follow_flow(request).leak);  // a row without keys is a zero context
}

TEST_CASE("receptive fields grow by the window, layer by layer") {
  const FlowResult result = follow_flow(request_of("window(2)", 40, 4));
  for (std::size_t l = 0; l < 4; ++l) {
    const auto reach = static_cast<Index>(2 * (l + 1));
    CHECK(result.fields[l].layer == static_cast<Index>(l) + 1);
    CHECK(result.fields[l].maximum == 2 * reach + 1);
    CHECK(result.fields[l].minimum == reach + 1);
    CHECK(result.fields[l].farthest == reach);
  }
}

// ---- against a search over all paths ----

struct Setting {
  KeySource keys;
  QueryStart query;
  Residual residual;
};

bool sees_any(const Mask& mask, Index i) {
  for (Index k = 0; k < mask.lengths().keys; ++k) {
    if (mask.allows(i, k)) return true;
  }
  return false;
}

/// Whether row i of layer l depends on token t: straight from the definition, without sharing work.
bool depends(const FlowRequest& r, std::size_t l, Index i, Index t, bool content) {
  if (l == 0) return content || r.query == QueryStart::kToken ? i == t : false;
  const Mask& mask = content ? r.content[l - 1] : r.layers[l - 1];
  if ((r.residual == Residual::kOn || sees_any(mask, i)) && depends(r, l - 1, i, t, content))
    return true;
  for (Index k = 0; k < mask.lengths().keys; ++k) {
    if (!mask.allows(i, k)) continue;
    const bool two = !r.content.empty();
    const bool found = two                                     ? depends(r, l - 1, k, t, true)
                       : l == 1 || r.keys == KeySource::kInput ? k == t
                                                               : depends(r, l - 1, k, t, false);
    if (found) return true;
  }
  return false;
}

void check_against_search(const FlowRequest& request) {
  const FlowResult result = follow_flow(request);
  const Index n = request.layers[0].lengths().queries;
  const std::size_t layers = request.layers.size();
  for (Index i = 0; i < n; ++i) {
    for (Index t = 0; t < n; ++t) {
      REQUIRE(result.reach.get(i, t) == depends(request, layers, i, t, false));
    }
  }
  std::size_t first = 0;
  for (std::size_t l = 1; l <= layers && first == 0; ++l) {
    for (Index i = 0; i < n; ++i) {
      if (depends(request, l, i, i, false)) first = l;
    }
  }
  if (request.prediction != Prediction::kSelf) return;
  REQUIRE(result.leak.has_value() == (first > 0));
  if (!result.leak) return;
  REQUIRE(result.leak->layer == static_cast<Index>(first));
  // The witness ends where it began and every step of it exists.
  const auto& path = result.leak->path;
  REQUIRE(path.front().position == path.back().position);
  REQUIRE(path.back().layer == static_cast<Index>(first));
  for (const FlowStep& step : path) {
    if (step.layer == 0) continue;
    REQUIRE(depends(request, static_cast<std::size_t>(step.layer), step.position,
                    path.front().position, step.content));
  }
}

Mask mask_of(std::uint64_t cells, Index n) {
  BitMatrix bits(n, n);
  for (Index i = 0; i < n * n; ++i) {
    if ((cells >> i & 1) != 0) bits.set(i / n, i % n);
  }
  return from_bits(std::move(bits));
}

TEST_CASE("every mask of up to 3 tokens, one in 37 of 4, equals the search over paths") {
  const Setting settings[] = {{KeySource::kLayer, QueryStart::kToken, Residual::kOn},
                              {KeySource::kLayer, QueryStart::kPosition, Residual::kOn},
                              {KeySource::kInput, QueryStart::kPosition, Residual::kOn},
                              {KeySource::kLayer, QueryStart::kPosition, Residual::kOff},
                              {KeySource::kInput, QueryStart::kToken, Residual::kOff}};
  for (Index n = 1; n <= 4; ++n) {
    for (std::uint64_t cells = 0; cells < std::uint64_t{1} << (n * n); cells += n == 4 ? 37 : 1) {
      for (const Setting& setting : settings) {
        for (const std::size_t layers : {1U, 2U, 3U}) {
          FlowRequest request;
          request.layers.assign(layers, mask_of(cells, n));
          request.keys = setting.keys;
          request.query = setting.query;
          request.residual = setting.residual;
          request.prediction = Prediction::kSelf;
          request.threads = 1;
          check_against_search(request);
        }
      }
    }
  }
}

TEST_CASE("random masks of up to 8 tokens, other ones at each layer, one stream and two") {
  const RandomStream stream(3, "flow");
  for (std::uint64_t turn = 0; turn < 300; ++turn) {
    const Index n = 5 + static_cast<Index>(turn % 4);
    FlowRequest request;
    for (std::uint64_t l = 0; l < 3; ++l) {
      const PhiloxBlock words = stream.block(turn * 8 + l);
      const std::uint64_t sparse =
          (std::uint64_t{words[0]} << 32 | words[1]) & (std::uint64_t{words[2]} << 32 | words[3]);
      request.layers.push_back(mask_of(sparse, n));
      if (turn % 3 == 0) {
        const PhiloxBlock more = stream.block(turn * 8 + l + 4);
        request.content.push_back(mask_of((std::uint64_t{more[0]} << 32 | more[1]) & sparse, n));
      }
    }
    request.query = turn % 2 == 0 ? QueryStart::kPosition : QueryStart::kToken;
    request.residual = turn % 5 == 0 ? Residual::kOff : Residual::kOn;
    request.prediction = Prediction::kSelf;
    request.threads = 2;
    check_against_search(request);
  }
}

TEST_CASE("of the shortest witnesses the one with the smallest numbers") {
  // Token 2 leaks through 0 or 1, token 3 through 2.
  FlowRequest request;
  BitMatrix bits(4, 4);
  bits.set(0, 2);
  bits.set(1, 2);
  bits.set(2, 0);
  bits.set(2, 1);
  bits.set(3, 2);
  bits.set(2, 3);
  request.layers.assign(4, from_bits(std::move(bits)));
  request.query = QueryStart::kPosition;
  request.prediction = Prediction::kSelf;
  CHECK(path_of(follow_flow(request)) == "token 0 -> layer 1 position 2 -> layer 2 position 0");
}

TEST_CASE("lists that do not fit are refused") {
  FlowRequest request = request_of("full", 4, 2);
  request.content = stack("full", 4, 1);
  CHECK(contains(message_of<UsageError>([&] { follow_flow(request); }), "expected equal numbers"));
  request.content = stack("full", 5, 2);
  CHECK(contains(message_of<UsageError>([&] { follow_flow(request); }), "for all layers"));
  request = request_of("full", 4, 2);
  request.forbidden = {{{0, 5}, {0, 1}}};
  CHECK(contains(message_of<UsageError>([&] { follow_flow(request); }), "the last of 4 positions"));
}

TEST_CASE("a leak that a later layer forgets is still counted, and two streams keep their keys") {
  const auto mask = [](const char* text) { return parse_mask(text).bind({4, 4}); };
  FlowRequest request{.layers = {mask("full"), mask("full & pad(0)")},
                      .residual = Residual::kOff,
                      .prediction = Prediction::kSelf};
  const FlowResult result = follow_flow(request);
  REQUIRE(result.leak);
  CHECK(result.leak->layer == 1);
  CHECK(result.leak->pairs == 4);
  request.content = request.layers;
  request.keys = KeySource::kInput;
  CHECK_THROWS_AS(follow_flow(request), UsageError);
}

}  // namespace
}  // namespace masque::mask
