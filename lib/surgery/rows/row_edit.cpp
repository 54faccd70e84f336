#include "surgery/rows/row_edit.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "surgery/rows/row_map.hpp"
#include "surgery/rows/vocabulary_change.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

struct RowJob {
  const store::Checkpoint* checkpoint;
  const store::TensorInfo* tensor;
  std::shared_ptr<const std::vector<std::uint64_t>> from;
  RowValues values;
  std::uint64_t row_bytes;

  void compute(std::uint64_t row, MutableBytes out) const {
    std::vector<double> value(out.size() / (dtype_bits(tensor->dtype) / 8));
    values(row, value);
    from_double(tensor->dtype, value, out);
    to_double(tensor->dtype, out, value);
    for (const double number : value) {
      if (std::isfinite(number)) continue;
      throw InputError(checkpoint->path(),
                       fmt::format("tensor '{}': the new row {} would hold {} as {}",
                                   escape(tensor->name), row, number, dtype_name(tensor->dtype)));
    }
  }

  void fill(std::uint64_t offset, MutableBytes out) const {
    const std::uint64_t first = offset / row_bytes;
    const std::uint64_t count = out.size() / row_bytes;
    for (std::uint64_t i = 0; i < count;) {
      const std::uint64_t source = (*from)[first + i];
      if (source == VocabularyChange::kNew) {
        compute(first + i, out.subspan(i * row_bytes, row_bytes));
        ++i;
        continue;
      }
      // Old rows that still lie one after the other are one read.
      std::uint64_t run = 1;
      while (i + run < count && (*from)[first + i + run] == source + run) ++run;
      checkpoint->read(*tensor, source * row_bytes, out.subspan(i * row_bytes, run * row_bytes));
      i += run;
    }
  }
};

}  // namespace

store::Source edited_rows(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor,
                          std::shared_ptr<const std::vector<std::uint64_t>> from,
                          RowValues values) {
  const std::uint64_t row_bytes = tensor.bytes() / tensor.shape[0];
  auto job = std::make_shared<const RowJob>(
      RowJob{&checkpoint, &tensor, std::move(from), std::move(values), row_bytes});
  return store::Computed{[job](std::uint64_t offset, MutableBytes out) { job->fill(offset, out); },
                         rows_per_block(tensor) * row_bytes, job.get()};
}

store::TensorInfo as_table(const store::TensorInfo& tensor) {
  store::TensorInfo table = tensor;
  if (table.shape.size() == 1) table.shape.push_back(1);
  return table;
}

}  // namespace masque::surgery
