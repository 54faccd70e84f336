#include <algorithm>
#include <memory>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/mapped_file.hpp"
#include "base/parallel.hpp"
#include "model/checkpoint/load.hpp"
#include "store/transpose.hpp"
#include "tensor/convert.hpp"
#include "tensor/finite.hpp"

namespace masque::model {

namespace {

// Elements of a piece of work: large tables are shared between threads.
constexpr Index kPiece = Index{1} << 21;

/// "[3,17]": the place of a flat element.
std::string place_text(const Shape& shape, std::uint64_t flat) {
  Shape place(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    place[d] = flat % shape[d];
    flat /= shape[d];
  }
  return shape_text(place);
}

template <class T>
void check_finite(const store::Checkpoint& checkpoint, const store::TensorInfo& info, Index begin,
                  std::span<const T> values) {
  const auto bad = first_not_finite(values);
  if (!bad) return;
  throw InputError(
      checkpoint.path(),
      fmt::format("{}: element {} is {}, expected a finite number", escape(info.name),
                  place_text(info.shape, static_cast<std::uint64_t>(begin) + *bad), values[*bad]));
}

/// Decodes elements [begin, begin + out.size()) of a tensor.
template <class T>
void read_elements(const store::Checkpoint& checkpoint, const store::TensorInfo& info, Index begin,
                   std::span<T> out) {
  constexpr std::size_t kBlock = 1 << 16;
  const std::size_t width = dtype_bits(info.dtype) / 8;
  std::vector<std::byte> bytes(std::min(kBlock, out.size()) * width);
  for (std::size_t at = 0; at < out.size(); at += kBlock) {
    const std::size_t n = std::min(kBlock, out.size() - at);
    const auto block = std::span(bytes).first(n * width);
    checkpoint.read(info, (static_cast<std::uint64_t>(begin) + at) * width, block);
    if constexpr (std::is_same_v<T, float>) {
      to_float(info.dtype, block, out.subspan(at, n));
    } else {
      to_double(info.dtype, block, out.subspan(at, n));
    }
  }
}

bool is_as_stored(TensorLayout layout) {
  return layout == TensorLayout::kOutIn || layout == TensorLayout::kNextRow;
}

/// The outputs of a transposed or interleaved tensor in the model's order.
template <class T>
void transpose(const PlacedTensor& tensor, const T* from, T* to) {
  const Index rows = tensor.rows;
  const Index columns = tensor.columns;
  if (tensor.layout == TensorLayout::kInOut) {
    const auto width = static_cast<std::size_t>(columns) * sizeof(T);
    store::transpose(reinterpret_cast<const std::byte*>(from), static_cast<std::size_t>(columns),
                     static_cast<std::size_t>(rows), sizeof(T), reinterpret_cast<std::byte*>(to),
                     width);
    return;
  }
  // Row ((h · 3 + part) · size + d) goes to ((part · heads + h) · size + d); a vector's elements
  // are rows of one column.
  const Index width = tensor.vector ? 1 : columns;
  const Index size = (tensor.vector ? columns : rows) / (3 * tensor.heads) * width;
  for (Index h = 0; h < tensor.heads; ++h) {
    for (Index part = 0; part < 3; ++part) {
      std::copy_n(from + (h * 3 + part) * size, size, to + (part * tensor.heads + h) * size);
    }
  }
}

/// One matrix of both: `below` after the rows of `above`.
template <class T>
Weight<T> stacked(const Weight<T>& above, const Weight<T>& below) {
  auto matrix = std::make_shared<Matrix<T>>(above.view.rows + below.view.rows, above.view.columns);
  std::ranges::copy(above.span(), matrix->data());
  std::ranges::copy(below.span(), matrix->data() + above.view.rows * above.view.columns);
  return {matrix->view(), matrix};
}

/// Reads what plans say, piece by piece.
template <class T>
class Reader {
 public:
  Reader(const LoadPlan& plan, const store::Checkpoint& checkpoint)
      : plan_(plan), checkpoint_(checkpoint), wholes_(plan.tensors.size()) {
    files_.reserve(checkpoint.files().size());
    for (const store::WeightsFile& file : checkpoint.files())
      files_.push_back(MappedFile::map(file.file));
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) prepare(i);
  }

