// Small checkpoints for the tests of surgery: a few rows of known numbers in a folder of their own.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/random/random.hpp"
#include "store/checkpoint.hpp"
#include "store/safetensors/safetensors.hpp"
#include "support/temp_folder.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

/// A tensor with its values, to be encoded in `dtype`.
struct ExampleTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<double> values;
};

/// `count` reproducible numbers of about the size of embeddings.
inline std::vector<double> numbers(std::uint64_t seed, std::size_t count) {
  std::vector<double> values(count);
  RandomStream(seed, "example").normal(0, count, values.data());
  for (double& value : values) value *= 0.05;
  return values;
}

/// Bytes of a safetensors file with these tensors in this order.
inline std::string example_file(const std::vector<ExampleTensor>& tensors,
                                const store::Metadata& metadata = {{"format", "pt"}}) {
  std::vector<store::TensorInfo> infos;
  std::string data;
  for (const ExampleTensor& tensor : tensors) {
    infos.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
    std::vector<std::byte> bytes(tensor.values.size() * dtype_bits(tensor.dtype) / 8);
    from_double(tensor.dtype, tensor.values, bytes);
    data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return store::write_safetensors_header(infos, metadata) + data;
}

/// All values of a tensor.
inline std::vector<double> values_of(const store::Checkpoint& checkpoint, const std::string& name) {
  const store::TensorInfo& tensor = checkpoint.get(name);
  std::vector<std::byte> bytes(tensor.bytes());
  checkpoint.read(tensor, 0, bytes);
  std::vector<double> values(tensor.elements());
  to_double(tensor.dtype, bytes, values);
  return values;
}

inline const std::string kTable = "bert.embeddings.word_embeddings.weight";
inline const std::string kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[unused0]\nthe\nof\nand\n";

/// A BERT folder with `rows` × `width` embeddings; what else it holds is up to the arguments.
struct ExampleBert {
  std::uint64_t rows = 11;
  std::uint64_t width = 5;
  DType dtype = DType::kF32;
  bool head = true;
  bool decoder = false;       ///< stores the decoder weight too …
  bool decoder_equal = true;  ///< … equal to the table
  std::string config = "{\n  \"model_type\": \"bert\",\n  \"tie_word_embeddings\": true\n}\n";
  std::string vocabulary = kVocabulary;

  std::vector<ExampleTensor> tensors() const {
    const auto table = numbers(1, rows * width);
    std::vector<ExampleTensor> out = {{kTable, dtype, {rows, width}, table}};
    if (head) out.push_back({"cls.predictions.bias", dtype, {rows}, numbers(2, rows)});
    if (decoder) {
      out.push_back({"cls.predictions.decoder.weight",
                     dtype,
                     {rows, width},
                     decoder_equal ? table : numbers(3, rows * width)});
    }
    out.push_back({"other", dtype, {3}, numbers(4, 3)});
    return out;
  }

  void write(const test::TempFolder& folder, const std::string& name = "in") const {
    test::write_file(folder / (name + "/model.safetensors"), example_file(tensors()));
    if (!config.empty()) test::write_file(folder / (name + "/config.json"), config);
    if (!vocabulary.empty()) test::write_file(folder / (name + "/vocab.txt"), vocabulary);
  }

  /// The table in the second of two shards, bias and `other` in the first; no index, no config.
  void write_shards(const test::TempFolder& folder, const std::string& name) const {
    const auto all = tensors();
    test::write_file(folder / (name + "/model-00001-of-00002.safetensors"),
                     example_file({all[1], all[2]}));
    test::write_file(folder / (name + "/model-00002-of-00002.safetensors"), example_file({all[0]}));
    test::write_file(folder / (name + "/vocab.txt"), vocabulary);
  }
};

}  // namespace masque::surgery
