// The designs of the zoo by definition: every step a matrix, every product a loop.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/detector.hpp"
#include "model/random_model.hpp"
#include "model/variants.hpp"
#include "nn/attention/materialized_attention.hpp"

namespace masque::model::test {

namespace {

using M = Matrix<double>;
using View = MatrixView<const double>;

M dense(View x, const DenseWeights<double>& weights) {
  M y(x.rows, weights.weight.view.rows);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index o = 0; o < y.columns(); ++o) {
      double sum = weights.bias ? weights.bias.view.at(0, o) : 0;
      for (Index c = 0; c < x.columns; ++c) sum += x.at(i, c) * weights.weight.view.at(o, c);
      y.view().at(i, o) = sum;
    }
  }
  return y;
}

M normed(View x, const NormDesign& design, const NormWeights<double>& weights) {
  M y = M::copy(x);
  const auto n = static_cast<double>(x.columns);
  for (Index i = 0; i < x.rows; ++i) {
    const auto row = y.view().row_span(i);
    double mean = 0;
    if (design.kind == kernel::Norm::kLayer)
      mean = std::accumulate(row.begin(), row.end(), 0.0) / n;
    double squares = 0;
    for (double& v : row) {
      v -= mean;
      squares += v * v;
    }
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] /= std::sqrt(squares / n + design.epsilon);
      if (weights.weight) row[c] *= weights.weight.span()[c] + design.weight_offset;
      if (weights.bias) row[c] += weights.bias.span()[c];
    }
  }
  return y;
}

/// Queries or keys in heads of `size` after their norms.
M head_normed(const Design& design, const M& x, const NormWeights<double>& weights) {
  if (design.query_key_norm == QueryKeyNorm::kNone) return M::copy(x.view());
  if (design.query_key_norm == QueryKeyNorm::kWidth) return normed(x.view(), design.norm, weights);
  M y(x.rows(), x.columns());
  const Index size = design.head_size;
  const bool each = design.query_key_norm == QueryKeyNorm::kEachHead;
  for (Index first = 0; first < x.columns(); first += size) {
    NormWeights<double> own = weights;
    for (Weight<double>* part : {&own.weight, &own.bias})
      if (*part) part->view = part->view.middle_columns(each ? first : 0, size);
    const M head = normed(x.view().middle_columns(first, size), design.norm, own);
    for (Index i = 0; i < x.rows(); ++i)
      std::copy_n(head.view().row(i), size, y.view().row(i) + first);
  }
  return y;
}

M clipped(double most, M x) {
  for (double& value : x.span())
    if (most > 0) value = std::clamp(value, -most, most);
  return x;
}

M active(kernel::Activation f, M x) {
  kernel::activation_forward<double>(f, x.view());
  return x;
}

M columns(View x, Index first, Index count) { return M::copy(x.middle_columns(first, count)); }

M times(View a, View b) {
  M y = M::copy(a);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index c = 0; c < a.columns; ++c) y.view().at(i, c) *= b.at(i, c);
  }
  return y;
}

/// α x + f.
M added(View x, View f, double alpha) {
  M y = M::copy(x);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index c = 0; c < x.columns; ++c) y.view().at(i, c) = alpha * x.at(i, c) + f.at(i, c);
  }
  return y;
}

class Plain {
 public:
  Plain(const Design& design, const ModelWeights<double>& weights, const mask::BlockMap* mask,
        Index length)
      : design_(design),
        weights_(weights),
        mask_(mask),
        scheme_(design.variants.position.scheme()),
        has_position_(layers_with_position(design)),
        normalizers_(layer_normalizers(design)),
        positions_(static_cast<std::size_t>(length)) {
    std::iota(positions_.begin(), positions_.end(), Index{0});
  }

