// Tensors of GGUF files as transformers has them: blocks decoded, rows in another order, experts
// turned and joined.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/file/file.hpp"
#include "store/piece_reader.hpp"
#include "store/tensor_info.hpp"
#include "tensor/quantized_block.hpp"

namespace masque::store {

/// Numbers that follow each other in a file, as they are or in blocks.
struct GgufNumbers {
  std::uint64_t begin = 0;              ///< first byte in the file
  DType dtype = DType::kF32;            ///< without `blocks`
  const BlockFormat* blocks = nullptr;  ///< of quantised ones

  /// Bytes of `elements` numbers, whole blocks.
  std::uint64_t bytes(std::uint64_t elements) const;
  /// `out` ← the numbers from number `first` on of those whose bytes from `begin` on `read` reads,
  /// given an offset from there. Throws what `read` throws.
  void decode(const std::function<void(std::uint64_t offset, MutableBytes bytes)>& read,
              std::uint64_t first, std::span<float> out) const;
};

/// What of a tensor differs from its numbers in the file.
struct GgufLayout {
  std::uint64_t elements = 0;   ///< of all
  std::uint64_t columns = 0;    ///< elements of a row
  std::uint64_t head_rows = 0;  ///< rows of a head whose pairs are neighbours; 0: none
  float less = 0;               ///< what is subtracted
};

/// What reads `numbers` as F32, decoded, as `layout` says: with the rows of heads as halves.
std::shared_ptr<const TensorReader> decoded_reader(const GgufNumbers& numbers,
                                                   const GgufLayout& layout);

/// Experts [experts, rows, columns] of a file.
struct GgufExperts {
  const InputFile* file = nullptr;  ///< must outlive the readers
  GgufNumbers numbers;              ///< expert by expert
};

/// What reads experts [experts, columns, rows · parts] as F32: those of `parts`, each [experts,
/// rows, columns], turned, and their outputs in turn. Pieces are kept in `cache`.
std::shared_ptr<const TensorReader> turned_reader(std::vector<GgufExperts> parts,
                                                  std::uint64_t experts, std::uint64_t rows,
                                                  std::uint64_t columns,
                                                  std::shared_ptr<PieceCache> cache);

}  // namespace masque::store
