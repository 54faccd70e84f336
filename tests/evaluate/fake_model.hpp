// A model small enough to be done again by brute force: logits are a smooth function of what a row
// may read.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// Log-probabilities of all tokens at `row` of a sequence of which `reads(j)` are read.
template <class Reads>
std::vector<double> fake_logits(std::span<const TokenId> ids, Index row, Index vocab,
                                const Reads& reads) {
  std::vector<double> logits(static_cast<std::size_t>(vocab));
  for (std::size_t v = 0; v < logits.size(); ++v) {
    for (Index j = 0; j < std::ssize(ids); ++j) {
      if (!reads(j)) continue;
      logits[v] += std::sin(1.3 * ids[static_cast<std::size_t>(j)] + 0.7 * static_cast<double>(v) +
                            0.9 * static_cast<double>(j - row));
    }
  }
  return logits;
}

inline double log_softmax(const std::vector<double>& logits, TokenId target) {
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  return logits[static_cast<std::size_t>(target)] - std::log(sum);
}

class FakeModel : public model::Model {
 public:
  explicit FakeModel(model::HeadKind head, model::DefaultMask mask = model::DefaultMask::kFull,
                     model::Streams streams = model::Streams::kOne) {
    design_.family = "fake";
    design_.vocab_size = 12;
    design_.hidden_size = 3;
    design_.num_hidden_layers = 2;
    design_.num_attention_heads = 2;
    design_.head.kind = head;
    design_.mask = mask;
    design_.streams = streams;
  }

  model::Design& design_to_change() { return design_; }
  const model::Design& design() const override { return design_; }
  kernel::Precision precision() const override { return kernel::Precision::kF64; }
  const std::vector<std::string>& unused() const override { return unused_; }

  std::vector<double> run(const model::Batch& batch, const model::Request& request,
                          model::Observer* observer) const override {
    ++runs;
    most_tokens = std::max(most_tokens, std::ssize(batch.ids));
    std::vector<double> out;
    Index first = 0;
    for (Index s = 0; s < batch.sequences(); ++s) {
      const Index begin = batch.begins[static_cast<std::size_t>(s)];
      const Index end = begin + batch.length(s);
      const std::span<const TokenId> ids(batch.ids.data() + begin,
                                         static_cast<std::size_t>(end - begin));
      if (observer != nullptr && request.hidden_states) give_states(ids, s, *observer);
      if (observer != nullptr && request.attentions) give_attentions(ids, s, *observer);
      if (observer != nullptr && request.detections) {
        std::vector<double> wrong;
        for (Index i = 0; i < std::ssize(ids); ++i) wrong.push_back(detection_of(ids, i));
        observer->detections(s, MatrixView<const double>(wrong.data(), std::ssize(ids), 1));
      }
      for (; first < rows_of(batch, request); ++first) {
        const Index row = request.all_rows ? first : request.rows[static_cast<std::size_t>(first)];
        if (row >= end) break;
        const std::vector<double> logits = logits_of(batch, s, ids, row - begin);
        std::vector<double> possible = logits;
        if (request.excluded)
          possible[static_cast<std::size_t>(*request.excluded)] =
              -std::numeric_limits<double>::infinity();
        if (!request.targets.empty())
          out.push_back(log_softmax(possible, request.targets[static_cast<std::size_t>(first)]));
        if (observer == nullptr) continue;
        if (request.logits) {
          const Index width = model::has_one_number(design_.head.kind) ? 1 : 12;
          observer->logits(s, first, MatrixView<const double>(logits.data(), 1, width));
        }
        if (request.last_states) {
          const auto state = state_of(ids, row - begin, design_.num_hidden_layers);
          observer->last_states(s, first, MatrixView<const double>(state.data(), 1, 3));
        }
      }
    }
    return out;
  }

  /// State `layer` of a token.
  static std::vector<double> state_of(std::span<const TokenId> ids, Index row, Index layer) {
    const auto id = static_cast<double>(ids[static_cast<std::size_t>(row)]);
    return {id + 10 * static_cast<double>(layer), static_cast<double>(row), id * id};
  }

  /// What a detector says of a token.
  static double detection_of(std::span<const TokenId> ids, Index row) {
    return 1 / (2.0 + ids[static_cast<std::size_t>(row)] + static_cast<double>(row));
  }

  mutable Index most_tokens = 0;
  mutable int runs = 0;

 private:
  static Index rows_of(const model::Batch& batch, const model::Request& request) {
    return request.all_rows ? std::ssize(batch.ids) : std::ssize(request.rows);
  }

  std::vector<double> logits_of(const model::Batch& batch, Index s, std::span<const TokenId> ids,
                                Index row) const {
    const auto at = static_cast<std::size_t>(s);
    return fake_logits(ids, row, 12, [&](Index j) {
      if (!batch.query_masks.empty() && batch.query_masks[at])
        return batch.query_masks[at]->allows(row, j);
      if (design_.mask == model::DefaultMask::kCausal) return j <= row;
      if (design_.mask == model::DefaultMask::kOthers) return j != row;
      return true;
    });
  }

  void give_states(std::span<const TokenId> ids, Index s, model::Observer& observer) const {
    for (Index layer = 0; layer <= design_.num_hidden_layers; ++layer) {
      std::vector<double> states;
      for (Index i = 0; i < std::ssize(ids); ++i) {
        const auto state = state_of(ids, i, layer);
        states.insert(states.end(), state.begin(), state.end());
      }
      observer.hidden_states(s, layer, MatrixView<const double>(states.data(), std::ssize(ids), 3));
    }
  }

  void give_attentions(std::span<const TokenId> ids, Index s, model::Observer& observer) const {
    const Index n = std::ssize(ids);
    for (Index layer = 0; layer < design_.num_hidden_layers; ++layer) {
      for (Index head = 0; head < design_.num_attention_heads; ++head) {
        std::vector<double> weights(static_cast<std::size_t>(n * n));
        for (std::size_t i = 0; i < weights.size(); ++i)
          weights[i] = static_cast<double>(layer * 1000 + head * 100) + static_cast<double>(i);
        observer.attention(s, layer, head, MatrixView<const double>(weights.data(), n, n));
      }
    }
  }

  model::Design design_;
  std::vector<std::string> unused_;
};

}  // namespace masque::evaluate
