// Quantised weights as floats, decoded piece by piece from what is stored of them.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "store/tensor_info.hpp"

namespace masque::store {

/// What a piece of a weight is decoded from; what the members mean is its reader's.
struct StoredPiece {
  std::vector<std::byte> codes;      ///< as they are stored
  std::vector<std::uint32_t> words;  ///< as they are stored, where several codes share one
  std::vector<float> scales;         ///< checked: each is a finite number
  std::vector<float> zeros;          ///< zero points; empty: none
  std::vector<std::uint32_t>
      groups;  ///< of columns: in which group of scales each is; may be empty

  /// Bytes in memory.
  std::uint64_t bytes() const;
};

/// The pieces that were read last: at most 256 MiB, and what is in use. Thread-safe.
class PieceCache {
 public:
  /// Piece `piece` of `owner`, which stands for a weight until forget(owner): the one that is kept,
  /// or what `load` returns. Throws what `load` throws.
  std::shared_ptr<const StoredPiece> get(const void* owner, std::uint64_t piece,
                                         const std::function<StoredPiece()>& load);
  /// Drops the pieces of `owner`.
  void forget(const void* owner);

 private:
  struct Entry {
    const void* owner = nullptr;
    std::uint64_t piece = 0;
    std::shared_ptr<const StoredPiece> parts;
  };

  std::mutex mutex_;
  std::list<Entry> entries_;  ///< the one that was used last first
  std::uint64_t bytes_ = 0;
};

/// Reads a weight as F32. Its elements follow each other in pieces of the same size, of which the
/// last may be shorter; a piece is read as a whole. Thread-safe.
class PieceReader : public TensorReader {
 public:
  ~PieceReader() override;

  void read(const InputFile& file, std::uint64_t offset, MutableBytes out) const final;

 protected:
  /// Of a weight of `elements` elements in pieces of `piece_elements`, at least one, which are kept
  /// in `cache`.
  PieceReader(std::uint64_t elements, std::uint64_t piece_elements,
              std::shared_ptr<PieceCache> cache);

  /// Reads what piece `piece` is decoded from. Throws InputError.
  virtual StoredPiece load(std::uint64_t piece) const = 0;
  /// Decodes the elements of piece `piece` from its element `first` on to `out`, from the `stored`
  /// that load() returned.
  virtual void decode(const StoredPiece& stored, std::uint64_t piece, std::uint64_t first,
                      std::span<float> out) const = 0;

 private:
  std::uint64_t elements_;
  std::uint64_t piece_elements_;
  std::shared_ptr<PieceCache> cache_;
};

/// Elements of a piece where the reader may choose.
inline constexpr std::uint64_t kPieceElements = std::uint64_t{1} << 20;

}  // namespace masque::store