  M embed(const std::vector<TokenId>& ids) const {
    M x(std::ssize(ids), design_.embedding_size);
    for (Index i = 0; i < x.rows(); ++i) {
      for (Index c = 0; c < x.columns(); ++c) {
        double value = design_.embedding_scale *
                       weights_.word_table.view.at(ids[static_cast<std::size_t>(i)], c);
        if (weights_.segment_table) value += weights_.segment_table.view.at(0, c);
        if (weights_.position_table) value += weights_.position_table.view.at(i, c);
        x.view().at(i, c) = value;
      }
    }
    if (scheme_ && scheme_->facts().input) terms({})->input(x.view());
    if (design_.embedding_norm) {
      x = normed(x.view(), *design_.embedding_norm, weights_.embedding_norm);
    }
    if (weights_.embedding_projection.weight) x = dense(x.view(), weights_.embedding_projection);
    return x;
  }

  /// The logits of the detector as probabilities, of what enters the layers.
  std::vector<double> detections(View x) const {
    const Design own = detector_design(design_);
    const ModelWeights<double>& weights = weights_.detector.at(0);
    Plain plain(own, weights, nullptr, x.rows);
    M h = M::copy(x);
    if (weights.embedding_projection.weight) h = dense(x, weights.embedding_projection);
    for (const LayerWeights<double>& layer : weights.layers)
      h = plain.layer(layer, h.view(), h.view());
    if (own.final_norm) h = normed(h.view(), own.norm, weights.final_norm);
    const M logits = dense(h.view(), weights.decoder);
    std::vector<double> out;
    for (const double z : logits.span()) out.push_back(1 / (1 + std::exp(-z)));
    return out;
  }

  /// The next layer. m: what keys and values are made of.
  M layer(const LayerWeights<double>& own, View x, View m) {
    const M y = next_layer(own, x, m);
    ++layer_;
    return M::copy(y.view());
  }

 private:
  M next_layer(const LayerWeights<double>& own, View x, View m) {
    const NormPlacement placement = design_.norm_placement;
    const bool post = placement == NormPlacement::kPost || placement == NormPlacement::kAdmin;
    const bool rezero = placement == NormPlacement::kReZero;
    const double alpha = design_.variants.residual_scale;
    const double first_alpha = layer_ == 0 && !design_.variants.input_residual ? 0 : alpha;
    const bool output = placement == NormPlacement::kOutput;
    const auto input_of = [&](View states) {
      return post || rezero || output ? M::copy(states)
                                      : normed(states, design_.norm, own.attention_norm);
    };
    const M input = input_of(x);
    const M source = input_of(m);
    if (design_.layer_kind == LayerKind::kGatedAttention) {
      const M y = added(x, gated(own, input.view(), source.view()).view(), first_alpha);
      return post ? normed(y.view(), design_.norm, own.attention_norm) : M::copy(y.view());
    }
    M first = dense(mixed(own, input.view(), source.view()).view(), own.output);
    if (placement == NormPlacement::kSandwich || placement == NormPlacement::kNormFormer || output)
      first = normed(first.view(), design_.norm, own.attention_output_norm);
    if (rezero) scale(first, own.attention_scale);
    for (double& value : first.span()) value *= design_.residual_multiplier;
    M states = M::copy(x);
    scale(states, own.attention_residual);
    M y = added(states.view(), first.view(), first_alpha);
    if (post) {
      y = normed(y.view(), design_.norm, own.attention_norm);
      const M branch = feed_forward(own, y.view());
      scale(y, own.feed_forward_residual);
      y = added(y.view(), branch.view(), alpha);
      return normed(y.view(), design_.norm, own.feed_forward_norm);
    }
    if (rezero) {
      M branch = feed_forward(own, y.view());
      scale(branch, own.feed_forward_scale);
      for (double& value : branch.span()) value *= design_.residual_multiplier;
      return added(y.view(), branch.view(), 1);
    }
    const bool parallel = placement == NormPlacement::kParallel;
    const bool shared = placement == NormPlacement::kParallelShared;
    const M second = shared ? M::copy(input.view())
                     : output
                         ? M::copy(y.view())
                         : normed(parallel ? x : y.view(), design_.norm, own.feed_forward_norm);
    M last = feed_forward(own, second.view());
    if (placement == NormPlacement::kSandwich || output)
      last = normed(last.view(), design_.norm, own.feed_forward_output_norm);
    for (double& value : last.span()) value *= design_.residual_multiplier;
    return added(y.view(), last.view(), 1);
  }

