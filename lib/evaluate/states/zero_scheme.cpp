#include "evaluate/states/zero_scheme.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "nn/attention/materialized_attention.hpp"
#include "nn/normalizer.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::evaluate {

namespace {

/// Normal numbers with this deviation.
Matrix<double> random_matrix(std::uint64_t seed, const std::string& purpose, Index rows,
                             Index columns, double deviation) {
  Matrix<double> out(rows, columns);
  RandomStream(seed, "zero probe " + purpose).normal(0, out.span().size(), out.data());
  for (double& x : out.span()) x *= deviation;
  return out;
}

Matrix<double> product(MatrixView<const double> a, MatrixView<const double> b) {
  Matrix<double> out = Matrix<double>::zero(a.rows, b.columns);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index k = 0; k < a.columns; ++k) {
      for (Index j = 0; j < b.columns; ++j) out.view().at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return out;
}

void normalize_rows(MatrixView<double> x) {
  for (Index i = 0; i < x.rows; ++i) {
    const auto row = x.row_span(i);
    const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
    const double length = std::sqrt(squares / static_cast<double>(x.columns));
    for (double& v : row) v = length > 0 ? v / length : 0;
  }
}

/// Among rows first … end − 1.
ZeroRow spread_of(Index layer, MatrixView<const double> x, Index first, Index end) {
  ZeroRow row;
  row.layer = layer;
  for (Index c = 0; c < x.columns; ++c) {
    double low = x.at(first, c);
    double high = low;
    for (Index i = first; i < end; ++i) {
      low = std::min(low, x.at(i, c));
      high = std::max(high, x.at(i, c));
    }
    row.spread = std::max(row.spread, high - low);
    row.scale = std::max({row.scale, std::abs(low), std::abs(high)});
  }
  return row;
}

/// Parameters as they start, and moved.
std::vector<Matrix<double>> moved_parameters(const nn::PositionScheme& scheme,
                                             const nn::PositionShape& shape, std::uint64_t seed) {
  std::vector<Matrix<double>> parameters = nn::start_position<double>(scheme, shape, seed);
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    Matrix<double>& p = parameters[k];
    const Matrix<double> by =
        random_matrix(seed, fmt::format("parameter {}", k), p.rows(), p.columns(), 0.5);
    for (std::size_t i = 0; i < p.span().size(); ++i) p.span()[i] += std::abs(by.span()[i]);
  }
  return parameters;
}

}  // namespace

std::vector<ZeroRow> zero_probe(const ZeroSchemeRequest& request) {
  const Index d = request.hidden_size;
  const Index n = request.length;
  if (d % request.heads != 0) {
    throw UsageError(fmt::format("hidden size {}, expected a multiple of the number of heads, {}",
                                 d, request.heads));
  }
  const Index first = request.ends ? 1 : 0;
  const Index end = request.ends ? n - 1 : n;
  if (end - first < 2)
    throw UsageError(fmt::format("{} tokens, expected at least {}", n, request.ends ? 4 : 2));
  const auto scheme = nn::parse_position(request.position);
  const auto normalizer = nn::parse_normalizer(request.normalizer);
  const nn::PositionShape shape{d, request.heads, d / request.heads, d / request.heads, n};
  const std::vector<Matrix<double>> parameters = moved_parameters(*scheme, shape, request.seed);
  std::vector<MatrixView<const double>> views;
  views.reserve(parameters.size());
  for (const Matrix<double>& p : parameters) views.push_back(p.view());
  std::vector<Index> positions(static_cast<std::size_t>(n));
  std::iota(positions.begin(), positions.end(), Index{0});
  nn::PositionProblem<double> position;
  position.shape = shape;
  position.positions = {positions, positions};
  position.parameters = views;
  const auto terms = scheme->terms(position);

  const Matrix<double> tokens = random_matrix(request.seed, "tokens", 3, d, 1);
  Matrix<double> x(n, d);
  for (Index i = 0; i < n; ++i) {
    const Index token = i < first ? 0 : i >= end ? 1 : 2;
    const auto row = tokens.view().row_span(token);
    std::copy(row.begin(), row.end(), x.view().row(i));
  }
  terms->input(x.view());
  std::vector<ZeroRow> rows = {spread_of(0, x.view(), first, end)};
  const double deviation = 1 / std::sqrt(static_cast<double>(d));
  for (Index layer = 1; layer <= request.layers; ++layer) {
    const auto projected = [&](const char* what, MatrixView<const double> from) {
      return product(
          from,
          random_matrix(request.seed, fmt::format("{} {}", what, layer), d, d, deviation).view());
    };
    Matrix<double> query = projected("query", x.view());
    Matrix<double> key = projected("key", x.view());
    const Matrix<double> value = projected("value", x.view());
    terms->query_key(query.view(), key.view());
    nn::MaterializedAttention<double> attention;
    attention.problem.query = query.view();
    attention.problem.key = key.view();
    attention.problem.value = value.view();
    attention.problem.num_heads = request.heads;
    attention.problem.num_key_value_heads = request.heads;
    attention.problem.scale = scheme->scale(shape);
    attention.problem.normalizer = normalizer.get();
    attention.problem.bias = terms->bias();
    attention.weight_terms = terms->weight_terms();
    attention.value_terms = terms->value_terms();
    Matrix<double> context(n, d);
    nn::materialized_attention_forward<double>(attention, context.view(), nullptr);
    const Matrix<double> output = projected("output", context.view());
    for (std::size_t i = 0; i < x.span().size(); ++i) x.span()[i] += output.span()[i];
    normalize_rows(x.view());
    rows.push_back(spread_of(layer, x.view(), first, end));
  }
  return rows;
}

}  // namespace masque::evaluate
