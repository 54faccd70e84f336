#include "model/random_model.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/random/random.hpp"
#include "model/checkpoint/placed.hpp"
#include "model/checkpoint/save.hpp"
#include "model/detector.hpp"
#include "model/variants.hpp"

namespace masque::model::test {

namespace {

template <class T>
Weight<T> own(Matrix<T> matrix) {
  auto shared = std::make_shared<Matrix<T>>(std::move(matrix));
  return {std::as_const(*shared).view(), shared};
}

/// Mean + deviation · normal numbers, by the name of the tensor.
template <class T>
Matrix<T> random_matrix(Index rows, Index columns, double mean, double deviation,
                        const std::string& name, std::uint64_t seed) {
  Matrix<T> matrix(rows, columns);
  std::vector<double> values(matrix.span().size());
  RandomStream(seed, name).normal(0, values.size(), values.data());
  std::transform(values.begin(), values.end(), matrix.data(), [&](double x) {
    return static_cast<T>(static_cast<float>(mean + deviation * x));
  });
  return matrix;
}

/// A parameter of a registry, near where it starts.
template <class T>
void put_parameter(std::vector<Matrix<T>> start, const TensorPart& part, std::uint64_t seed,
                   Weight<T>& weight) {
  Matrix<T> matrix = std::move(start[static_cast<std::size_t>(part.part)]);
  const Matrix<T> noise = random_matrix<T>(matrix.rows(), matrix.columns(), 0, 0.05, "noise",
                                           seed + static_cast<std::uint64_t>(part.part));
  for (std::size_t i = 0; i < matrix.span().size(); ++i) {
    matrix.span()[i] = static_cast<T>(static_cast<float>(matrix.span()[i] + noise.span()[i]));
  }
  weight = own(std::move(matrix));
}

template <class T>
void put(const Design& design, const PlacedTensor& tensor, const TensorPart& part,
         const std::string& name, std::uint64_t seed, ModelWeights<T>& weights) {
  Weight<T>& weight = weight_of(network_of(weights, tensor.detector), part.role, tensor.bias,
                                part.layer, part.part);
  const auto layer = static_cast<std::uint64_t>(part.layer);
  if (part.role == Role::kMixerPart) {
    return put_parameter(
        nn::start_parameters<T>(*design.variants.mixer, mixer_shape(design), seed + layer), part,
        seed + 10 * layer, weight);
  }
  if (part.role == Role::kPositionPart || part.role == Role::kSharedPositionPart) {
    return put_parameter(
        nn::start_position<T>(*position_scheme(design), position_shape(design), seed + layer), part,
        seed + 10 * layer, weight);
  }
  const bool norm = is_norm(part.role) && !tensor.bias;
  const bool gamma = part.role == Role::kGatedGamma || part.role == Role::kAttentionResidual ||
                     part.role == Role::kFeedForwardResidual;
  const double deviation = tensor.bias || norm || gamma ? 0.1 : 0.3;
  const RoleShape shape = role_shape(design, part.role, part.part);
  const bool columns = tensor.layout == TensorLayout::kNextColumns;
  const bool rows = columns || tensor.layout == TensorLayout::kNextRow;
  const Index height = rows ? shape.rows : tensor.vector ? 1 : part.rows;
  const Index width = columns ? shape.columns : tensor.vector ? part.rows : tensor.columns;
  if (rows && weight) return;
  weight = own(random_matrix<T>(height, width, norm || gamma ? 1 : 0, deviation, name, seed));
}

}  // namespace

Design tiny_design(const std::string& members) {
  std::string text =
      "{\"model_type\": \"masque\", \"vocab_size\": 40, \"hidden_size\": 16, "
      "\"max_position_embeddings\": 12, \"intermediate_size\": 24, "
      "\"mask_token_id\": 4";
  for (const auto& [name, value] : {std::pair{"num_attention_heads", "2"}}) {
    const bool gated = members.find("gated_attention") != std::string::npos;
    if (!gated) text += std::string(", \"") + name + "\": " + value;
  }
  if (members.find("num_hidden_layers") == std::string::npos) text += ", \"num_hidden_layers\": 2";
  text += (members.empty() ? "" : ", ") + members + "}";
  const ModelPlan plan =
      find_family("masque")->plan(FamilyConfig(store::ModelConfig::parse(text, "tiny")));
  Design design = plan.design;
  if (!plan.heads.empty()) design.head = plan.heads[0].design;
  return design;
}

template <class T>
ModelWeights<T> random_weights(const Design& design, std::uint64_t seed) {
  const ModelPlan plan = saved_design(design).plan;
  ModelWeights<T> weights;
  weights.layers.resize(static_cast<std::size_t>(count_layers(design)));
  if (design.variants.detector) {
    weights.detector.resize(1);
    weights.detector[0].layers.resize(
        static_cast<std::size_t>(design.variants.detector->num_hidden_layers));
  }
  for (const PlacedTensor& tensor : placed_tensors(plan, head_like(plan, design.head))) {
    for (const TensorPart& part : tensor.parts) {
      const std::string name =
          written_name(plan, tensor) + std::to_string(static_cast<int>(part.role));
      put(tensor.detector ? detector_design(design) : design, tensor, part, name, seed, weights);
    }
  }
  if (design.head.kind != HeadKind::kNone && design.head.tied) {
    weights.decoder.weight = weights.word_table;
  }
  return weights;
}

template ModelWeights<float> random_weights(const Design&, std::uint64_t);
template ModelWeights<double> random_weights(const Design&, std::uint64_t);

bool same_weights(const Design& design, const ModelWeights<float>& a,
                  const ModelWeights<float>& b) {
  const ModelPlan plan = saved_design(design).plan;
  ModelWeights<float> left = a;
  ModelWeights<float> right = b;
  const auto same = [&](const PlacedTensor& tensor, const TensorPart& part) {
    const auto span = [&](ModelWeights<float>& weights) {
      return weight_of(network_of(weights, tensor.detector), part.role, tensor.bias, part.layer,
                       part.part)
          .span();
    };
    const auto x = span(left);
    const auto y = span(right);
    return !x.empty() && std::ranges::equal(x, y);
  };
  return std::ranges::all_of(
      placed_tensors(plan, head_like(plan, design.head)), [&](const PlacedTensor& tensor) {
        return std::ranges::all_of(tensor.parts,
                                   [&](const TensorPart& part) { return same(tensor, part); });
      });
}

}  // namespace masque::model::test