  std::unique_ptr<nn::PositionTerms<double>> terms(const std::vector<Weight<double>>& own) const {
    parameters_.clear();
    for (const Weight<double>& part : shares_position(design_) ? weights_.position : own) {
      parameters_.push_back(part.view);
    }
    nn::PositionProblem<double> problem;
    problem.shape = position_shape(design_);
    problem.positions = {positions_, positions_};
    problem.parameters = parameters_;
    return scheme_->terms(problem);
  }

  /// Columns of x times the elements of a row, each for as many columns; no row: 1.
  static void scale(M& x, const Weight<double>& row) {
    if (!row) return;
    const Index size = x.columns() / row.view.columns;
    for (Index i = 0; i < x.rows(); ++i) {
      for (Index c = 0; c < x.columns(); ++c) x.view().at(i, c) *= row.view.at(0, c / size);
    }
  }

  M feed_forward(const LayerWeights<double>& own, View x) const {
    M inner = dense(x, own.up);
    if (design_.gated) {
      const M gate = active(design_.activation, dense(x, own.gate));
      inner = times(gate.view(), inner.view());
    } else {
      inner = active(design_.activation, std::move(inner));
    }
    if (design_.norm_placement == NormPlacement::kNormFormer)
      inner = normed(inner.view(), design_.norm, own.feed_forward_inner_norm);
    return dense(inner.view(), own.down);
  }

  M mixed(const LayerWeights<double>& own, View x, View m) {
    if (const nn::Mixer* mixer = design_.variants.mixer) {
      std::vector<View> views;
      for (const Weight<double>& part : own.mixer) views.push_back(part.view);
      M y(x.rows, x.columns);
      mixer->forward(nn::MixerProblem<double>{mixer_shape(design_), m, views, mask_}, y.view());
      return y;
    }
    const double most = design_.clip_qkv;
    const auto bounded = [&](M projected, const NormWeights<double>& norm) {
      if (design_.clip_after_norms)
        return clipped(most, head_normed(design_, std::move(projected), norm));
      return head_normed(design_, clipped(most, std::move(projected)), norm);
    };
    M y = attention(own, bounded(dense(x, own.query), own.query_norm),
                    bounded(dense(m, own.key), own.key_norm),
                    clipped(most, dense(m, own.value)).view(), design_.num_attention_heads,
                    design_.num_key_value_heads);
    scale(y, own.head_scale);
    return y;
  }

  M gated(const LayerWeights<double>& own, View x, View m) {
    const Index e = design_.intermediate_size;
    const Index s = design_.attention_key_size;
    const M wide = active(design_.activation, dense(x, own.gated_input));
    const M source = active(design_.activation, dense(m, own.gated_input));
    const auto scaled = [&](Index which) {
      M z = columns((which == 0 ? wide : source).view(), 2 * e, s);
      for (Index i = 0; i < z.rows(); ++i) {
        for (Index c = 0; c < s; ++c) {
          z.view().at(i, c) *= own.gated_gamma.view.at(which, c);
          if (own.gated_beta) z.view().at(i, c) += own.gated_beta.view.at(which, c);
        }
      }
      return z;
    };
    const M value = columns(source.view(), e, e);
    const M context = attention(own, scaled(0), scaled(1), value.view(), 1, 1);
    return dense(times(context.view(), wide.view().middle_columns(0, e)).view(), own.output);
  }

