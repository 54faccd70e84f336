#include "store/new_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/random.hpp"
#include "base/split.hpp"
#include "store/sharding.hpp"
#include "tensor/convert.hpp"

namespace masque::store {

namespace {

constexpr std::size_t kMaxTensors = 1'000'000;

using Sizes = std::map<char, std::uint64_t>;

/// "H", "12", "4*H", "H/A+1": from left to right, products before sums. Nothing on overflow or a
/// division by zero.
std::optional<std::uint64_t> evaluate(std::string_view text, const Sizes& sizes) {
  std::optional<std::uint64_t> sum = 0;
  std::optional<std::uint64_t> product;
  char operation = '*';
  std::size_t at = 0;
  while (at < text.size() && sum) {
    std::uint64_t factor = 0;
    if (std::isdigit(static_cast<unsigned char>(text[at]))) {
      while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
        factor = factor * 10 + static_cast<std::uint64_t>(text[at++] - '0');
      }
    } else {
      factor = sizes.at(text[at++]);
    }
    if (operation == '/') {
      if (factor == 0) return std::nullopt;
      product = *product / factor;
    } else {
      product = checked_multiply(product.value_or(1), factor);
    }
    if (!product) return std::nullopt;
    operation = at < text.size() ? text[at++] : '+';
    if (operation == '+') {
      sum = checked_add(*sum, *product);
      product.reset();
    }
  }
  return sum;
}

Sizes sizes_of(const FamilyNames& family, const ModelConfig& config) {
  Sizes sizes;
  for (const SizeField& field : family.sizes) {
    std::optional<std::uint64_t> value;
    for (const std::string_view name : field.names) {
      if (!value) value = config.size(name);
    }
    if (!value) value = evaluate(field.fallback, sizes);
    if (!value) {
      throw InputError(config.path(), fmt::format("{}: too large, as it follows from other sizes",
                                                  field.names.front()));
    }
    if (*value == 0) {
      throw InputError(config.path(),
                       fmt::format("{}: found 0, expected a positive number", field.names.front()));
    }
    sizes[field.symbol] = *value;
  }
  return sizes;
}

/// Adds the tensors of one pattern; "{x}" runs from 0 to X − 1, the first one outermost.
void expand(const TensorPattern& pattern, const std::string& name, const Sizes& sizes,
            const Shape& shape, const std::string& path, std::vector<PlannedTensor>& out) {
  const std::size_t brace = name.find('{');
  if (brace == std::string::npos) {
    if (out.size() >= kMaxTensors) {
      throw InputError(path, fmt::format("asks for more than {} tensors", kMaxTensors));
    }
    out.push_back({name, shape, pattern.init});
    return;
  }
  const auto symbol = static_cast<char>(std::toupper(static_cast<unsigned char>(name[brace + 1])));
  const std::uint64_t count = sizes.at(symbol);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string filled = name;
    filled.replace(brace, 3, fmt::format("{}", i));
    expand(pattern, filled, sizes, shape, path, out);
  }
}

bool applies(const TensorPattern& pattern, const Sizes& sizes) {
  if (pattern.when.empty()) return true;
  const std::size_t sign = pattern.when.find("!=");
  MASQUE_CHECK(sign != std::string_view::npos);
  return evaluate(pattern.when.substr(0, sign), sizes) !=
         evaluate(pattern.when.substr(sign + 2), sizes);
}

/// Fills `out` (doubles) with values `first` … of a tensor.
void fill_values(const PlannedTensor& tensor, const RandomStream& stream, double deviation,
                 std::optional<std::uint64_t> zero_row, std::uint64_t first,
                 std::span<double> out) {
  const std::uint64_t width = tensor.shape.size() < 2 ? 1 : tensor.shape[1];
  switch (tensor.init) {
    case Init::kZero: std::fill(out.begin(), out.end(), 0.0); return;
    case Init::kOne: std::fill(out.begin(), out.end(), 1.0); return;
    case Init::kSinusoid:
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint64_t row = (first + i) / width;
        const std::uint64_t column = (first + i) % width;
        const std::uint64_t sines = (width + 1) / 2;
        const std::uint64_t pair = column < sines ? column : column - sines;
        const double angle =
            static_cast<double>(row) /
            std::pow(10000.0, 2.0 * static_cast<double>(pair) / static_cast<double>(width));
        out[i] = column < sines ? std::sin(angle) : std::cos(angle);
      }
      return;
    case Init::kNormal:
    case Init::kResidual:
    case Init::kPadded: break;
  }
  stream.normal(first, out.size(), out.data());
  for (double& value : out) value *= deviation;
  if (tensor.init != Init::kPadded || !zero_row) return;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if ((first + i) / width == *zero_row) out[i] = 0;
  }
}

}  // namespace

