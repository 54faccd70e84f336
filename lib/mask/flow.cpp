#include "mask/flow.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/processor/vectorize.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"

namespace masque::mask {

namespace {

inline void unite(std::uint64_t* to, const std::uint64_t* from, std::size_t words) {
  for (std::size_t i = 0; i < words; ++i) to[i] |= from[i];
}

/// Calls visit(k) for every visible key of a row, ascending.
template <class Visit>
void for_each_key(const Mask& mask, Index row, Visit&& visit) {
  const Index keys = mask.lengths().keys;
  for (Index k0 = 0; k0 < keys; k0 += 64) {
    std::uint64_t bits = mask.bits(row, k0, static_cast<int>(std::min<Index>(64, keys - k0)));
    while (bits != 0) {
      visit(k0 + std::countr_zero(bits));
      bits &= bits - 1;
    }
  }
}

bool sees_a_key(const Mask& mask, Index row) {
  bool any = false;
  for_each_key(mask, row, [&](Index) { any = true; });
  return any;
}

BitMatrix identity(Index n) {
  BitMatrix out(n, n);
  for (Index i = 0; i < n; ++i) out.set(i, i);
  return out;
}

void check_forbidden(const FlowRequest& request, Index n) {
  for (const Forbidden& rule : request.forbidden) {
    if (rule.tokens.end > n || rule.positions.end > n)
      throw UsageError(fmt::format("a forbidden range ends after the last of {} positions", n));
  }
}

class Follower {
 public:
  explicit Follower(const FlowRequest& request) : request_(request) {
    if (request.layers.empty()) throw UsageError("no layers, expected at least one");
    n_ = request.layers[0].lengths().queries;
    for (const auto* list : {&request.layers, &request.content}) {
      for (const Mask& mask : *list) {
        if (mask.lengths() != Lengths{n_, n_})
          throw UsageError("masks of different sizes, expected n × n for all layers");
      }
    }
    two_streams_ = !request.content.empty();
    if (two_streams_ && request.content.size() != request.layers.size()) {
      throw UsageError(fmt::format("{} layers and {} layers of content, expected equal numbers",
                                   request.layers.size(), request.content.size()));
    }
    if (two_streams_ && request.keys == KeySource::kInput) {
      throw UsageError(
          "two streams cannot read the input again: keys come from the content stream");
    }
    check_forbidden(request, n_);
    make_forbidden();
  }

  FlowResult run() {
    FlowResult result;
    BitMatrix query = request_.query == QueryStart::kToken ? identity(n_) : BitMatrix(n_, n_);
    BitMatrix content = identity(n_);  // layer 0: the token embeddings
    Index first_leak = 0;
    Index first_token = 0;
    for (std::size_t l = 0; l < request_.layers.size(); ++l) {
      BitMatrix next = step(request_.layers[l], query, content);
      if (two_streams_) {
        // The content stream's own row reads itself through its query.
        content = step(request_.content[l], content, content);
      } else if (request_.keys == KeySource::kLayer) {
        content = next;
      }
      query = std::move(next);
      result.fields.push_back(field_of(query, static_cast<Index>(l) + 1));
      note_leaks(query);
      if (first_leak == 0 && leaked_.count() > 0) {
        first_leak = static_cast<Index>(l) + 1;
        first_token = first_leaking_token(query);
      }
    }
    if (first_leak > 0) {
      Leak leak;
      leak.layer = first_leak;
      leak.pairs = leaked_.count();
      leak.path = trace(first_token, first_leak);
      result.leak = std::move(leak);
    }
    result.reach = std::move(query);
    return result;
  }

 private:
  /// One layer of one stream: own query, united with the keys that each row sees.
  BitMatrix step(const Mask& mask, const BitMatrix& own, const BitMatrix& keys) const {
    BitMatrix out(n_, n_);
    const auto words = static_cast<std::size_t>(out.words());
    parallel_for(divide_up(n_, 64), request_.threads, [&](Index block) {
      for (Index i = block * 64; i < std::min(n_, block * 64 + 64); ++i) {
        throw_if_interrupted();
        std::uint64_t* row = out.row_words(i);
        bool any = false;
        for_each_key(mask, i, [&](Index k) {
          any = true;
          vectorized<unite>(row, keys.row_words(k), words);
        });
        if (any || request_.residual == Residual::kOn)
          vectorized<unite>(row, own.row_words(i), words);
      }
    });
    return out;
  }

