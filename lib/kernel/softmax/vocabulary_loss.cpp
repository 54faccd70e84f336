#include "kernel/softmax/vocabulary_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/activation.hpp"
#include "kernel/activation_rows.hpp"
#include "kernel/norm_rows.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/panel_product.hpp"
#include "kernel/softmax/log_sum.hpp"
#include "kernel/softmax/vocabulary_loss_reference.hpp"
#include "kernel/softmax/vocabulary_rows.hpp"

namespace masque::kernel {
namespace {

/// Logits of a chunk of rows.
constexpr Index kChunkLogits = Index{1} << 23U;
/// Words whose logits are worked on while they are in a cache.
constexpr Index kTile = 96;
/// Far below any logit, and finite: a difference of two is a number.
constexpr float kExcluded = -1e30F;
/// Words whose gradients are multiplied with their weights at a time.
constexpr Index kWords = 512;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// The passes over one chunk of rows. Logits lie with the vocabulary as rows: then the product that
/// makes them reads the weights as they are, and so does the one that makes the weights' gradient
/// read the gradient of the logits. Sums over the vocabulary run in tiles of kTile words: inside a
/// tile in float, over tiles in double.
class VocabularyChunk {
 public:
  VocabularyLoss<float> run(const VocabularyTask<float>& whole, Index first, Index count,
                            Precision precision, const VocabularyGradients<float>& gradients,
                            std::span<double> losses, std::span<TokenId> draws,
                            std::span<double> draw_losses) {
    task_ = whole;
    task_.x = whole.x.middle_rows(first, count);
    task_.targets = whole.targets.subspan(at(first), at(count));
    task_.row_weights = whole.row_weights.subspan(at(first), at(count));
    kind_ = panel::kind_of(precision);
    const bool backward =
        gradients.x.data != nullptr || gradients.weight.data != nullptr || !gradients.bias.empty();
    const bool keep = backward || !draws.empty();
    resize(keep);
    logit_pass(keep);
    if (!draws.empty())
      draw(whole.uniforms.subspan(at(first), at(count)), draws.subspan(at(first), at(count)),
           draw_losses.empty() ? draw_losses : draw_losses.subspan(at(first), at(count)));
    const VocabularyLoss<float> result =
        combine(losses.empty() ? losses : losses.subspan(at(first), at(count)));
    if (!backward) return result;
    weight_pass(gradients);
    if (gradients.x.data != nullptr) x_pass(gradients.x.middle_rows(first, count));
    return result;
  }

 private:
  Index rows() const { return task_.x.rows; }
  Index words() const { return task_.weight.rows; }
  Index tiles() const { return divide_up(words(), kTile); }
  Index tile_words(Index tile) const { return std::min(kTile, words() - tile * kTile); }

  void resize(bool keep) {
    if (keep) logits_.resize(words(), rows());
    if (keep && task_.cap > 0) slopes_.resize(words(), rows());
    largest_.resize(tiles(), rows());
    sums_.resize(tiles(), rows());
    places_.resize(tiles(), rows());
    target_logits_.assign(at(rows()), 0.0F);
    most_.resize(at(rows()));
    share_.resize(at(rows()));
    total_.resize(at(rows()));
  }

  template <class Work>
  void for_tiles(const Work& work) const {
    const double one = 2.0 * kTile * static_cast<double>(rows() * (task_.x.columns + 1));
    parallel_ranges(tiles(), static_cast<Index>(1e6 / one) + 1, [&](Index begin, Index end) {
      for (Index tile = begin; tile < end; ++tile) work(tile);
    });
  }

  /// exp(logit − largest of its tile) of all words, or of none to keep; statistics of each tile.
  void logit_pass(bool keep) {
    panel::list_rows(std::span(&task_.x, 1), pointers_);
    right_.pack_transposed(kind_, pointers_, task_.x.columns);
    for_tiles([&](Index tile) {
      thread_local Matrix<float> some;
      MatrixView<float> logits;
      if (keep) {
        logits = logits_.view().middle_rows(tile * kTile, tile_words(tile));
      } else {
        some.resize(tile_words(tile), rows());
        logits = some.view();
      }
      panel::multiply_right(task_.weight.middle_rows(tile * kTile, logits.rows), right_,
                            Onto::kNothing, {}, logits);
      if (task_.cap > 0) cap_logits(tile, keep, logits);
      tile_statistics(tile, logits);
    });
  }

