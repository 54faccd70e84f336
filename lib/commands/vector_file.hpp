// A matrix of results as a file: .npy, or a tensor of a .safetensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "kernel/number/precision.hpp"

namespace masque::commands {

/// Collects rows and writes them at the end. Memory: all rows.
class VectorFile {
 public:
  /// Throws UsageError, by the option -o, if `path` ends in neither .npy nor .safetensors.
  static void check_name(const std::string& path);

  /// For a matrix of `columns` columns, row-major, at `path`; `tensor` names it in a .safetensors.
  /// Numbers are F64 with kF64 as `precision`, else F32.
  VectorFile(std::string path, std::string tensor, Index columns, kernel::Precision precision);

  /// Appends `row`, which has as many numbers as there are columns.
  void add(std::span<const double> row);
  /// Writes the file, replacing an old one as a whole or not at all. Throws InputError if it cannot
  /// be written.
  void finish() const;

 private:
  std::string path_, tensor_;
  Index columns_;
  bool wide_;
  std::vector<std::byte> bytes_;
  std::uint64_t rows_ = 0;
};

}  // namespace masque::commands