  void make_forbidden() {
    has_rule_ = request_.prediction != Prediction::kNone || !request_.forbidden.empty();
    if (!has_rule_) return;
    forbidden_ = BitMatrix(n_, n_);
    leaked_ = BitMatrix(n_, n_);
    if (request_.prediction != Prediction::kNone) {
      const Index shift = prediction_offset(request_.prediction, n_);
      for (Index i = 0; i + shift < n_; ++i) forbidden_.set(i, i + shift);
    }
    for (const Forbidden& rule : request_.forbidden) {
      for (Index i = rule.positions.begin; i < rule.positions.end; ++i) {
        throw_if_interrupted();
        for (Index j = rule.tokens.begin; j < rule.tokens.end; ++j) forbidden_.set(i, j);
      }
    }
  }

  void note_leaks(const BitMatrix& reach) {
    if (!has_rule_) return;
    for (Index i = 0; i < n_; ++i) {
      throw_if_interrupted();
      for (Index w = 0; w < reach.words(); ++w) {
        leaked_.row_words(i)[w] |= reach.row_words(i)[w] & forbidden_.row_words(i)[w];
      }
    }
  }

  ReceptiveField field_of(const BitMatrix& reach, Index layer) const {
    ReceptiveField field;
    field.layer = layer;
    field.minimum = n_;
    std::uint64_t total = 0;
    for (Index i = 0; i < n_; ++i) {
      throw_if_interrupted();
      Index count = 0;
      Index first = -1;
      Index last = -1;
      for (Index w = 0; w < reach.words(); ++w) {
        const std::uint64_t word = reach.row_words(i)[w];
        if (word == 0) continue;
        count += std::popcount(word);
        if (first < 0) first = w * 64 + std::countr_zero(word);
        last = w * 64 + 63 - std::countl_zero(word);
      }
      field.minimum = std::min(field.minimum, count);
      field.maximum = std::max(field.maximum, count);
      total += static_cast<std::uint64_t>(count);
      if (first >= 0)
        field.farthest = std::max({field.farthest, std::abs(i - first), std::abs(last - i)});
    }
    if (n_ == 0) field.minimum = 0;
    field.mean = n_ == 0 ? 0 : static_cast<double>(total) / static_cast<double>(n_);
    return field;
  }

  /// The smallest token that leaks in a reach matrix that leaks.
  Index first_leaking_token(const BitMatrix& reach) const {
    for (Index w = 0; w < reach.words(); ++w) {
      throw_if_interrupted();
      std::uint64_t any = 0;
      for (Index i = 0; i < n_; ++i) any |= reach.row_words(i)[w] & forbidden_.row_words(i)[w];
      if (any != 0) return w * 64 + std::countr_zero(any);
    }
    MASQUE_CHECK(false);
    return 0;
  }

  // Paths run through a graph with a node for every layer, stream and row. With one stream the
  // content nodes are the token embeddings: at layer 0 only, or carried along unchanged
  // (KeySource::kInput).
  using Flags = std::vector<bool>;
  struct Nodes {
    Flags query;
    Flags content;
  };
  struct Node {
    Index row;
    bool content;
  };

  bool content_is_read(Index layer) const {
    return two_streams_ || layer == 1 || request_.keys == KeySource::kInput;
  }

