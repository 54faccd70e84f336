// safetensors files: the header is written by store/safetensors.
#include "store/safetensors/safetensors.hpp"
#include "store/weights_writer.hpp"

namespace masque::store {

namespace {

bool holds(DType /*dtype*/) { return true; }

FilePlan plan(const OutputWeights& weights, const std::string& /*path*/) {
  std::vector<TensorInfo> infos;
  infos.reserve(weights.tensors.size());
  for (const OutputTensor& tensor : weights.tensors) infos.push_back(tensor.info);
  std::string header = write_safetensors_header(infos, weights.metadata, weights.alignment);
  FilePlan plan;
  const std::uint64_t size = header.size();
  plan.parts.push_back({size, Literal{std::move(header)}});
  for (const OutputTensor& tensor : weights.tensors)
    plan.parts.push_back({byte_count(tensor.info.dtype, tensor.info.shape).value(), tensor.source});
  return plan;
}

const WeightsWriter kWriter{.name = "safetensors",
                            .extension = ".safetensors",
                            .single = "model.safetensors",
                            .shard = "model-{:05}-of-{:05}.safetensors",
                            .has_metadata = true,
                            .holds = holds,
                            .plan = plan};
const WriterRegistration kRegistration{kWriter};

}  // namespace

}  // namespace masque::store
