#include "surgery/stale_copies.hpp"

#include <algorithm>
#include <array>

#include "base/output_folder.hpp"

namespace masque {

namespace {

constexpr std::array<std::string_view, 10> kEndings{".safetensors", ".bin",  ".pt", ".pth",
                                                    ".h5",          ".onnx", ".ot", ".msgpack",
                                                    ".ckpt.index",  ".gguf"};

}  // namespace

std::vector<std::string> stale_copies(const Checkpoint& checkpoint) {
  std::vector<std::string> stale;
  if (!checkpoint.is_folder()) return stale;
  for (const std::string& name : list_files(checkpoint.folder())) {
    const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
    const auto is_own = [&](const WeightsFile& file) { return file.name == name; };
    if (std::ranges::any_of(kEndings, ends) && std::ranges::none_of(checkpoint.files(), is_own))
      stale.push_back(name);
  }
  return stale;
}

}  // namespace masque