  /// Nodes of each layer 0 … layers from which a position that must not have read the token is
  /// reached.
  std::vector<Nodes> alive_nodes(Index token, Index layers) const {
    const auto size = static_cast<std::size_t>(n_);
    std::vector<Nodes> alive(static_cast<std::size_t>(layers) + 1,
                             Nodes{Flags(size, false), Flags(size, false)});
    for (Index i = 0; i < n_; ++i) {
      alive.back().query[static_cast<std::size_t>(i)] = forbidden_.get(i, token);
    }
    for (Index layer = layers; layer > 0; --layer) {
      const Nodes& now = alive[static_cast<std::size_t>(layer)];
      Nodes& before = alive[static_cast<std::size_t>(layer) - 1];
      const auto back = [&](const Mask& mask, Index row, Flags& own, Flags& keys) {
        bool any = false;
        for_each_key(mask, row, [&](Index k) {
          any = true;
          keys[static_cast<std::size_t>(k)] = true;
        });
        if (any || request_.residual == Residual::kOn) own[static_cast<std::size_t>(row)] = true;
      };
      for (Index i = 0; i < n_; ++i) {
        throw_if_interrupted();
        const auto at = static_cast<std::size_t>(i);
        if (now.query[at]) {
          back(layer_mask(layer), i, before.query,
               content_is_read(layer) ? before.content : before.query);
        }
        if (!now.content[at]) continue;
        if (two_streams_) {
          back(request_.content[static_cast<std::size_t>(layer) - 1], i, before.content,
               before.content);
        } else {
          before.content[at] = true;
        }
      }
    }
    if (request_.query == QueryStart::kPosition) alive[0].query.assign(size, false);
    return alive;
  }

  const Mask& layer_mask(Index layer) const {
    return request_.layers[static_cast<std::size_t>(layer) - 1];
  }

  /// Living nodes of a layer that take over from a node of the layer before.
  void add_next(Node from, Index layer, const Nodes& alive, std::vector<Node>& out) const {
    const auto reads = [&](const Mask& mask, Index row, bool as_own, bool as_key) {
      if (as_key && mask.allows(row, from.row)) return true;
      return as_own && row == from.row &&
             (request_.residual == Residual::kOn || sees_a_key(mask, row));
    };
    for (Index i = 0; i < n_; ++i) {
      throw_if_interrupted();
      const auto at = static_cast<std::size_t>(i);
      if (alive.query[at] &&
          reads(layer_mask(layer), i, !from.content, from.content == content_is_read(layer))) {
        out.push_back({i, false});
      }
      if (alive.content[at] && from.content &&
          (two_streams_
               ? reads(request_.content[static_cast<std::size_t>(layer) - 1], i, true, true)
               : i == from.row)) {
        out.push_back({i, true});
      }
    }
  }

  /// The path with the smallest numbers: at each layer the smallest row that leads on, a content
  /// row before a query row. Nodes with the same numbers so far are followed together.
  std::vector<FlowStep> trace(Index token, Index layers) const {
    const std::vector<Nodes> alive = alive_nodes(token, layers);
    std::vector<FlowStep> path = {{0, token, true}};
    std::vector<Node> current;
    if (alive[0].content[static_cast<std::size_t>(token)]) current.push_back({token, true});
    if (alive[0].query[static_cast<std::size_t>(token)]) current.push_back({token, false});
    for (Index layer = 1; layer <= layers; ++layer) {
      std::vector<Node> next;
      for (const Node& node : current) {
        add_next(node, layer, alive[static_cast<std::size_t>(layer)], next);
      }
      MASQUE_CHECK(!next.empty());
      // Embeddings that are carried along are no stop of their own.
      const auto stop = [&](const Node& node) { return two_streams_ || !node.content; };
      const auto best =
          std::min_element(next.begin(), next.end(), [&](const Node& a, const Node& b) {
            if (stop(a) != stop(b)) return stop(a);
            return a.row != b.row ? a.row < b.row : a.content && !b.content;
          });
      const Node chosen = *best;
      current = {chosen};
      if (stop(chosen)) path.push_back({layer, chosen.row, two_streams_ && chosen.content});
    }
    return path;
  }