  /// With biases, which the cap acts on, too; keeps the slopes for the gradients.
  void cap_logits(Index tile, bool keep, MatrixView<float> logits) {
    for (Index i = 0; i < logits.rows && !task_.bias.empty(); ++i) {
      for (float& logit : logits.row_span(i)) logit += task_.bias[at(tile * kTile + i)];
    }
    soft_cap(task_.cap, logits);
    if (!keep) return;
    const MatrixView<float> slopes = slopes_.view().middle_rows(tile * kTile, logits.rows);
    for (Index i = 0; i < slopes.rows; ++i) std::ranges::fill(slopes.row_span(i), 1.0F);
    soft_cap_backward<float>(task_.cap, logits, slopes);
  }

  void tile_statistics(Index tile, MatrixView<float> logits) {
    float* largest = largest_.view().row(tile);
    float* sum = sums_.view().row(tile);
    std::int32_t* place = places_.view().row(tile);
    std::fill_n(largest, rows(), -std::numeric_limits<float>::infinity());
    std::fill_n(sum, rows(), 0.0F);
    std::fill_n(place, rows(), 0);
    for (Index i = 0; i < logits.rows; ++i) {
      const Index word = tile * kTile + i;
      const bool biased = !task_.bias.empty() && task_.cap == 0;
      const float bias = biased ? task_.bias[at(word)] : 0.0F;
      if (word == task_.excluded) std::ranges::fill(logits.row_span(i), kExcluded);
      track_largest(static_cast<std::int32_t>(word), bias, rows(), logits.row(i), largest, place);
    }
    for (Index r = 0; r < rows(); ++r) {
      const Index i = task_.targets[at(r)] - tile * kTile;
      if (i >= 0 && i < logits.rows) target_logits_[at(r)] = logits.at(i, r);
    }
    for (Index i = 0; i < logits.rows; ++i) exp_below(largest, rows(), logits.row(i), sum);
  }

  /// By inversion: the tile at which the sum over tiles exceeds what is wanted, then the word.
  void draw(std::span<const double> uniforms, std::span<TokenId> draws,
            std::span<double> draw_losses) {
    parallel_ranges(rows(), 64, [&](Index begin, Index end) {
      std::vector<double> masses(at(tiles()));
      for (Index r = begin; r < end; ++r) {
        float most = largest_.view().at(0, r);
        for (Index tile = 1; tile < tiles(); ++tile)
          most = std::max(most, largest_.view().at(tile, r));
        double total = 0;
        for (Index tile = 0; tile < tiles(); ++tile) {
          const double below = static_cast<double>(largest_.view().at(tile, r) - most);
          masses[at(tile)] = static_cast<double>(sums_.view().at(tile, r)) * std::exp(below);
          total += masses[at(tile)];
        }
        double left = uniforms[at(r)] * total;
        Index tile = 0;
        for (; tile + 1 < tiles() && !(left < masses[at(tile)]); ++tile) left -= masses[at(tile)];
        // In the tile by another sum: that of sums_ is rounded to float.
        const MatrixView<const float> in_tile =
            std::as_const(logits_).view().middle_rows(tile * kTile, tile_words(tile));
        double own = 0;
        for (Index i = 0; i < in_tile.rows; ++i) own += static_cast<double>(in_tile.at(i, r));
        left *= own / masses[at(tile)];
        Index i = 0;
        for (; i + 1 < in_tile.rows; ++i) {
          left -= static_cast<double>(in_tile.at(i, r));
          if (left < 0) break;
        }
        draws[at(r)] = static_cast<TokenId>(tile * kTile + i);
        if (draw_losses.empty()) continue;
        // Not 0, even where rounding has led beyond the last word with any probability.
        const double part = std::max(static_cast<double>(in_tile.at(i, r)),
                                     static_cast<double>(std::numeric_limits<float>::min()));
        draw_losses[at(r)] = static_cast<double>(most - largest_.view().at(tile, r)) +
                             std::log(total) - std::log(part);
      }
    });
  }

