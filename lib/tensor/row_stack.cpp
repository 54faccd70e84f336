#include "tensor/row_stack.hpp"

#include <algorithm>
#include <utility>

namespace masque {

namespace {

/// Calls work(source, its first row, rows, at which of the `count` rows they are wanted) for the
/// runs of `parts` that make up rows [first, first + count) of the stack.
template <class Work>
void for_runs(const std::vector<std::shared_ptr<const RowSource>>& parts, Index first, Index count,
              const Work& work) {
  Index begin = 0;  // of the source in the stack
  for (const auto& source : parts) {
    const Index from = std::max(first, begin);
    const Index to = std::min(first + count, begin + source->rows());
    if (from < to) work(*source, from - begin, to - from, from - first);
    begin += source->rows();
  }
}

}  // namespace

RowStack::RowStack(std::vector<std::shared_ptr<const RowSource>> parts) : parts_(std::move(parts)) {
  MASQUE_CHECK(!parts_.empty());
  part_ = parts_[0]->part();
  for (const auto& source : parts_) {
    MASQUE_CHECK(source->columns() == columns());
    rows_ += source->rows();
    part_ = std::min(part_, source->part());
  }
  if (part_ == 0) return;
  for (const auto& source : parts_) {
    if (source->part() % part_ != 0) part_ = 0;
    if (part_ == 0) return;
    minima_ = minima_ || source->has_minima();
  }
}

void RowStack::read(Index first, MatrixView<float> out) const {
  for_runs(parts_, first, out.rows,
           [&](const RowSource& source, Index from, Index count, Index at) {
             source.read(from, out.middle_rows(at, count));
           });
}

void RowStack::read_codes(Index first, Index count, const RowCodes& out) const {
  const Index scales = columns() / part_;
  for_runs(parts_, first, count, [&](const RowSource& source, Index from, Index rows, Index at) {
    const auto some = [](auto all, Index begin, Index size) {
      return all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
    };
    const Index own = columns() / source.part();
    source.read_codes(
        from, rows,
        {some(out.codes, at * columns(), rows * columns()),
         some(out.scales, at * scales, rows * own), some(out.minima, at * scales, rows * own)});
    // The scales of longer parts count for several short ones.
    const Index each = scales / own;
    for (const std::span<float> numbers : {out.scales, out.minima}) {
      float* const begin = numbers.data() + at * scales;
      for (Index i = each == 1 ? 0 : rows * own; i-- > 0;) {
        const float number = begin[i];
        std::fill_n(begin + i * each, each, number);
      }
    }
  });
}

}  // namespace masque
