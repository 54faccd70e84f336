#include "grow/grown_elements.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "tensor/convert.hpp"

namespace masque::grow {

namespace {

Index rows_of(const UnitCopies& units) {
  Index rows = 0;
  for (const Index from : units.from) rows = std::max(rows, from + 1);
  MASQUE_CHECK(rows > 0);
  return rows;
}

class Elements {
 public:
  Elements(const store::Checkpoint& checkpoint, GrownTensor tensor, DType dtype)
      : checkpoint_(checkpoint),
        tensor_(std::move(tensor)),
        dtype_(dtype),
        outer_(tensor_.growth.transposed ? tensor_.growth.columns : tensor_.growth.rows),
        inner_(tensor_.growth.transposed ? tensor_.growth.rows : tensor_.growth.columns),
        width_(tensor_.from->elements() / static_cast<std::uint64_t>(rows_of(outer_))) {
    // Only what fill() reads is kept: there is an object for each tensor.
    tensor_.growth.rows = {};
    tensor_.growth.columns = {};
  }

  std::uint64_t row_bytes() const {
    return static_cast<std::uint64_t>(inner_.size()) * dtype_bits(dtype_) / 8;
  }

  /// Rows `first` … of the output.
  void fill(std::uint64_t first, MutableBytes out) const {
    Row own{tensor_.from, -1, {}};
    Row next{tensor_.next, -1, {}};
    std::vector<double> after(static_cast<std::size_t>(inner_.size()));
    std::vector<double> noise(tensor_.noise > 0 ? after.size() : 0);
    if (tensor_.constant) std::ranges::fill(after, *tensor_.constant);
    for (std::size_t at = 0; at < out.size(); at += row_bytes(), ++first) {
      const auto row = static_cast<std::size_t>(first);
      if (!tensor_.constant) {
        grow_row(row, own, next, after);
        if (!noise.empty()) add_noise(row, noise, after);
      }
      from_double(dtype_, after, out.subspan(at, row_bytes()));
    }
  }

 private:
  /// The row of a tensor that was read last.
  struct Row {
    const store::TensorInfo* tensor;
    Index number;
    std::vector<double> values;
  };

  const std::vector<double>& read(Index number, Row& row) const {
    if (row.number == number) return row.values;
    row.number = number;
    row.values.resize(width_);
    std::vector<std::byte> bytes(width_ * dtype_bits(row.tensor->dtype) / 8);
    checkpoint_.read(*row.tensor, static_cast<std::uint64_t>(number) * bytes.size(), bytes);
    to_double(row.tensor->dtype, bytes, row.values);
    return row.values;
  }

  void grow_row(std::size_t row, Row& own, Row& next, std::vector<double>& after) const {
    const double scale = tensor_.growth.scale * (outer_.share.empty() ? 1 : outer_.share[row]);
    const Index from = outer_.from[row];
    const bool all_next = next.tensor != nullptr && !outer_.next.empty() && outer_.next[row];
    const std::vector<double>& before = read(from, all_next ? next : own);
    const bool some_next = next.tensor != nullptr && !inner_.next.empty();
    const std::vector<double>& before_next = some_next ? read(from, next) : before;
    for (std::size_t i = 0; i < after.size(); ++i) {
      const double share = inner_.share.empty() ? 1 : inner_.share[i];
      const std::vector<double>& source = some_next && inner_.next[i] ? before_next : before;
      after[i] = source[static_cast<std::size_t>(inner_.from[i])] * share * scale;
    }
  }

  void add_noise(std::size_t row, std::vector<double>& noise, std::vector<double>& after) const {
    double squares = 0;
    for (const double value : after) squares += value * value;
    const double deviation = tensor_.noise * std::sqrt(squares / static_cast<double>(after.size()));
    tensor_.stream.for_item(row).normal(0, noise.size(), noise.data());
    for (std::size_t i = 0; i < after.size(); ++i) after[i] += deviation * noise[i];
  }

  const store::Checkpoint& checkpoint_;
  GrownTensor tensor_;
  DType dtype_;
  UnitCopies outer_, inner_;
  std::uint64_t width_;  ///< elements of a row of the file, before
};

}  // namespace

store::Source grown_elements(const store::Checkpoint& checkpoint, GrownTensor tensor, DType dtype) {
  Elements elements(checkpoint, std::move(tensor), dtype);
  constexpr std::uint64_t kAbout = 1 << 20;
  const std::uint64_t row = std::max<std::uint64_t>(1, elements.row_bytes());
  store::Computed computed;
  computed.chunk_bytes = std::max<std::uint64_t>(1, kAbout / row) * row;
  computed.fill = [elements = std::move(elements), row](std::uint64_t offset, MutableBytes out) {
    elements.fill(offset / row, out);
  };
  return computed;
}

}  // namespace masque::grow
