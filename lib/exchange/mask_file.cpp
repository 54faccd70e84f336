#include "exchange/mask_file.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "exchange/convention.hpp"
#include "exchange/matrix.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/numpy/array.hpp"
#include "tensor/convert.hpp"

namespace masque::exchange {

namespace {

constexpr std::uint64_t kChunk = 1 << 20;

void write_text(const std::string& path, const std::function<void(const TextSink&)>& print) {
  OutputFile file(path);
  print([&](std::string_view piece) { write_all(file.descriptor(), as_bytes(piece), path); });
  file.commit();
}

std::uint64_t bytes_of(const MatrixSource& source) {
  return byte_count(source.dtype, source.shape).value();
}

void write_safetensors(const std::string& path, const MatrixSource& source) {
  store::OutputWeights weights;
  weights.name = path;
  store::OutputTensor tensor;
  tensor.info.name = "mask";
  tensor.info.dtype = source.dtype;
  tensor.info.shape = source.shape;
  tensor.source = store::Computed{source.fill, kChunk};
  weights.tensors.push_back(std::move(tensor));
  store::write_checkpoint_file(path, weights, {});
}

void write_tsv(const std::string& path, const MatrixSource& source, const std::string& header) {
  Shape shape = source.shape;
  while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
  if (shape.size() > 2) throw UsageError("a .tsv file has two dimensions at most");
  const std::uint64_t columns = shape.size() == 2 ? shape[1] : 1;
  const std::uint64_t rows = shape.empty() ? 1 : shape[0];
  const std::size_t element = dtype_bits(source.dtype) / 8;
  OutputFile file(path);
  std::string text = header.empty() ? "" : header + "\n";
  std::vector<std::byte> row(columns * element);
  for (std::uint64_t i = 0; i < rows; ++i) {
    source.fill(i * columns * element, row);
    for (std::uint64_t j = 0; j < columns; ++j) {
      if (j > 0) text += '\t';
      text += element_text(source.dtype, row.data() + j * element);
    }
    text += '\n';
    if (text.size() < kChunk && i + 1 < rows) continue;
    write_all(file.descriptor(), as_bytes(text), path);
    text.clear();
  }
  write_all(file.descriptor(), as_bytes(text), path);
  file.commit();
}

}  // namespace

mask::BitMatrix read_mask(const std::string& path, std::optional<mask::Lengths> expected) {
  const Convention& allow = *find_convention("allow");
  const DecodeRequest request{.path = input_name(path)};
  const auto check = [&](DType dtype, const Shape& shape) {
    allow.check(dtype, shape, request);
    const std::uint64_t rows = shape[shape.size() - 2];
    const std::uint64_t columns = shape.back();
    if (!expected || (rows == static_cast<std::uint64_t>(expected->queries) &&
                      columns == static_cast<std::uint64_t>(expected->keys)))
      return;
    throw InputError(request.path, fmt::format("a mask of {} × {}, expected {} × {}", rows, columns,
                                               expected->queries, expected->keys));
  };
  const store::Array array = read_matrix(path, check);
  check(array.dtype, array.shape);  // of a text, which has no header
  return allow.decode(array, request);
}

mask::BitMatrix read_mask(const Convention& convention, const std::string& path,
                          const DecodeRequest& request) {
  const auto check = [&](DType dtype, const Shape& shape) {
    convention.check(dtype, shape, request);
  };
  return convention.decode(read_matrix(path, check), request);
}

void check_dense_size(const std::string& path, mask::Lengths lengths, unsigned bits, bool force) {
  const double cells = static_cast<double>(lengths.queries) * static_cast<double>(lengths.keys);
  if (force || cells <= static_cast<double>(kMaxDenseCells)) return;
  throw InputError(
      path, fmt::format("{} × {} cells are {:.1f} GB, expected at most 2^31 cells without {}",
                        lengths.queries, lengths.keys, cells * bits / 8e9, field("force")));
}

void write_mask(const std::string& path, const mask::Mask& mask, const WriteMaskOptions& options) {
  if (path.ends_with(".json")) {
    return write_text(
        path, [&](const TextSink& sink) { print_mask_json(mask, options.expression, sink); });
  }
  if (path.ends_with(".pbm")) {
    check_dense_size(path, mask.lengths(), 1, options.force);
    return write_text(path, [&](const TextSink& sink) { print_mask_pbm(mask, sink); });
  }
  if (path.ends_with(".txt")) {
    check_dense_size(path, mask.lengths(), 8, options.force);
    return write_text(path, [&](const TextSink& sink) { print_mask_text(mask, sink); });
  }
  check_dense_size(path, mask.lengths(), path.ends_with(".tsv") ? 16 : 8, options.force);
  write_matrix(path, find_convention("allow")->encode(mask, path));
}

void write_matrix(const std::string& path, const MatrixSource& source, const std::string& header) {
  if (path.ends_with(".tsv")) return write_tsv(path, source, header);
  if (path.ends_with(".npy"))
    return store::write_npy(path, source.dtype, source.shape, source.fill);
  if (path.ends_with(".safetensors")) return write_safetensors(path, source);
  if (path.ends_with(".npz")) {
    store::Array array;
    array.name = "mask";
    array.dtype = source.dtype;
    array.shape = source.shape;
    array.data.resize(bytes_of(source));
    source.fill(0, array.data);
    return store::write_npz(path, std::span(&array, 1));
  }
  throw UsageError(
      fmt::format("{}: expected a name that ends in .npy .npz .safetensors .pbm .tsv .txt .json "
                  "(.svg or .png for a picture)",
                  escape(path)));
}

}  // namespace masque::exchange