  const FlowRequest& request_;
  Index n_ = 0;
  bool two_streams_ = false;
  bool has_rule_ = false;
  BitMatrix forbidden_;
  BitMatrix leaked_;  ///< pairs that leaked at some layer
};

}  // namespace

Index prediction_offset(Prediction prediction, Index length) {
  MASQUE_CHECK(prediction != Prediction::kNone);
  if (prediction == Prediction::kSelf) return 0;
  if (prediction == Prediction::kNext) return 1;
  if (length % 2 != 0) {
    throw UsageError(fmt::format(
        "{} positions, expected an even number: the first half predicts the second", length));
  }
  return length / 2;
}

namespace {

/// The layers of one tower. What position i must not depend on, row i + offset must not.
FlowRequest tower_of(const FlowRequest& request, bool second) {
  const auto half = static_cast<std::ptrdiff_t>(request.layers.size() / 2);
  const auto begin = request.layers.begin() + (second ? half : 0);
  FlowRequest tower = request;
  tower.towers = false;
  tower.layers.assign(begin, begin + half);
  tower.prediction = Prediction::kNone;
  tower.forbidden.clear();
  const Index n = request.layers.front().lengths().queries;
  const Index offset = second ? 1 : -1;
  const auto forbid = [&](Range tokens, Range positions) {
    const Range moved{std::max<Index>(0, positions.begin + offset),
                      std::min(n, positions.end + offset)};
    if (moved.begin < moved.end) tower.forbidden.push_back({tokens, moved});
  };
  const Index shift = request.prediction == Prediction::kNext ? 1 : 0;
  for (Index i = 0; request.prediction != Prediction::kNone && i + shift < n; ++i)
    forbid({i + shift, i + shift + 1}, {i, i + 1});
  for (const Forbidden& rule : request.forbidden) forbid(rule.tokens, rule.positions);
  return tower;
}

FlowResult follow_towers(const FlowRequest& request) {
  if (request.layers.empty() || request.layers.size() % 2 != 0)
    throw UsageError("two towers need an even number of layers, at least 2");
  if (!request.content.empty() || request.keys == KeySource::kInput ||
      request.query == QueryStart::kPosition)
    throw UsageError(
        "two towers cannot be combined with a content stream, keys from the input, or queries "
        "without tokens");
  check_forbidden(request, request.layers.front().lengths().queries);
  const auto half = static_cast<Index>(request.layers.size() / 2);
  FlowResult first = follow_flow(tower_of(request, false));
  FlowResult second = follow_flow(tower_of(request, true));
  FlowResult both;
  both.fields = std::move(first.fields);
  for (ReceptiveField field : second.fields) {
    field.layer += half;
    both.fields.push_back(field);
  }
  const Index n = first.reach.rows();
  both.reach = BitMatrix(n, n);
  const auto words = static_cast<std::size_t>(both.reach.words());
  for (Index i = 0; i < n; ++i) {
    throw_if_interrupted();
    if (i > 0) unite(both.reach.row_words(i), first.reach.row_words(i - 1), words);
    if (i + 1 < n) unite(both.reach.row_words(i), second.reach.row_words(i + 1), words);
  }
  both.leak = std::move(first.leak);
  if (both.leak && second.leak) both.leak->pairs += second.leak->pairs;
  if (both.leak || !second.leak) return both;
  both.leak = std::move(second.leak);
  both.leak->layer += half;
  for (FlowStep& step : both.leak->path) step.layer += step.layer > 0 ? half : 0;
  return both;
}

}  // namespace

FlowResult follow_flow(const FlowRequest& request) {
  return request.towers ? follow_towers(request) : Follower(request).run();
}

NameTable<KeySource> key_source_names() {
  static constexpr std::array<std::pair<std::string_view, KeySource>, 2> kNames{
      {{"layer", KeySource::kLayer}, {"input", KeySource::kInput}}};
  return kNames;
}

NameTable<QueryStart> query_start_names() {
  static constexpr std::array<std::pair<std::string_view, QueryStart>, 2> kNames{
      {{"token", QueryStart::kToken}, {"position", QueryStart::kPosition}}};
  return kNames;
}

std::string path_text(const std::vector<FlowStep>& path, bool two_streams) {
  std::string out;
  for (const FlowStep& step : path) {
    if (step.layer == 0) {
      out = fmt::format("token {}", step.position);
    } else {
      out += fmt::format(" -> layer {} {} {}", step.layer,
                         !two_streams   ? "position"
                         : step.content ? "content"
                                        : "query",
                         step.position);
    }
  }
  return out;
}

}  // namespace masque::mask