  ModelWeights<T> run() && {
    std::vector<std::optional<std::string>> problems(pieces_.size());
    parallel_for(static_cast<Index>(pieces_.size()), 0, [&](Index p) {
      const auto i = static_cast<std::size_t>(p);
      problems[i] = input_error_message([&] { read(pieces_[i]); });
    });
    for (const auto& problem : problems) {
      if (problem) throw InputError(*problem);
    }
    ModelWeights<T> weights;
    weights.layers.resize(static_cast<std::size_t>(plan_.layers));
    if (const auto& detector = plan_.design.variants.detector) {
      weights.detector.resize(1);
      weights.detector[0].layers.resize(static_cast<std::size_t>(detector->num_hidden_layers));
    }
    for (std::size_t i = 0; i < wholes_.size(); ++i) hand_out(i, weights);
    return weights;
  }

 private:
  struct Piece {
    std::size_t tensor = 0;
    Index begin = 0;
    Index count = 0;
  };

  /// Points into the file, or makes room; and notes the pieces of work.
  void prepare(std::size_t i) {
    const auto& [info, tensor] = plan_.tensors[i];
    const Index elements = tensor.rows * tensor.columns;
    Weight<T>& whole = wholes_[i];
    constexpr DType kOwn = std::is_same_v<T, float> ? DType::kF32 : DType::kF64;
    const auto& file = files_[info->file];
    const std::byte* data = info->reader ? nullptr : file->bytes().data() + info->begin;
    const bool aligned = reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0;
    if (data != nullptr && info->dtype == kOwn && aligned && is_as_stored(tensor.layout)) {
      whole = {{reinterpret_cast<const T*>(data), tensor.rows, tensor.columns}, file};
    } else {
      auto matrix = std::make_shared<Matrix<T>>(tensor.rows, tensor.columns);
      whole = {matrix->view(), matrix};
      own_.emplace_back(i, matrix);
    }
    const Index step = is_as_stored(tensor.layout) ? kPiece : std::max<Index>(elements, 1);
    for (Index begin = 0; begin < elements; begin += step) {
      pieces_.push_back({i, begin, std::min(step, elements - begin)});
    }
  }

  void read(const Piece& piece) const {
    const auto& [info, tensor] = plan_.tensors[piece.tensor];
    const auto owner = std::ranges::lower_bound(own_, piece.tensor, {}, &Own::first);
    const auto count = static_cast<std::size_t>(piece.count);
    const auto first = static_cast<std::size_t>(piece.begin);
    if (owner == own_.end() || owner->first != piece.tensor) {
      const auto values = wholes_[piece.tensor].span().subspan(first, count);
      return check_finite(checkpoint_, *info, piece.begin, values);
    }
    Matrix<T>& matrix = *owner->second;
    if (is_as_stored(tensor.layout)) {
      const std::span<T> values = matrix.span().subspan(first, count);
      read_elements(checkpoint_, *info, piece.begin, values);
      return check_finite<T>(checkpoint_, *info, piece.begin, values);
    }
    Matrix<T> stored(1, piece.count);
    read_elements(checkpoint_, *info, 0, stored.span());
    check_finite<T>(checkpoint_, *info, 0, stored.span());
    transpose(tensor, stored.data(), matrix.data());
  }

  /// Gives every part its rows.
  void hand_out(std::size_t i, ModelWeights<T>& weights) const {
    const PlacedTensor& tensor = plan_.tensors[i].placed;
    const Weight<T>& whole = wholes_[i];
    Index at = 0;
    for (const TensorPart& part : tensor.parts) {
      const auto view = tensor.vector ? whole.view.middle_columns(at, part.rows)
                                      : whole.view.middle_rows(at, part.rows);
      const Weight<T> own = {{view.data, view.rows, view.columns}, whole.owner};
      Weight<T>& weight = weight_of(network_of(weights, tensor.detector), part.role, tensor.bias,
                                    part.layer, part.part);
      weight = tensor.layout == TensorLayout::kNextRow && weight ? stacked(weight, own) : own;
      at += part.rows;
    }
  }

  using Own = std::pair<std::size_t, std::shared_ptr<Matrix<T>>>;
  const LoadPlan& plan_;
  const store::Checkpoint& checkpoint_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<Weight<T>> wholes_;
  std::vector<Own> own_;  ///< by tensor, ascending
  std::vector<Piece> pieces_;
};

}  // namespace

template <class T>
ModelWeights<T> read_tensors(const LoadPlan& plan, const store::Checkpoint& checkpoint) {
  ModelWeights<T> weights = Reader<T>(plan, checkpoint).run();
  const HeadDesign& head = plan.design.head;
  if (head.kind != HeadKind::kNone && head.tied) weights.decoder.weight = weights.word_table;
  return weights;
}

template ModelWeights<float> read_tensors(const LoadPlan&, const store::Checkpoint&);
template ModelWeights<double> read_tensors(const LoadPlan&, const store::Checkpoint&);

}  // namespace masque::model
