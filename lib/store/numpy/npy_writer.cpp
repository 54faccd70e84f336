// npy files: one array, whose name is lost; the bytes that numpy.save writes.
#include <fmt/format.h>

#include "base/error.hpp"
#include "store/numpy/npy.hpp"
#include "store/weights_writer.hpp"

namespace masque::store {

namespace {

bool holds(DType dtype) { return npy_descr(dtype).has_value(); }

FilePlan plan(const OutputWeights& weights, const std::string& path) {
  if (weights.tensors.size() != 1) {
    throw InputError(path, fmt::format("{} tensors, an npy holds exactly one (an npz several)",
                                       weights.tensors.size()));
  }
  const auto& [info, source] = weights.tensors.front();
  std::string header = npy_header_for(path, info.dtype, info.shape);
  const std::uint64_t size = header.size();
  FilePlan plan;
  plan.parts.push_back({size, Literal{std::move(header)}});
  plan.parts.push_back({npy_data_bytes(path, info.dtype, info.shape), source});
  return plan;
}

const WeightsWriter kWriter{.name = "npy",
                            .extension = ".npy",
                            .single = "",
                            .shard = "",
                            .has_metadata = false,
                            .holds = holds,
                            .plan = plan};
const WriterRegistration kRegistration{kWriter};

}  // namespace

}  // namespace masque::store
