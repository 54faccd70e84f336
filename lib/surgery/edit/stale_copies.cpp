#include "surgery/edit/stale_copies.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/output_folder.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::surgery {

namespace {

constexpr std::array<std::string_view, 10> kEndings{".safetensors", ".bin",  ".pt", ".pth",
                                                    ".h5",          ".onnx", ".ot", ".msgpack",
                                                    ".ckpt.index",  ".gguf"};

// What lm-train leaves in a folder.
constexpr std::string_view kTrainingState = "training.safetensors";

}  // namespace

std::vector<std::string> stale_copies(const store::Checkpoint& checkpoint) {
  std::vector<std::string> stale;
  if (!checkpoint.is_folder()) return stale;
  std::vector<std::string> own = store::weight_files(checkpoint);
  const std::vector<std::string> others = store::other_bundle_files(checkpoint);
  own.insert(own.end(), others.begin(), others.end());
  for (const std::string& name : list_files(checkpoint.folder())) {
    const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
    if (std::ranges::any_of(kEndings, ends) && std::ranges::find(own, name) == own.end())
      stale.push_back(name);
  }
  return stale;
}

std::string stale_copy_note(const std::string& name, std::string_view what) {
  const std::string note = fmt::format("'{}' {} unchanged: ", escape(name), what);
  if (name != kTrainingState) return note + "it may hold the old weights";
  return note + fmt::format("it has the old weights, and lm-train {} refuses them; delete it",
                            field("resume"));
}

}  // namespace masque::surgery
