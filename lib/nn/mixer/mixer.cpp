#include "nn/mixer/mixer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "base/registry/registry.hpp"
#include "nn/attention/row_mask.hpp"
#include "nn/variant.hpp"

namespace masque::nn {
namespace {

using Mixers = Registry<Mixer>;

std::vector<VariantInfo> list() {
  std::vector<VariantInfo> out;
  out.reserve(mixers().size());
  for (const Mixer* mixer : mixers()) {
    const MixerInfo& info = mixer->info();
    out.push_back({"mixer",
                   std::string(info.name),
                   std::string(info.parameters),
                   std::string(masks_text(info.masks)),
                   true,
                   std::string(info.cost),
                   std::string(info.source),
                   {{"mixer", std::string(info.name)}}});
  }
  return out;
}

const VariantSource kSource(list);

/// Whether row i sees keys 0 … last(i) and no others.
template <class Last>
bool sees_up_to(const mask::BlockMap& blocks, const Last& last) {
  const mask::Lengths lengths = blocks.lengths();
  RowMask mask(&blocks, lengths.keys);
  for (Index i = 0; i < lengths.queries; ++i) {
    mask.read(i);
    const Index expected = last(i) + 1;
    if (mask.count() != expected) return false;
    for (Index j = 0; j < expected; ++j) {
      if (!mask.visible(j)) return false;
    }
  }
  return true;
}

}  // namespace

MixerRegistration::MixerRegistration(std::unique_ptr<const Mixer> mixer) {
  Mixers::of_process().add(std::move(mixer));
}

std::span<const Mixer* const> mixers() { return Mixers::of_process().all(); }

const Mixer* find_mixer(std::string_view name) { return Mixers::of_process().find(name); }

bool is_full(const mask::BlockMap* blocks) {
  return blocks == nullptr ||
         sees_up_to(*blocks, [&](Index) { return blocks->lengths().keys - 1; });
}

bool is_causal(const mask::BlockMap* blocks) {
  return blocks != nullptr && sees_up_to(*blocks, [](Index i) { return i; });
}

void check_shape(const MixerShape& shape) {
  const auto positive = [](std::string_view name, Index value, Index least) {
    if (value < least) {
      throw UsageError(fmt::format("{} is {}, expected at least {}", name, value, least));
    }
  };
  positive("tokens", shape.tokens, 1);
  positive("hidden_size", shape.hidden_size, 1);
  positive("num_attention_heads", shape.num_attention_heads, 1);
  positive("inner_size", shape.inner_size, 0);
  positive("attention_size", shape.attention_size, 1);
  positive("kernel_size", shape.kernel_size, 1);
  positive("dilation", shape.dilation, 1);
  positive("chunk_size", shape.chunk_size, 1);
  if (shape.hidden_size % shape.num_attention_heads != 0) {
    throw UsageError(fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                 shape.hidden_size, shape.num_attention_heads));
  }
}

template <class T>
std::vector<Matrix<T>> start_parameters(const Mixer& mixer, const MixerShape& shape,
                                        std::uint64_t seed) {
  const std::vector<MixerParameter> all = mixer.parameters(shape);
  std::vector<Matrix<T>> out;
  out.reserve(all.size());
  std::vector<double> numbers;
  for (const MixerParameter& parameter : all) {
    Matrix<T>& matrix = out.emplace_back(parameter.rows, parameter.columns);
    numbers.assign(matrix.span().size(), 0.0);
    if (parameter.deviation != 0) {
      RandomStream(seed, fmt::format("mixer {} {}", mixer.info().name, parameter.name))
          .normal(0, numbers.size(), numbers.data());
    }
    std::transform(numbers.begin(), numbers.end(), matrix.data(), [&](double z) {
      return static_cast<T>(parameter.mean + parameter.deviation * z);
    });
  }
  return out;
}

template <class T>
void check_problem(const Mixer& mixer, const MixerProblem<T>& problem, MatrixView<const T> y) {
  const std::vector<MixerParameter> expected = mixer.parameters(problem.shape);
  const Index tokens = problem.x.rows;
  MASQUE_CHECK(problem.x.columns == problem.shape.hidden_size);
  MASQUE_CHECK(y.rows == tokens && y.columns == problem.x.columns);
  MASQUE_CHECK(problem.parameters.size() == expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const MatrixView<const T>& found = problem.parameters[k];
    MASQUE_CHECK(found.rows == expected[k].rows && found.columns == expected[k].columns &&
                 found.stride == found.columns);
  }
  const MixerInfo& info = mixer.info();
  if (tokens > problem.shape.tokens) {
    throw UsageError(fmt::format("{} tokens, but this {} has parameters for at most {}", tokens,
                                 info.name, problem.shape.tokens));
  }
  if (problem.blocks == nullptr) return;
  MASQUE_CHECK(problem.blocks->lengths() == (mask::Lengths{tokens, tokens}));
  MASQUE_CHECK(!problem.blocks->by_head());
  if (info.masks == MaskSupport::kAny || is_full(problem.blocks)) return;
  if (info.masks == MaskSupport::kCausal && is_causal(problem.blocks)) return;
  throw UsageError(fmt::format("{} does not support this mask, expected one of: {}", info.name,
                               masks_text(info.masks)));
}

using Complex = std::complex<double>;
template std::vector<Matrix<float>> start_parameters(const Mixer&, const MixerShape&,
                                                     std::uint64_t);
template std::vector<Matrix<double>> start_parameters(const Mixer&, const MixerShape&,
                                                      std::uint64_t);
template std::vector<Matrix<Complex>> start_parameters(const Mixer&, const MixerShape&,
                                                       std::uint64_t);
template void check_problem(const Mixer&, const MixerProblem<float>&, MatrixView<const float>);
template void check_problem(const Mixer&, const MixerProblem<double>&, MatrixView<const double>);
template void check_problem(const Mixer&, const MixerProblem<Complex>&, MatrixView<const Complex>);

}  // namespace masque::nn