std::vector<PlannedTensor> plan_tensors(const FamilyNames& family, const ModelConfig& config) {
  const Sizes sizes = sizes_of(family, config);
  std::vector<PlannedTensor> out;
  for (const TensorPattern& pattern : family.tensors) {
    if (!applies(pattern, sizes)) continue;
    Shape shape;
    for (const std::string_view size : split_terminated(pattern.shape, ',')) {
      const auto dimension = evaluate(size, sizes);
      if (!dimension) throw InputError(config.path(), "asks for a tensor that is too large");
      shape.push_back(*dimension);
    }
    if (!byte_count(DType::kF64, shape)) {
      throw InputError(config.path(),
                       fmt::format("asks for a tensor {} of {}, which is too large",
                                   with_prefix(pattern.name, family.prefix), shape_text(shape)));
    }
    expand(pattern, with_prefix(pattern.name, family.prefix), sizes, shape, config.path(), out);
  }
  return out;
}

namespace {

OutputWeights random_weights(const FamilyNames& family, const ModelConfig& config, DType dtype,
                             std::uint64_t seed) {
  const double range = config.number("initializer_range").value_or(0.02);
  // The largest normal value that is drawn is below 7 deviations.
  std::array<std::byte, 8> probe{};
  double largest = 7 * range;
  const MutableBytes bytes = MutableBytes(probe).first(dtype_bits(dtype) / 8);
  from_double(dtype, {&largest, 1}, bytes);
  to_double(dtype, bytes, {&largest, 1});
  if (!(range >= 0) || !std::isfinite(largest)) {
    throw InputError(config.path(),
                     fmt::format("initializer_range: found {}, expected one from 0 that "
                                 "{} can hold",
                                 range, dtype_name(dtype)));
  }
  // Some configs say −1 for "none".
  const auto pad =
      config.number("pad_token_id").value_or(-1) < 0 ? std::nullopt : config.size("pad_token_id");
  OutputWeights weights;
  weights.name = "model.safetensors";
  weights.metadata = {{"format", "pt"}};
  double layers = 1;
  for (const auto& [symbol, size] : sizes_of(family, config)) {
    if (symbol == 'L') layers = static_cast<double>(size);
  }
  for (PlannedTensor& tensor : plan_tensors(family, config)) {
    const double deviation = tensor.init == Init::kResidual ? range / std::sqrt(2 * layers) : range;
    TensorInfo info{.name = tensor.name, .dtype = dtype, .shape = tensor.shape};
    const RandomStream stream(seed, tensor.name);
    const std::uint64_t bytes_each = dtype_bits(dtype) / 8;
    Computed source;
    source.chunk_bytes = 65536 * bytes_each;
    source.fill = [tensor = std::move(tensor), stream, deviation, pad, bytes_each, dtype](
                      std::uint64_t offset, MutableBytes out) {
      std::vector<double> values(out.size() / bytes_each);
      fill_values(tensor, stream, deviation, pad, offset / bytes_each, values);
      from_double(dtype, values, out);
    };
    weights.tensors.push_back({std::move(info), std::move(source)});
  }
  return weights;
}

const FamilyNames& family_of(const ModelConfig& config, const std::optional<std::string>& name) {
  const std::string type = name.value_or(config.model_type());
  if (const FamilyNames* family = find_family_names(type)) return *family;
  std::string known;
  for (const FamilyNames* family : family_names()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family->name);
  }
  throw InputError(config.path(), fmt::format("{} '{}', expected one of {}",
                                              name ? "family" : "model_type", escape(type), known));
}

}  // namespace

NewCheckpointResult new_checkpoint(const std::string& config_path, const std::string& out,
                                   const NewCheckpointRequest& request) {
  if (!can_encode(request.dtype)) {
    throw UsageError(fmt::format("{} {}: not a type that values are rounded to", field("dtype"),
                                 dtype_name(request.dtype)));
  }
  const ModelConfig config = ModelConfig::read(config_path);
  const FamilyNames& family = family_of(config, request.family);
  OutputWeights weights = random_weights(family, config, request.dtype, request.seed);
  NewCheckpointResult result;
  result.family = family.name;
  result.tensors = weights.tensors.size();
  for (const OutputTensor& tensor : weights.tensors) {
    result.parameters += element_count(tensor.info.shape).value();
  }
  const std::vector<OutputWeights> shards =
      split_into_shards(std::move(weights), request.shard_bytes, TensorOrder::kReference);
  result.files = shards.size();
  std::vector<OutputExtra> extras;
  const std::string text = with_dtype(config, request.dtype);
  extras.push_back({"config.json", Literal{text}, text.size(), 0644});
  if (shards.size() > 1) extras.push_back(index_extra(shards));
  write_checkpoint_folder(out, shards, extras, request.write);
  return result;
}

}  // namespace masque::store
