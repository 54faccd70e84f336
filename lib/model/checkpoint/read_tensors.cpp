// The bytes of the tensors of a plan.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/thread/parallel.hpp"
#include "model/checkpoint/load.hpp"
#include "store/checkpoint.hpp"
#include "store/transpose.hpp"
#include "tensor/convert.hpp"
#include "tensor/finite.hpp"
#include "tensor/quantized_block.hpp"
#include "tensor/row_source.hpp"

namespace masque::model {

namespace {

// Elements of a piece of work: large tables are shared between threads.
constexpr Index kPiece = Index{1} << 21;
// Elements of a matrix from which on it may stay in its file.
constexpr Index kLaterFrom = Index{1} << 16;
// The same of a word table, whose rows are then read one by one for each text.
constexpr Index kLaterWordsFrom = Index{1} << 24;

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
  return layout != TensorLayout::kInOut && layout != TensorLayout::kHeadGroups &&
         layout != TensorLayout::kParts;
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
  // A vector's elements are rows of one column.
  const Index width = tensor.vector ? 1 : columns;
  const Index group = (tensor.vector ? columns : rows) / tensor.groups;
  if (tensor.layout == TensorLayout::kParts) {
    const Index roles = std::ssize(tensor.parts) / tensor.groups;
    for (Index part = 0; part < tensor.groups; ++part, from += width * group, to += width * group) {
      for (Index c = 0; c < width; ++c) {
        for (Index i = 0; i < group; ++i)
          to[(i % roles * (group / roles) + i / roles) * width + c] = from[c * group + i];
      }
    }
    return;
  }
  // Rows of each part: in the file by heads, here one after another.
  Index first = 0;
  Index before = 0;
  for (const TensorPart& part : tensor.parts) {
    const Index own = part.rows / tensor.groups;
    for (Index h = 0; h < tensor.groups; ++h) {
      std::copy_n(from + (h * group + before) * width, own * width, to + (first + h * own) * width);
    }
    first += part.rows;
    before += own;
  }
}

/// For each row of the matrix of `tensor` the row of the file that it is; empty: the same one.
std::vector<Index> stored_rows(const PlacedTensor& tensor) {
  if (is_as_stored(tensor.layout)) return {};
  PlacedTensor column = tensor;
  column.columns = 1;
  std::vector<Index> places(static_cast<std::size_t>(tensor.rows)), stored(places.size());
  std::iota(places.begin(), places.end(), Index{0});
  transpose(column, places.data(), stored.data());
  return stored;
}

/// Rows of a tensor that stays in its file.
class RowsInFile final : public RowSource {
 public:
  /// The tensor `info` of `checkpoint`, placed as `tensor`, of which it has rows [first, first +
  /// rows).
  RowsInFile(std::shared_ptr<const store::Checkpoint> checkpoint, const store::TensorInfo& info,
             const PlacedTensor& tensor, Index first, Index rows)
      : checkpoint_(std::move(checkpoint)),
        info_(info),
        rows_(rows),
        columns_(tensor.columns),
        first_(first),
        stored_(stored_rows(tensor)) {
    const BlockFormat* const blocks = info_.reader ? info_.reader->block_format() : nullptr;
    if (blocks != nullptr && static_cast<std::size_t>(columns_) % blocks->elements == 0)
      blocks_ = blocks;
  }

  Index rows() const override { return rows_; }
  Index columns() const override { return columns_; }
  void read(Index first, MatrixView<float> out) const override {
    for_runs(first, out.rows, [&](Index stored, Index count, Index at) {
      const std::span<float> numbers(out.row(at), static_cast<std::size_t>(count * columns_));
      read_elements(*checkpoint_, info_, stored * columns_, numbers);
      check_finite<float>(*checkpoint_, info_, stored * columns_, numbers);
    });
  }
  bool is_bf16() const override { return info_.dtype == DType::kBF16; }
  Index part() const override { return blocks_ ? static_cast<Index>(blocks_->part) : 0; }
  bool has_minima() const override { return blocks_->minima; }
  void read_codes(Index first, Index count, const RowCodes& out) const override {
    const auto columns = static_cast<std::size_t>(columns_), parts = columns / blocks_->part;
    std::vector<std::byte> bytes(columns / blocks_->elements * blocks_->bytes);
    for (Index i = 0; i < count; ++i) {
      const auto row = static_cast<std::size_t>(i);
      const Index stored = stored_row(first + i);
      info_.reader->read_blocks(checkpoint_->files()[info_.file].file,
                                static_cast<std::uint64_t>(stored * columns_), bytes);
      const RowCodes own{out.codes.subspan(row * columns, columns),
                         out.scales.subspan(row * parts, parts),
                         out.minima.subspan(row * parts, parts)};
      unpack_blocks(*blocks_, bytes, own);
      bool finite = true;
      for (std::size_t p = 0; p < parts; ++p)
        finite = finite && std::isfinite(own.scales[p] * 128 - own.minima[p]) &&
                 std::isfinite(own.scales[p] * -128 - own.minima[p]);
      if (finite) continue;
      // Of these numbers some may be too large: then reading throws, naming the first.
      std::vector<float> numbers(columns);
      read(first + i, {numbers.data(), 1, columns_});
    }
  }

 private:
  Index stored_row(Index row) const {
    return stored_.empty() ? first_ + row : stored_[static_cast<std::size_t>(first_ + row)];
  }
  /// Calls work(row of the file, how many, first of them in the `count` rows) for runs of rows that
  /// follow each other in the file.
  template <class Work>
  void for_runs(Index first, Index count, const Work& work) const {
    if (stored_.empty()) return work(first_ + first, count, Index{0});
    for (Index at = 0, run = 1; at < count; at += run) {
      const Index begin = stored_row(first + at);
      for (run = 1; at + run < count && stored_row(first + at + run) == begin + run;) ++run;
      work(begin, run, at);
    }
  }

