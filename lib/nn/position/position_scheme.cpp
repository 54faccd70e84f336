#include "nn/position/position_scheme.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "base/registry/maker.hpp"
#include "base/string/named_arguments.hpp"

namespace masque::nn {

namespace {

Makers<PositionScheme>& position_makers() {
  static Makers<PositionScheme> all;
  return all;
}

const VariantSource kVariants(+[] {
  std::vector<VariantInfo> all;
  for (const std::string& name : position_names()) {
    all.push_back(position_info(name));
    all.back().use = {{"position", name}};
  }
  return all;
});

}  // namespace

PositionRegistration::PositionRegistration(std::string_view name, Make make) {
  position_makers().add({name, make});
}

std::vector<PositionParameter> PositionScheme::parameters(const PositionShape& /*shape*/) const {
  return {};
}

double PositionScheme::scale(const PositionShape& shape) const {
  return 1 / std::sqrt(static_cast<double>(shape.head_size));
}

void check_path(std::string_view scheme, Index position, Index steps, Index size) {
  constexpr double kMostNumbers = 1 << 28;
  if (static_cast<double>(position) * static_cast<double>(steps) * static_cast<double>(size) <=
      kMostNumbers)
    return;
  throw UsageError(
      fmt::format("position {} of {} takes {} steps of {} numbers from position 0, expected at "
                  "most {} numbers in all",
                  position, scheme, static_cast<double>(position) * static_cast<double>(steps),
                  size, kMostNumbers));
}

std::vector<std::string> position_names() { return position_makers().names(); }

std::shared_ptr<const PositionScheme> parse_position(std::string_view text) {
  NamedArguments arguments(text);
  std::unique_ptr<PositionScheme> scheme = position_makers().make("position scheme", arguments);
  scheme->name_ = arguments.name();
  return scheme;
}

VariantInfo position_info(std::string_view name) {
  NamedArguments arguments(name);
  const std::unique_ptr<PositionScheme> scheme =
      position_makers().make("position scheme", arguments);
  VariantInfo info = scheme->info();
  info.masks = masks_text(scheme->facts().masks);
  info.kind = "position";
  info.name = name;
  const std::string standards = arguments.standards();
  const std::string trained = std::exchange(info.parameters, standards);
  if (!trained.empty()) {
    info.parameters += fmt::format("{}trained {}", standards.empty() ? "" : "; ", trained);
  }
  return info;
}

VariantInfo describe_position(std::string_view trained, std::string_view cost,
                              std::string_view source) {
  VariantInfo info;
  info.parameters = trained;
  info.cost = cost;
  info.source = source;
  return info;
}

template <class T>
std::vector<Matrix<T>> start_position(const PositionScheme& scheme, const PositionShape& shape,
                                      std::uint64_t seed) {
  std::vector<Matrix<T>> all;
  for (const PositionParameter& parameter : scheme.parameters(shape)) {
    Matrix<T> matrix(parameter.rows, parameter.columns);
    const auto count = static_cast<std::size_t>(parameter.rows * parameter.columns);
    std::vector<double> values = parameter.values;
    if (values.empty()) {
      values.resize(count);
      RandomStream(seed, "position/" + parameter.name).normal(0, count, values.data());
      for (double& x : values) x = parameter.mean + parameter.deviation * x;
    }
    MASQUE_CHECK(values.size() == count);
    std::transform(values.begin(), values.end(), matrix.data(),
                   [](double x) { return static_cast<T>(x); });
    all.push_back(std::move(matrix));
  }
  return all;
}

template std::vector<Matrix<float>> start_position(const PositionScheme&, const PositionShape&,
                                                   std::uint64_t);
template std::vector<Matrix<double>> start_position(const PositionScheme&, const PositionShape&,
                                                    std::uint64_t);
template std::vector<Matrix<std::complex<double>>> start_position(const PositionScheme&,
                                                                  const PositionShape&,
                                                                  std::uint64_t);

template <class T>
void check_position_problem(const PositionScheme& scheme, const PositionProblem<T>& problem) {
  const std::vector<PositionParameter> expected = scheme.parameters(problem.shape);
  MASQUE_CHECK(problem.parameters.size() == expected.size());
  MASQUE_CHECK(problem.gradients.empty() || problem.gradients.size() == expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const Index rows = expected[k].rows;
    const Index columns = expected[k].columns;
    const MatrixView<const T>& given = problem.parameters[k];
    MASQUE_CHECK(given.rows == rows && given.columns == columns);
    const MatrixView<T> gradient = gradient_of(problem, k);
    MASQUE_CHECK(gradient.data == nullptr ||
                 (gradient.rows == rows && gradient.columns == columns));
  }
}

template void check_position_problem(const PositionScheme&, const PositionProblem<float>&);
template void check_position_problem(const PositionScheme&, const PositionProblem<double>&);
template void check_position_problem(const PositionScheme&,
                                     const PositionProblem<std::complex<double>>&);

void require_even(std::string_view scheme, std::string_view what, Index size) {
  if (size % 2 != 0) {
    throw UsageError(fmt::format("{}: {} is {}, expected an even number", scheme, what, size));
  }
}

}  // namespace masque::nn
