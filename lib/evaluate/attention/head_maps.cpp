#include "evaluate/attention/head_maps.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "evaluate/score/dump.hpp"

namespace masque::evaluate {
namespace {

Matrix<double> widened(MatrixView<const float> x) {
  Matrix<double> result(x.rows, x.columns);
  for (Index i = 0; i < x.rows; ++i) {
    std::copy_n(x.row(i), x.columns, result.view().row(i));
  }
  return result;
}

class HeadObserver final : public model::Observer {
 public:
  using Take = std::function<void(Index, Index, MatrixView<const double>)>;
  HeadObserver(const HeadChoice& choice, const Take& take) : choice_(choice), take_(take) {}

  void attention(Index, Index layer, Index head, MatrixView<const float> weights) override {
    if (chosen(layer, head)) take_(layer, head, widened(weights).view());
  }
  void attention(Index, Index layer, Index head, MatrixView<const double> weights) override {
    if (chosen(layer, head)) take_(layer, head, weights);
  }
  void source_attention(Index s, Index layer, Index head,
                        MatrixView<const float> weights) override {
    attention(s, layer, head, weights);
  }
  void source_attention(Index s, Index layer, Index head,
                        MatrixView<const double> weights) override {
    attention(s, layer, head, weights);
  }

 private:
  bool chosen(Index layer, Index head) const {
    return choice_.layer.value_or(layer) == layer && choice_.head.value_or(head) == head;
  }
  const HeadChoice& choice_;
  const Take& take_;
};

class StateObserver final : public model::Observer {
 public:
  using Take = std::function<void(Index, MatrixView<const double>)>;
  explicit StateObserver(const Take& take) : take_(take) {}

  void hidden_states(Index, Index state, MatrixView<const float> rows) override {
    take_(state, widened(rows).view());
  }
  void hidden_states(Index, Index state, MatrixView<const double> rows) override {
    take_(state, rows);
  }

 private:
  const Take& take_;
};

void check_number(std::string_view name, const std::optional<Index>& found, Index count) {
  if (found && (*found < 0 || *found >= count)) {
    throw UsageError(fmt::format("{}: found {}, expected 0 to {}", field(name), *found, count - 1));
  }
}

/// Its query stream runs only where a mask is given for it.
model::Batch batch_of_one(const model::Model& model, const Sequence& sequence) {
  const bool two_streams = model.design().streams == model::Streams::kTwo;
  return batch_of({&sequence, 1}, two_streams && sequence.mask.has_value());
}

}  // namespace

void check_choice(const HeadChoice& choice, const model::Design& design) {
  check_number("layer", choice.layer, design.num_hidden_layers);
  check_number("head", choice.head, value_heads(design));
}

void each_head(const model::Model& model, const Sequence& sequence, const HeadChoice& choice,
               const HeadObserver::Take& take) {
  check_choice(choice, model.design());
  HeadObserver observer(choice, take);
  model::Request request;
  request.attentions = !choice.of_source;
  request.source_attentions = choice.of_source;
  model.run(batch_of_one(model, sequence), request, &observer);
}

void each_state(const model::Model& model, const Sequence& sequence,
                const StateObserver::Take& take) {
  StateObserver observer(take);
  model::Request request;
  request.hidden_states = true;
  model.run(batch_of_one(model, sequence), request, &observer);
}

}  // namespace masque::evaluate
