// TensorFlow's bundles: PREFIX.index and one PREFIX.data-00000-of-00001, in which the tensors lie
// one after the other in the order of their names' bytes.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/digest/crc32c.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/tensorflow/bundle_entry.hpp"
#include "store/weights_writer.hpp"

namespace masque::store {

namespace {

/// More than any name of a variable, so that the index is small.
constexpr std::size_t kMostNameBytes = 65'536;
constexpr std::uint64_t kMostSize = std::numeric_limits<std::int64_t>::max();

struct Item {
  BundleItem entry;
  Source source;
  bool sum_is_known = false;
};

bool holds(DType dtype) { return tensorflow_of_dtype(dtype).has_value(); }

std::vector<Item> items_of(const OutputWeights& weights, const std::string& path) {
  std::vector<Item> items;
  items.reserve(weights.tensors.size() + weights.opaque.size());
  for (const auto& [info, source] : weights.tensors) {
    const auto type = tensorflow_of_dtype(info.dtype);
    const auto size = byte_count(info.dtype, info.shape);
    MASQUE_CHECK(type && size);
    items.push_back({{info.name, *type, info.shape, 0, *size, 0}, source});
  }
  for (const auto& [info, source, after] : weights.opaque) {
    const auto type = tensorflow_type(info.type);
    if (!type) {
      throw InputError(path, fmt::format("tensor '{}' is {}, for which tensorflow has no type",
                                         escape(info.name), escape(info.type)));
    }
    // Of strings it is not that of the bytes.
    items.push_back({{info.name, *type, info.shape, 0, info.bytes(), info.checksum}, source, true});
  }
  std::ranges::sort(
      items, {}, [](const Item& item) -> const auto& { return item.entry.name; });
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string& name = items[i].entry.name;
    if (name.empty() || name.front() == '\0' || name.size() > kMostNameBytes) {
      throw InputError(path, fmt::format("a variable called '{}', expected a plain name",
                                         escape(name.substr(0, 100))));
    }
    // Its numbers have a sign; only a tensor without elements can have such a size.
    if (std::ranges::any_of(items[i].entry.shape, [](auto size) { return size > kMostSize; })) {
      throw InputError(
          path, fmt::format("tensor '{}' has a dimension of more than 2^63 - 1", escape(name)));
    }
    if (i > 0 && items[i - 1].entry.name == name)
      throw InputError(path, fmt::format("two variables called '{}'", escape(name)));
  }
  return items;
}

FilePlan plan(const OutputWeights& weights, const std::string& path) {
  FilePlan plan;
  plan.checksum = Checksum::kCrc32c;
  std::vector<BundleItem> entries;
  std::vector<int> sums;  // of each entry; none if it is known
  std::uint64_t at = 0;
  for (Item& item : items_of(weights, path)) {
    item.entry.offset = at;
    at = place_after(at, item.entry.size, path);
    const int sum = item.sum_is_known ? -1 : static_cast<int>(plan.sums++);
    plan.parts.push_back({item.entry.size, std::move(item.source), sum});
    entries.push_back(std::move(item.entry));
    sums.push_back(sum);
  }
  plan.index = [entries = std::move(entries),
                sums = std::move(sums)](std::span<const std::uint32_t> found) {
    std::vector<BundleItem> items = entries;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (sums[i] >= 0) items[i].checksum = masked_crc32c(found[static_cast<std::size_t>(sums[i])]);
    }
    return write_bundle_index(items);
  };
  return plan;
}

const WeightsWriter kWriter{.name = "tensorflow",
                            .extension = ".index",
                            .single = "bert_model.ckpt.index",
                            .shard = "",
                            .has_metadata = false,
                            .has_opaque = true,
                            .data = ".data-00000-of-00001",
                            .holds = holds,
                            .plan = plan};
const WriterRegistration kRegistration{kWriter};

}  // namespace

}  // namespace masque::store
