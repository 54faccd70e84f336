// A matrix of results as a file: .npy, or a tensor of a .safetensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "kernel/precision.hpp"

namespace masque::commands {

/// Collects rows and writes them at the end. Memory: all rows.
class VectorFile {
 public:
  /// Throws UsageError, by the option -o, for a name that ends in neither .npy nor .safetensors.
  static void check_name(const std::string& path);

  /// `tensor` names it in a .safetensors. Numbers are F64 of an f64 model, else F32.
  VectorFile(std::string path, std::string tensor, Index columns, kernel::Precision precision);

  void add(std::span<const double> row);
  /// Writes the file. Throws InputError if it cannot be written.
  void finish() const;

 private:
  std::string path_, tensor_;
  Index columns_;
  bool wide_;
  std::vector<std::byte> bytes_;
  std::uint64_t rows_ = 0;
};

}  // namespace masque::commands
