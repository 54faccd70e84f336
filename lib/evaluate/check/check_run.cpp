#include "evaluate/check/check_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

using model::Batch;

/// Sequences side by side.
Batch batch_of(std::span<const CheckVariant> variants) {
  Batch batch;
  for (const CheckVariant& v : variants) {
    batch.add(v.input.ids, parts_of(v.input));
    if (v.input.latents.empty() && batch.latents.empty()) continue;
    batch.latents.resize(static_cast<std::size_t>(batch.sequences()));
    batch.latents.back() = v.input.latents;
  }
  return batch;
}

model::Request request_of(const model::Model& model) {
  model::Request request;
  request.hidden_states = true;
  // A number of the whole text stands at no position.
  const model::HeadKind kind = model.design().head.kind;
  const bool head = kind != model::HeadKind::kNone && kind != model::HeadKind::kText;
  request.logits = head;
  request.last_states = !head;
  return request;
}

/// Rows of each state of each sequence. The query stream's where there is one: it holds the wanted
/// rows alone.
class Rows : public model::Observer {
 public:
  explicit Rows(bool two_streams) : two_streams_(two_streams) {}

  void hidden_states(Index s, Index state, MatrixView<const float> x) override {
    if (!two_streams_) state_rows(s, state, x);
  }
  void hidden_states(Index s, Index state, MatrixView<const double> x) override {
    if (!two_streams_) state_rows(s, state, x);
  }
  void query_states(Index s, Index state, MatrixView<const float> x) override {
    state_rows(s, state, x);
  }
  void query_states(Index s, Index state, MatrixView<const double> x) override {
    state_rows(s, state, x);
  }
  void logits(Index s, Index first, MatrixView<const float> x) override { output(s, first, x); }
  void logits(Index s, Index first, MatrixView<const double> x) override { output(s, first, x); }
  void last_states(Index s, Index first, MatrixView<const float> x) override {
    output(s, first, x);
  }
  void last_states(Index s, Index first, MatrixView<const double> x) override {
    output(s, first, x);
  }

 protected:
  virtual void state_rows(Index s, Index state, MatrixView<const float> x) = 0;
  virtual void state_rows(Index s, Index state, MatrixView<const double> x) = 0;
  virtual void output(Index s, Index first, MatrixView<const float> x) = 0;
  virtual void output(Index s, Index first, MatrixView<const double> x) = 0;
  bool two_streams() const { return two_streams_; }

 private:
  bool two_streams_;
};

/// Keeps everything of one sequence.
class Keeper final : public Rows {
 public:
  Keeper(bool two_streams, Index layers, CheckStates& kept) : Rows(two_streams), kept_(kept) {
    kept_.states.resize(static_cast<std::size_t>(layers) + 1);
  }

 private:
  template <class T>
  static void put(MatrixView<const T> x, Index first, Index rows, Matrix<double>& to) {
    if (to.rows() == 0) to = Matrix<double>(rows, x.columns);
    for (Index i = 0; i < x.rows; ++i) {
      std::copy(x.row_span(i).begin(), x.row_span(i).end(), to.view().row(first + i));
    }
  }
  void state_rows(Index, Index state, MatrixView<const float> x) override {
    put(x, 0, x.rows, kept_.states[static_cast<std::size_t>(state)]);
  }
  void state_rows(Index, Index state, MatrixView<const double> x) override {
    put(x, 0, x.rows, kept_.states[static_cast<std::size_t>(state)]);
  }
  void output(Index, Index first, MatrixView<const float> x) override {
    put(x, first, kept_.states.front().rows(), kept_.output);
  }
  void output(Index, Index first, MatrixView<const double> x) override {
    put(x, first, kept_.states.front().rows(), kept_.output);
  }

  CheckStates& kept_;
};

template <class T>
double row_difference(std::span<const T> a, std::span<const double> b) {
  MASQUE_CHECK(a.size() == b.size());
  double difference = 0;
  double largest = 1;
  for (std::size_t c = 0; c < a.size(); ++c) {
    const double d = std::abs(static_cast<double>(a[c]) - b[c]);
    if (std::isnan(d)) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, d);
    largest = std::max(largest, std::abs(b[c]));
  }
  return difference / largest;
}