  M attention(const LayerWeights<double>& own, M query, M key, View value, Index heads,
              Index groups) {
    std::unique_ptr<nn::PositionTerms<double>> at_work;
    nn::MaterializedAttention<double> attention;
    if (scheme_ && !scheme_->facts().input && has_position_.at(layer_)) {
      at_work = terms(own.position);
      at_work->query_key(query.view(), key.view());
      attention.problem.bias = at_work->bias();
      attention.weight_terms = at_work->weight_terms();
      attention.value_terms = at_work->value_terms();
    }
    attention.problem.query = query.view();
    attention.problem.key = key.view();
    attention.problem.value = value;
    attention.problem.num_heads = heads;
    attention.problem.num_key_value_heads = groups;
    attention.problem.scale = design_.attention_scale;
    attention.problem.cap = design_.score_cap;
    if (scheme_ && !has_position_.at(layer_))
      attention.problem.scale =
          1 / std::sqrt(static_cast<double>(position_shape(design_).head_size));
    attention.problem.normalizer = normalizers_.at(layer_).get();
    attention.problem.blocks = mask_;
    if (own.score_scale) {
      // Scores times s_h log n_i + b: of each query by itself.
      const double offset = attention.problem.normalizer->offset_of_learned().value();
      const Index size = query.columns() / heads;
      for (Index i = 0; i < query.rows(); ++i) {
        const Index n = mask_ != nullptr ? mask_->visible(i) : key.rows();
        for (Index c = 0; c < query.columns(); ++c) {
          query.view().at(i, c) *=
              own.score_scale.view.at(0, c / size) * std::log(static_cast<double>(n)) + offset;
        }
      }
      attention.problem.normalizer = nn::find_normalizer("softmax");
    }
    attention.talking_before = own.talking_before.view;
    attention.talking_after = own.talking_after.view;
    std::vector<View> previous;
    for (const M& scores : previous_) previous.push_back(scores.view());
    attention.previous = previous;
    attention.largest = design_.variants.largest_keys;
    const PreviousScores kind = design_.variants.previous_scores;
    attention.pass_own_scores = kind == PreviousScores::kOneLayer;
    attention.num_value_heads = design_.variants.value_heads;
    const bool apart = attention.num_value_heads > 0;
    M context(query.rows(), apart ? value.columns : value.columns / groups * heads);
    nn::MaterializedSaved<double> saved;
    nn::materialized_attention_forward(attention, context.view(), &saved);
    if (kind != PreviousScores::kNone) previous_ = std::move(saved.scores);
    return context;
  }

  const Design& design_;
  const ModelWeights<double>& weights_;
  const mask::BlockMap* mask_;
  std::shared_ptr<const nn::PositionScheme> scheme_;
  std::vector<bool> has_position_;
  std::vector<std::shared_ptr<const nn::AttentionNormalizer>> normalizers_;
  std::size_t layer_ = 0;
  std::vector<Index> positions_;
  mutable std::vector<View> parameters_;
  std::vector<M> previous_;
};

}  // namespace

Matrix<double> plain_logits(const Design& design, const ModelWeights<double>& weights,
                            const std::vector<TokenId>& ids, const mask::BlockMap* mask) {
  Plain plain(design, weights, mask, std::ssize(ids));
  M x = plain.embed(ids);
  const M embedded = M::copy(x.view());
  if (design.variants.detector) {
    // Zhang et al. 2020, equations 2, 3 and 6.
    const std::vector<double> wrong = plain.detections(embedded.view());
    const M masked = plain.embed(std::vector<TokenId>(ids.size(), *design.mask_token_id));
    for (Index i = 0; i < x.rows(); ++i) {
      const double p = wrong[static_cast<std::size_t>(i)];
      for (Index c = 0; c < x.columns(); ++c)
        x.view().at(i, c) = p * masked.view().at(i, c) + (1 - p) * embedded.view().at(i, c);
    }
  }
  const bool fixed = design.streams == Streams::kFixedKeys;
  if (fixed) x = plain.embed(std::vector<TokenId>(ids.size(), *design.mask_token_id));
  for (const LayerWeights<double>& layer : weights.layers)
    x = plain.layer(layer, x.view(), fixed ? embedded.view() : x.view());
  if (design.final_norm) x = normed(x.view(), design.norm, weights.final_norm);
  if (design.variants.detector) x = added(x.view(), embedded.view(), 1);
  if (design.head.transform) {
    x = active(design.head.activation, dense(x.view(), weights.head_transform));
  }
  if (design.head.norm) x = normed(x.view(), *design.head.norm, weights.head_norm);
  for (double& value : x.span()) value *= design.head.scale;
  M logits = dense(x.view(), weights.decoder);
  const double cap = design.head.logit_cap;
  for (double& value : logits.span())
    if (cap > 0) value = cap * std::tanh(value / cap);
  for (Index i = logits.rows() - 1; i > 0 && design.head.shifted; --i)
    std::ranges::copy(logits.view().row_span(i - 1), logits.view().row(i));
  return logits;
}

}  // namespace masque::model::test