  std::shared_ptr<const store::Checkpoint> checkpoint_;
  store::TensorInfo info_;
  Index rows_, columns_, first_;
  std::vector<Index> stored_;
  const BlockFormat* blocks_ = nullptr;
};

/// One matrix of both: `below` after the rows of `above`, which may be several side by side.
template <class T>
Weight<T> stacked(const Weight<T>& above, const Weight<T>& below) {
  const Index rows = above.view.rows * above.view.columns / below.view.columns;
  auto matrix = std::make_shared<Matrix<T>>(rows + below.view.rows, below.view.columns);
  std::ranges::copy(above.span(), matrix->data());
  std::ranges::copy(below.span(), matrix->data() + above.view.rows * above.view.columns);
  return {matrix->view(), matrix};
}

/// Reads what plans say, piece by piece.
template <class T>
class Reader {
 public:
  Reader(const LoadPlan& plan, const store::Checkpoint& checkpoint,
         std::shared_ptr<const store::Checkpoint> later)
      : plan_(plan),
        checkpoint_(checkpoint),
        later_(std::move(later)),
        wholes_(plan.tensors.size()) {
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
    if (is_later(tensor)) {
      if (!is_read_twice(tensor)) return;
      for (Index begin = 0; begin < elements; begin += kPiece)
        pieces_.push_back({i, begin, std::min(kPiece, elements - begin)});
      return;
    }
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
    if (is_later(tensor)) {
      std::vector<T> values(count);
      read_elements<T>(checkpoint_, *info, piece.begin, values);
      return check_finite<T>(checkpoint_, *info, piece.begin, values);
    }
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

  /// Whether `tensor` stays in its file: a large matrix whose rows lie one by one in it, and all
  /// parts of which prepare() reads by rows.
  bool is_later(const PlacedTensor& tensor) const {
    if (!std::is_same_v<T, float> || later_ == nullptr || tensor.vector || tensor.bias)
      return false;
    const bool rows = is_as_stored(tensor.layout) ? tensor.layout == TensorLayout::kOutIn
                                                  : tensor.layout != TensorLayout::kInOut;
    const bool words = tensor.parts[0].role == Role::kWordTable;
    return rows && tensor.rows * tensor.columns >= (words ? kLaterWordsFrom : kLaterFrom) &&
           std::ranges::all_of(tensor.parts, [](const TensorPart& part) {
             return part.role == Role::kWordTable || is_dense(part.role);
           });
  }
  /// Whether nothing or only a run that has begun reads `tensor`: what is not finite in it would be
  /// found late, or never.
  static bool is_read_twice(const PlacedTensor& tensor) {
    const Role role = tensor.parts[0].role;
    return role == Role::kWordTable || role == Role::kDecoder || role == Role::kHeadTransform ||
           is_global(role);
  }

  /// Gives every part its rows.
  void hand_out(std::size_t i, ModelWeights<T>& weights) const {
    const PlacedTensor& tensor = plan_.tensors[i].placed;
    const Weight<T>& whole = wholes_[i];
    Index at = 0;
    for (const TensorPart& part : tensor.parts) {
      if (is_later(tensor)) {
        Weight<T>& weight = weight_of(network_of(weights, tensor.detector), part.role, false,
                                      part.layer, part.part);
        weight.view = {nullptr, part.rows, tensor.columns};
        weight.rows =
            std::make_shared<RowsInFile>(later_, *plan_.tensors[i].info, tensor, at, part.rows);
        at += part.rows;
        continue;
      }
      const auto view = tensor.vector ? whole.view.middle_columns(at, part.rows)
                                      : whole.view.middle_rows(at, part.rows);
      const Weight<T> own = {{view.data, view.rows, view.columns}, whole.owner};
      Weight<T>& weight = weight_of(network_of(weights, tensor.detector), part.role, tensor.bias,
                                    part.layer, part.part);
      const bool next = weight && (tensor.layout == TensorLayout::kNextRow ||
                                   tensor.layout == TensorLayout::kNextColumns);
      weight = next ? stacked(weight, own) : own;
      if (next && tensor.layout == TensorLayout::kNextColumns)
        weight.view = {weight.view.data, 1, weight.view.rows * weight.view.columns};
      at += part.rows;
    }
  }

  using Own = std::pair<std::size_t, std::shared_ptr<Matrix<T>>>;
  const LoadPlan& plan_;
  const store::Checkpoint& checkpoint_;
  std::shared_ptr<const store::Checkpoint> later_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<Weight<T>> wholes_;
  std::vector<Own> own_;  ///< by tensor, ascending
  std::vector<Piece> pieces_;
};

}  // namespace

template <class T>
ModelWeights<T> read_tensors(const LoadPlan& plan, const store::Checkpoint& checkpoint,
                             const std::shared_ptr<const store::Checkpoint>& later) {
  ModelWeights<T> weights = Reader<T>(plan, checkpoint, later).run();
  const HeadDesign& head = plan.design.head;
  if (head.kind != HeadKind::kNone && head.tied) weights.decoder.weight = weights.word_table;
  return weights;
}

template ModelWeights<float> read_tensors(const LoadPlan&, const store::Checkpoint&,
                                          const std::shared_ptr<const store::Checkpoint>&);
template ModelWeights<double> read_tensors(const LoadPlan&, const store::Checkpoint&,
                                           const std::shared_ptr<const store::Checkpoint>&);

}  // namespace masque::model
