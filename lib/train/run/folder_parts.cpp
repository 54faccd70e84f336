#include "train/run/folder_parts.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "store/tensors_digest.hpp"
#include "text/open/google_folder.hpp"
#include "text/open/spiece_model.hpp"

namespace masque::train {

store::OutputTensor float_tensor(const std::string& name, const Shape& shape,
                                 std::span<const float> values) {
  store::OutputTensor tensor;
  tensor.info.name = name;
  tensor.info.dtype = DType::kF32;
  tensor.info.shape = shape;
  store::Computed source;
  source.fill = [bytes = std::as_bytes(values)](std::uint64_t offset, MutableBytes out) {
    std::memcpy(out.data(), bytes.data() + offset, out.size());
  };
  tensor.source = source;
  return tensor;
}

namespace {

constexpr std::uint64_t kMostSettings = 64 << 20;

/// The name under which a folder's vocabulary is looked for.
std::string vocabulary_name(const std::string& path) {
  const std::string name = base_name(path);
  if (name.ends_with(".txt")) return "vocab.txt";
  if (name.ends_with(".json") && name != "vocab.json") return "tokenizer.json";
  const bool known = std::ranges::find(text::kSpieceFiles, name) != text::kSpieceFiles.end();
  return known || !name.ends_with(".model") ? name : "spiece.model";
}

bool is_regular(const std::string& path) {
  return input_error_message([&] { InputFile::open(path); }) == std::nullopt;
}

}  // namespace

bool has_files(const text::Tokenizer& tokenizer) {
  const text::TokenizerParts& parts = tokenizer.parts();
  return parts.format != text::kLinesFormat && is_regular(parts.path);
}

std::vector<store::OutputExtra> tokenizer_files(const text::Tokenizer& tokenizer,
                                                const std::string& config,
                                                std::deque<InputFile>& opened) {
  constexpr const char* kSettings = "tokenizer_config.json";
  const std::string& path = tokenizer.parts().path;
  if (!has_files(tokenizer)) return {};
  const std::string folder = folder_of(path);
  std::vector<std::string> found = {path};
  const auto add = [&](const char* name) {
    if (is_regular(join(folder, name))) found.push_back(join(folder, name));
  };
  if (base_name(path) == "vocab.json") add("merges.txt");
  for (const char* name :
       {kSettings, "special_tokens_map.json", "added_tokens.json", kChatTemplate})
    add(name);
  std::vector<store::OutputExtra> extras;
  for (const std::string& name : found) {
    const InputFile& file = opened.emplace_back(InputFile::open(name));
    const std::string own = name == path ? vocabulary_name(path) : base_name(name);
    extras.push_back({own, store::CopyFrom{&file, 0}, file.size(), 0644});
  }
  std::optional<std::string> settings = text::tokenizer_config_by_name(folder);
  if (const auto needed = text::needed_settings(tokenizer, config); !needed.empty()) {
    const std::string own = join(folder, kSettings);
    if (!settings && is_regular(own)) settings = read_text(own, kMostSettings);
    if (!settings) settings = "{}\n";
    for (const auto& [name, value] : needed) settings = set_json_member(*settings, {name}, value);
    std::erase_if(extras, [&](const store::OutputExtra& file) { return file.name == kSettings; });
  }
  if (settings) extras.push_back(text_file(kSettings, *settings));
  return extras;
}

bool are_saved(const store::OutputWeights& weights, const store::Checkpoint& saved) {
  if (weights.tensors.size() != saved.tensors().size()) return false;
  std::vector<std::byte> ours, theirs;
  for (const store::OutputTensor& tensor : weights.tensors) {
    const store::TensorInfo* other = saved.find(tensor.info.name);
    if (other == nullptr || other->dtype != tensor.info.dtype || other->shape != tensor.info.shape)
      return false;
    const auto* computed = std::get_if<store::Computed>(&tensor.source);
    const std::uint64_t step = computed != nullptr ? computed->chunk_bytes : 1 << 20;
    for (std::uint64_t at = 0; at < other->bytes(); at += step) {
      const auto count = static_cast<std::size_t>(std::min(step, other->bytes() - at));
      ours.resize(count);
      theirs.resize(count);
      store::read_source(tensor.source, at, ours);
      saved.read(*other, at, theirs);
      if (std::memcmp(ours.data(), theirs.data(), count) != 0) return false;
    }
  }
  return true;
}

store::OutputExtra text_file(const std::string& name, const std::string& text) {
  return {name, store::Literal{text}, text.size(), 0644};
}

namespace {

/// The XXH3 of `size` bytes, which `read` gives from an offset on.
template <class Read>
std::string digest_of_bytes(std::uint64_t size, const Read& read) {
  constexpr std::uint64_t kAtOnce = 1 << 20;
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  std::vector<std::byte> bytes;
  for (std::uint64_t at = 0; at < size; at += bytes.size()) {
    bytes.resize(std::min(kAtOnce, size - at));
    read(at, MutableBytes(bytes));
    hasher->add(bytes);
  }
  return hasher->digest();
}

std::string digest_of_file(const std::string& path) {
  const InputFile file = InputFile::open(path);
  return digest_of_bytes(file.size(), [&](std::uint64_t offset, MutableBytes out) {
    throw_if_interrupted();
    file.read(offset, out);
  });
}

bool has_tensors(std::string_view name) { return name.ends_with(".safetensors"); }

}  // namespace

FileDigests digests_of(const store::OutputWeights& weights,
                       const std::vector<store::OutputExtra>& files) {
  MASQUE_CHECK(has_tensors(weights.name));
  FileDigests digests{{weights.name, store::tensors_digest(weights)}};
  for (const store::OutputExtra& file : files) {
    MASQUE_CHECK(!has_tensors(file.name));
    digests.emplace_back(file.name,
                         digest_of_bytes(file.size, [&](std::uint64_t offset, MutableBytes out) {
                           store::read_source(file.source, offset, out);
                         }));
  }
  return digests;
}

void check_digests(const std::string& folder, const FileDigests& digests) {
  for (const auto& [name, digest] : digests) {
    const std::string path = join(folder, name);
    const std::string found = has_tensors(name)
                                  ? store::tensors_digest(store::open_checkpoint(path))
                                  : digest_of_file(path);
    if (found != digest) {
      throw InputError(path,
                       "was changed since the run wrote it: it does not have the digest of then");
    }
  }
}

std::string metrics_digest(const ScratchFile& metrics) {
  return digest_of_bytes(
      metrics.size(), [&](std::uint64_t offset, MutableBytes out) { metrics.read(offset, out); });
}

std::string metrics_digest(const std::string& folder) {
  return digest_of_file(join(folder, kMetricsName));
}

store::OutputExtra metrics_file(const ScratchFile& metrics) {
  store::Computed source;
  source.fill = [&metrics](std::uint64_t offset, MutableBytes out) { metrics.read(offset, out); };
  return {kMetricsName, source, metrics.size(), 0644};
}

}  // namespace masque::train
