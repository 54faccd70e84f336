#include "train/folder_parts.hpp"

#include <cstring>

#include "base/parallel.hpp"

namespace masque::train {

OutputTensor float_tensor(const std::string& name, const Shape& shape,
                          std::span<const float> values) {
  OutputTensor tensor;
  tensor.info.name = name;
  tensor.info.dtype = DType::kF32;
  tensor.info.shape = shape;
  Computed source;
  source.fill = [bytes = std::as_bytes(values)](std::uint64_t offset, MutableBytes out) {
    std::memcpy(out.data(), bytes.data() + offset, out.size());
  };
  tensor.source = source;
  return tensor;
}

std::vector<OutputExtra> tokenizer_files(const std::string& path, std::deque<InputFile>& opened) {
  std::vector<std::string> found;
  const auto is_file = [](const std::string& name) {
    return problem_of([&] { InputFile::open(name); }) == std::nullopt;
  };
  if (is_file(path)) {
    found.push_back(path);
  } else {
    for (const char* name :
         {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
          "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model"}) {
      if (is_file(join(path, name))) found.push_back(join(path, name));
    }
  }
  std::vector<OutputExtra> extras;
  for (const std::string& name : found) {
    const InputFile& file = opened.emplace_back(InputFile::open(name));
    extras.push_back({base_name(name), CopyFrom{&file, 0}, file.size(), 0644});
  }
  return extras;
}

OutputExtra text_file(const std::string& name, const std::string& text) {
  return {name, Literal{text}, text.size(), 0644};
}

}  // namespace masque::train