  /// Losses of the rows from the statistics of all tiles, which become factors: the gradient of a
  /// logit is its kept exponential times the factor of its tile and row.
  VocabularyLoss<float> combine(std::span<double> losses) {
    std::copy_n(largest_.data(), rows(), most_.begin());
    std::vector<std::int32_t>& best = best_;
    best.assign(places_.data(), places_.data() + rows());
    for (Index tile = 1; tile < tiles(); ++tile) {
      for (Index r = 0; r < rows(); ++r) {
        if (!(largest_.view().at(tile, r) > most_[at(r)])) continue;
        most_[at(r)] = largest_.view().at(tile, r);
        best[at(r)] = places_.view().at(tile, r);
      }
    }
    std::fill(total_.begin(), total_.end(), 0.0);
    for (Index tile = 0; tile < tiles(); ++tile) {
      add_rescaled(sums_.view().row(tile), largest_.view().row(tile), most_.data(), rows(),
                   total_.data());
    }
    VocabularyLoss<float> result;
    for (std::size_t r = 0; r < total_.size(); ++r) {
      const LogSum all{static_cast<double>(most_[r]), std::log(total_[r])};
      const double loss = -(static_cast<double>(target_logits_[r]) - all);
      result.sum += task_.row_weights[r] * loss;
      if (!losses.empty()) losses[r] = loss;
      if (best[r] == task_.targets[r]) ++result.correct;
      share_[r] = static_cast<float>(task_.row_weights[r] / total_[r]);
    }
    for (Index tile = 0; tile < tiles(); ++tile) {
      rescale_factors(largest_.view().row(tile), most_.data(), share_.data(), rows(),
                      sums_.view().row(tile));
    }
    return result;
  }

  /// Gradients of the logits, and from them those of the bias and of the weights.
  void weight_pass(const VocabularyGradients<float>& gradients) {
    if (gradients.weight.data != nullptr) {
      panel::list_rows(std::span(&task_.x, 1), pointers_);
      right_.pack(kind_, pointers_, task_.x.columns);
    }
    for_tiles([&](Index tile) {
      const Index first = tile * kTile;
      const auto d_logits = logits_.view().middle_rows(first, tile_words(tile));
      for (Index i = 0; i < d_logits.rows; ++i) {
        scale_columns(sums_.view().row(tile), rows(), d_logits.row(i));
      }
      for (Index r = 0; r < rows(); ++r) {
        const Index i = task_.targets[at(r)] - first;
        if (i < 0 || i >= d_logits.rows) continue;
        d_logits.at(i, r) -= static_cast<float>(task_.row_weights[at(r)]);
      }
      for (Index i = 0; i < d_logits.rows && task_.cap > 0; ++i)
        multiply_row(slopes_.view().row(first + i), d_logits.row(i), rows());
      for (Index i = 0; !gradients.bias.empty() && i < d_logits.rows; ++i) {
        gradients.bias[at(first + i)] += sum_of_row(d_logits.row(i), rows());
      }
      if (gradients.weight.data == nullptr) return;
      panel::multiply_right(d_logits, right_, Onto::kSum, {},
                            gradients.weight.middle_rows(first, d_logits.rows));
    });
  }

  /// d_x += the transpose of the logits' gradients times the weights.
  void x_pass(MatrixView<float> d_x) {
    for (Index first = 0; first < words(); first += kWords) {
      const Index count = std::min(kWords, words() - first);
      const MatrixView<const float> some = task_.weight.middle_rows(first, count);
      panel::list_rows(std::span(&some, 1), pointers_);
      right_.pack(kind_, pointers_, some.columns);
      panel::multiply_transposed(logits_.view().middle_rows(first, count), right_, d_x, {});
    }
  }

