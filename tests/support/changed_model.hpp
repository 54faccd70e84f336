// A tiny checkpoint of tests/data/model with some numbers changed.
#pragma once

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "store/checkpoint.hpp"
#include "support/make_safetensors.hpp"
#include "support/temp_folder.hpp"

namespace masque::test {

/// Copies config.json and the weights of a model, after `change` has seen every F32 tensor.
class ChangedModel {
 public:
  ChangedModel(const std::string& name,
               const std::function<void(const std::string& tensor, std::span<float>)>& change) {
    const std::string from = std::string(MASQUE_TEST_DATA "/model/") + name;
    const store::Checkpoint checkpoint = store::open_checkpoint(from);
    std::vector<SmallTensor> tensors;
    for (const store::TensorInfo& info : checkpoint.tensors()) {
      std::string bytes(info.bytes(), '\0');
      checkpoint.read(info, 0, std::as_writable_bytes(std::span(bytes)));
      if (info.dtype == DType::kF32) {
        std::vector<float> values(info.elements());
        std::memcpy(values.data(), bytes.data(), bytes.size());
        change(info.name, values);
        std::memcpy(bytes.data(), values.data(), bytes.size());
      }
      tensors.push_back({info.name, std::string(dtype_name(info.dtype)), info.shape, bytes});
    }
    write_file(folder_ / "model.safetensors", make_safetensors(tensors));
    write_file(folder_ / "config.json", read_file(from + "/config.json"));
  }

  const std::string& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

}  // namespace masque::test
