#include "store/array_writer.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/output_file.hpp"
#include "store/npy.hpp"
#include "store/npy_descr.hpp"
#include "store/transfer.hpp"
#include "store/zip_stream.hpp"
#include "store/zip_writer.hpp"

namespace masque {

namespace {

/// The header of an array that is to be written to `path`.
std::string header_for(const std::string& path, DType dtype, const Shape& shape) {
  if (!npy_descr(dtype)) {
    throw InputError(path, fmt::format("npy has no type for {}, expected a conversion to F32 first",
                                       dtype_name(dtype)));
  }
  if (shape.size() > NpyLimits{}.rank) {
    throw InputError(path, fmt::format("an array of {} dimensions, npy has at most {}",
                                       shape.size(), NpyLimits{}.rank));
  }
  return write_npy_header(dtype, shape);
}

std::uint64_t data_bytes(const std::string& path, DType dtype, const Shape& shape) {
  const auto bytes = byte_count(dtype, shape);
  if (!bytes) {
    throw InputError(path, fmt::format("an array of shape {} is too large", shape_text(shape)));
  }
  return *bytes;
}

std::uint64_t add(const std::string& path, std::uint64_t a, std::uint64_t b) {
  const auto sum = checked_add(a, b);
  if (!sum) throw InputError(path, "would have more than 2^64 bytes");
  return *sum;
}

Computed copy_of(const Array& array) {
  return {[&array](std::uint64_t offset, MutableBytes out) {
    const Bytes from = Bytes(array.data).subspan(offset, out.size());
    std::copy(from.begin(), from.end(), out.begin());
  }};
}

}  // namespace

void write_npy(const std::string& path, DType dtype, const Shape& shape, const FillFunction& fill,
               int threads) {
  std::string header = header_for(path, dtype, shape);
  const std::uint64_t begin = header.size();
  const std::uint64_t bytes = data_bytes(path, dtype, shape);
  OutputFile output(path);
  const int descriptor = output.descriptor();
  reserve_space(descriptor, add(path, begin, bytes), path);
  transfer({{descriptor, path, 0, begin, Literal{std::move(header)}},
            {descriptor, path, begin, bytes, Computed{fill}}},
           threads, {});
  output.commit();
}

void write_npy(const std::string& path, const Array& array) {
  MASQUE_CHECK(byte_count(array.dtype, array.shape) == array.data.size());
  write_npy(path, array.dtype, array.shape, copy_of(array).fill);
}

void write_npz(const std::string& path, std::span<const Array> arrays) {
  std::set<std::string_view> names;
  for (const Array& array : arrays) {
    MASQUE_CHECK(byte_count(array.dtype, array.shape) == array.data.size());
    if (!is_plain_path(array.name) || array.name.size() > kMaxZipName - 4) {
      throw InputError(path, fmt::format("an array called '{}', expected a plain name",
                                         escape(array.name.substr(0, 100))));
    }
    if (!names.insert(array.name).second) {
      throw InputError(path, fmt::format("two arrays called '{}'", escape(array.name)));
    }
  }
  OutputFile output(path);
  std::vector<ZipEntry> entries;
  std::vector<Piece> pieces;
  std::uint64_t at = 0;
  const auto append = [&](std::uint64_t size, Source source) {
    pieces.push_back({output.descriptor(), path, at, size, std::move(source)});
    at = add(path, at, size);
  };
  for (const Array& array : arrays) {
    const std::string header = header_for(path, array.dtype, array.shape);
    const ZipEntry entry{array.name + ".npy", crc32_of(array.data, crc32_of(as_bytes(header))),
                         header.size() + array.data.size(), at};
    const std::string before = write_zip_local_header(entry) + header;
    append(before.size(), Literal{before});
    append(array.data.size(), copy_of(array));
    entries.push_back(entry);
  }
  const std::string directory = write_zip_directory(entries, at);
  append(directory.size(), Literal{directory});
  reserve_space(output.descriptor(), at, path);
  transfer(pieces, 0, {});
  output.commit();
}

}  // namespace masque