  VocabularyTask<float> task_;
  panel::Kind kind_ = panel::Kind::kFloat;
  panel::Right right_;
  std::vector<const float*> pointers_;
  Matrix<float> logits_;         // (words, rows): exponentials, then gradients
  Matrix<float> slopes_;         // (words, rows): of capped logits by the others
  Matrix<float> largest_;        // (tiles, rows)
  Matrix<float> sums_;           // (tiles, rows): of exponentials, then factors
  Matrix<std::int32_t> places_;  // (tiles, rows): word of the largest
  std::vector<float> target_logits_, most_, share_;
  std::vector<double> total_;
  std::vector<std::int32_t> best_;
};

VocabularyLoss<float> all_chunks(const VocabularyTask<float>& task, Precision precision,
                                 const VocabularyGradients<float>& gradients,
                                 std::span<double> losses, std::span<TokenId> draws,
                                 std::span<double> draw_losses) {
  thread_local VocabularyChunk chunk;
  const Index rows = task.x.rows;
  const Index most =
      std::max<Index>(kChunkLogits / task.weight.rows / panel::kColumns, 1) * panel::kColumns;
  const Index chunks = divide_up(rows, most);
  VocabularyLoss<float> result;
  if (chunks == 0) return result;
  const Index height = round_up(divide_up(rows, chunks), kStripColumns<float>);
  for (Index first = 0; first < rows; first += height) {
    const VocabularyLoss<float> part = chunk.run(task, first, std::min(height, rows - first),
                                                 precision, gradients, losses, draws, draw_losses);
    result.sum += part.sum;
    result.correct += part.correct;
  }
  return result;
}

}  // namespace

template <class T>
VocabularyLoss<T> vocabulary_loss(const VocabularyTask<T>& task, Precision precision,
                                  const VocabularyGradients<T>& gradients, std::span<double> losses,
                                  std::span<TokenId> draws, std::span<double> draw_losses) {
  const Index rows = task.x.rows, vocabulary = task.weight.rows, hidden = task.x.columns;
  MASQUE_CHECK(vocabulary > 0 && hidden > 0 && task.weight.columns == hidden);
  MASQUE_CHECK(task.bias.empty() || static_cast<Index>(task.bias.size()) == vocabulary);
  MASQUE_CHECK(static_cast<Index>(task.targets.size()) == rows);
  MASQUE_CHECK(static_cast<Index>(task.row_weights.size()) == rows);
  MASQUE_CHECK(losses.empty() || static_cast<Index>(losses.size()) == rows);
  MASQUE_CHECK(task.uniforms.size() == draws.size());
  MASQUE_CHECK(draws.empty() || static_cast<Index>(draws.size()) == rows);
  MASQUE_CHECK(draw_losses.empty() || draw_losses.size() == draws.size());
  const auto fits = [](const MatrixView<T>& d, Index r, Index c) {
    return d.data == nullptr || (d.rows == r && d.columns == c);
  };
  MASQUE_CHECK(fits(gradients.x, rows, hidden) && fits(gradients.weight, vocabulary, hidden));
  MASQUE_CHECK(gradients.bias.empty() || static_cast<Index>(gradients.bias.size()) == vocabulary);
  for (const TokenId target : task.targets) MASQUE_CHECK(target >= 0 && target < vocabulary);
  if constexpr (std::is_same_v<T, float>) {
    return all_chunks(task, precision, gradients, losses, draws, draw_losses);
  } else {
    MASQUE_CHECK(precision == Precision::kF64);
    return reference::vocabulary_loss(task, gradients, losses, draws, draw_losses);
  }
}

#define MASQUE_INSTANTIATE(T)                                                                     \
  template VocabularyLoss<T> vocabulary_loss<T>(const VocabularyTask<T>&, Precision,              \
                                                const VocabularyGradients<T>&, std::span<double>, \
                                                std::span<TokenId>, std::span<double>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