/// Compares while the model runs. Sequences have results of their own, so that they may arrive at
/// the same time.
class Comparer final : public Rows {
 public:
  Comparer(bool two_streams, std::span<const CheckVariant> variants,
           std::span<Matrix<double>> results, std::span<const Index> first_rows)
      : Rows(two_streams), variants_(variants), results_(results), first_rows_(first_rows) {}

 private:
  template <class T>
  void compare(Index s, Index state, MatrixView<const T> x, bool all_rows) {
    const CheckVariant& variant = variants_[static_cast<std::size_t>(s)];
    const MatrixView<const double> expected =
        variant.expected->states[static_cast<std::size_t>(state)].view();
    Matrix<double>& result = results_[static_cast<std::size_t>(s)];
    for (std::size_t r = 0; r < variant.rows.size(); ++r) {
      const Index row = all_rows ? variant.rows[r] : static_cast<Index>(r);
      result.view().at(state, static_cast<Index>(r)) =
          row_difference<T>(x.row_span(row), expected.row_span(variant.expected_rows[r]));
    }
  }
  template <class T>
  void compare_output(Index s, Index first, MatrixView<const T> x) {
    const CheckVariant& variant = variants_[static_cast<std::size_t>(s)];
    Matrix<double>& result = results_[static_cast<std::size_t>(s)];
    for (Index i = 0; i < x.rows; ++i) {
      const Index r = first + i - first_rows_[static_cast<std::size_t>(s)];
      const Index row = variant.expected_rows[static_cast<std::size_t>(r)];
      result.view().at(result.rows() - 1, r) =
          row_difference<T>(x.row_span(i), variant.expected->output.view().row_span(row));
    }
  }
  void state_rows(Index s, Index state, MatrixView<const float> x) override {
    compare(s, state, x, !two_streams());
  }
  void state_rows(Index s, Index state, MatrixView<const double> x) override {
    compare(s, state, x, !two_streams());
  }
  void output(Index s, Index first, MatrixView<const float> x) override {
    compare_output(s, first, x);
  }
  void output(Index s, Index first, MatrixView<const double> x) override {
    compare_output(s, first, x);
  }

  std::span<const CheckVariant> variants_;
  std::span<Matrix<double>> results_;
  std::span<const Index> first_rows_;
};

void run_together(const model::Model& model, std::span<const CheckVariant> variants,
                  std::span<Matrix<double>> results) {
  const Batch batch = batch_of(variants);
  model::Request request = request_of(model);
  std::vector<Index> first_rows;
  first_rows.reserve(variants.size());
  for (std::size_t s = 0; s < variants.size(); ++s) {
    first_rows.push_back(std::ssize(request.rows));
    MASQUE_CHECK(variants[s].rows.size() == variants[s].expected_rows.size());
    for (const Index row : variants[s].rows) request.rows.push_back(batch.begins[s] + row);
    results[s] =
        Matrix<double>::zero(model.design().num_hidden_layers + 2, std::ssize(variants[s].rows));
  }
  Comparer comparer(!batch.query_masks.empty(), variants, results, first_rows);
  model.run(batch, request, &comparer);
}

}  // namespace

CheckStates check_states(const model::Model& model, const CheckInput& input) {
  CheckStates kept;
  CheckVariant only;
  only.input = input;
  const Batch batch = batch_of({&only, 1});
  model::Request request = request_of(model);
  request.all_rows = true;
  Keeper keeper(!batch.query_masks.empty(), model.design().num_hidden_layers, kept);
  model.run(batch, request, &keeper);
  return kept;
}

std::vector<Matrix<double>> compare_variants(const model::Model& model,
                                             std::span<const CheckVariant> variants,
                                             Index batch_tokens) {
  std::vector<Matrix<double>> results(variants.size());
  for (std::size_t begin = 0; begin < variants.size();) {
    std::size_t end = begin;
    Index tokens = 0;
    while (end < variants.size() &&
           (end == begin || tokens + variants[end].input.size() <= batch_tokens)) {
      tokens += variants[end++].input.size();
    }
    run_together(model, variants.subspan(begin, end - begin),
                 std::span(results).subspan(begin, end - begin));
    begin = end;
  }
  return results;
}

double padding_tolerance(kernel::Precision precision) {
  switch (precision) {
    case kernel::Precision::kF64: return 1e-12;
    case kernel::Precision::kBf16: return 0.05;
    case kernel::Precision::kF32: break;
  }
  return 1e-5;
}

}  // namespace masque::evaluate
