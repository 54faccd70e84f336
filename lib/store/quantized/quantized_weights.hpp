// What a scheme of quantised weights makes of the tensors of a checkpoint.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.hpp"
#include "base/json/json_settings.hpp"
#include "store/checkpoint.hpp"
#include "store/piece_reader.hpp"

namespace masque::store {

/// A stored tensor of a weight. Its file must outlive it.
struct StoredPart {
  const InputFile* file = nullptr;  ///< the one that it is in
  TensorInfo info;                  ///< as it is stored

  /// Fills `out` with its bytes from byte `offset` on. Throws InputError.
  void read(std::uint64_t offset, MutableBytes out) const { read_tensor(*file, info, offset, out); }
  /// Elements from element `first` on as floats, to `out`. Throws InputError.
  void read_floats(std::uint64_t first, std::span<float> out) const;
  /// Elements from element `first` on, 32-bit integers, to `out`. Throws InputError.
  void read_words(std::uint64_t first, std::span<std::uint32_t> out) const;
  /// Elements from element `first` on as read_floats, which are scales, to `out`: an exponent where
  /// they are bytes (E8M0). Throws InputError for one that is not finite, and unless
  /// `zero_is_legal` for 0.
  void read_scales(std::uint64_t first, std::span<float> out, bool zero_is_legal) const;
  /// An InputError "FILE: NAME: WHAT" about it, with the text `what`.
  [[nodiscard]] InputError error(std::string_view what) const;
};

/// The tensors of a checkpoint: weights that are decoded take the place of what is stored of them.
class QuantizedWeights {
 public:
  /// Of `checkpoint`, whose files must outlive all readers.
  explicit QuantizedWeights(const Checkpoint& checkpoint);

  const Checkpoint& checkpoint() const { return *checkpoint_; }        ///< as it is stored
  const std::shared_ptr<PieceCache>& cache() const { return cache_; }  ///< of all readers
  /// The tensors whose names end with `ending`, each with the rest of its name, in the order of the
  /// checkpoint.
  std::vector<std::pair<std::string, const TensorInfo*>> ending_with(std::string_view ending) const;
  /// Takes the tensor `name`, if it is there, as a part of a weight.
  std::optional<StoredPart> take(const std::string& name);
  /// Takes the tensor `name`, which the weight `weight` needs. Throws InputError if it is not
  /// there.
  StoredPart need(const std::string& name, const std::string& weight);
  /// Throws InputError unless `part` has one of the `types`.
  static void check_type(const StoredPart& part, std::initializer_list<DType> types);
  /// Throws InputError unless `part` has the `shape`.
  static void check_shape(const StoredPart& part, const Shape& shape);
  /// Adds the weight `name` of `shape`, F32, that `reader` reads, in the place of `first`, a part
  /// of it. Throws InputError if there is a tensor of this name, which is no part, or the shape is
  /// too large.
  void add(const std::string& name, const Shape& shape, std::shared_ptr<const TensorReader> reader,
           const StoredPart& first);
  /// Number of weights added.
  std::size_t count() const { return added_.size(); }
  /// The tensors: those that were not taken, and those added. Throws InputError for one whose
  /// values are a part of something all the same: of at most 8 bits, or called as a scale.
  std::vector<TensorInfo> finish() const;

 private:
  struct Added {
    std::string before;  ///< the part in whose place it is
    TensorInfo tensor;
  };

  const Checkpoint* checkpoint_;
  std::shared_ptr<PieceCache> cache_ = std::make_shared<PieceCache>();
  std::unordered_set<std::string> taken_;
  std::vector<Added> added_;
};

/// A scheme: what its quantization_config and its tensors mean.
struct QuantizationScheme {
  std::string_view method;  ///< quant_method
  /// Adds the weights of the scheme, whose `settings` it reads: every key is used, known to change
  /// nothing, or left for who reports unknown ones. Returns what is said of computing: empty, or
  /// one clause. Throws InputError.
  std::string (*decode)(JsonSettings& settings, QuantizedWeights& weights);
};

// One function for each scheme, as QuantizationScheme::decode.

/// F8 with a scale for each block or for the whole: transformers' FP8 (DeepSeek-V3, 2024,
/// arXiv:2412.19437). Reads `settings`, adds to `weights`.
std::string decode_fp8(JsonSettings& settings, QuantizedWeights& weights);
/// F8 with a scale for each row: FBGEMM. Reads `settings`, adds to `weights`.
std::string decode_fbgemm_fp8(JsonSettings& settings, QuantizedWeights& weights);
/// E2M1 with an exponent for 32: gpt-oss (OCP Microscaling Formats, 2023, arXiv:2310.10537). Reads
/// `settings`, adds to `weights`.
std::string decode_mxfp4(JsonSettings& settings, QuantizedWeights& weights);
/// bitsandbytes: LLM.int8 (Dettmers et al. 2022, arXiv:2208.07339), NF4 and FP4 (Dettmers et al.
/// 2023, arXiv:2305.14314). Reads `settings`, adds to `weights`.
std::string decode_bitsandbytes(JsonSettings& settings, QuantizedWeights& weights);
/// GPTQ's files (Frantar et al. 2022, arXiv:2210.17323). Reads `settings`, adds to `weights`.
std::string decode_gptq(JsonSettings& settings, QuantizedWeights& weights);
/// AWQ's files (Lin et al. 2023, arXiv:2306.00978), version gemm. Reads `settings`, adds to
/// `weights`.
std::string decode_awq(JsonSettings& settings, QuantizedWeights& weights);
/// compressed-tensors: floats, integers and packed integers. Reads `settings`, adds to `weights`.
std::string decode_compressed(JsonSettings& settings, QuantizedWeights& weights);

// Codes that are elements: F8 and I8 in rows, with a grid of scales.

/// How scales lie over a matrix.
struct ScaleGrid {
  std::uint64_t block_rows = 1;     ///< rows of a block
  std::uint64_t block_columns = 1;  ///< columns of a block
  std::uint64_t rows = 1;           ///< of blocks
  std::uint64_t columns = 1;        ///< of blocks
};

/// What decodes `codes` [rows, columns] of 8 bits: (code − zero) · scale · `factor`, with the
/// `scales` and, if there are any, `zeros` of `grid`. `zero_is_legal` of a scale. Pieces are kept
/// in `cache`.
std::shared_ptr<const TensorReader> grid_reader(StoredPart codes, StoredPart scales,
                                                std::optional<StoredPart> zeros,
                                                const ScaleGrid& grid, float factor,
                                                bool zero_is_legal,
                                                const std::shared_ptr<PieceCache>& cache);

/// Throws InputError unless `part` is a matrix with elements.
void check_matrix(const StoredPart& part);

}  // namespace masque::store
