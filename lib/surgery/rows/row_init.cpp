#include "surgery/rows/row_init.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/random/random.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/thread/parallel.hpp"
#include "store/checkpoint.hpp"
#include "surgery/rows/row_map.hpp"
#include "surgery/rows/token_form.hpp"
#include "surgery/rows/vocabulary_change.hpp"
#include "tensor/convert.hpp"
#include "text/tokenizer.hpp"

namespace masque::surgery {

namespace {

struct RowJob {
  const store::Checkpoint* checkpoint;
  const store::TensorInfo* tensor;
  std::shared_ptr<const std::vector<std::uint64_t>> from;
  RowValues values;
  std::uint64_t row_bytes;

  void compute(std::uint64_t row, MutableBytes out) const {
    std::vector<double> value(out.size() / (dtype_bits(tensor->dtype) / 8));
    values(row, value);
    from_double(tensor->dtype, value, out);
    to_double(tensor->dtype, out, value);
    for (const double number : value) {
      if (std::isfinite(number)) continue;
      throw InputError(checkpoint->path(),
                       fmt::format("tensor '{}': the new row {} would hold {} as {}",
                                   escape(tensor->name), row, number, dtype_name(tensor->dtype)));
    }
  }

  void fill(std::uint64_t offset, MutableBytes out) const {
    const std::uint64_t first = offset / row_bytes;
    const std::uint64_t count = out.size() / row_bytes;
    for (std::uint64_t i = 0; i < count;) {
      const std::uint64_t source = (*from)[first + i];
      if (source == VocabularyChange::kNew) {
        compute(first + i, out.subspan(i * row_bytes, row_bytes));
        ++i;
        continue;
      }
      // Old rows that still lie one after the other are one read.
      std::uint64_t run = 1;
      while (i + run < count && (*from)[first + i + run] == source + run) ++run;
      checkpoint->read(*tensor, source * row_bytes, out.subspan(i * row_bytes, run * row_bytes));
      i += run;
    }
  }
};

/// A copy of `tensor` as a table: a vector [n] gets the shape [n, 1].
store::TensorInfo as_table(const store::TensorInfo& tensor) {
  store::TensorInfo table = tensor;
  if (table.shape.size() == 1) table.shape.push_back(1);
  return table;
}

// A normal distribution with the mean and the covariance of the rows of a table.

/// The distribution, ready to draw from. Immutable; thread-safe.
class RowGaussian {
 public:
  /// Reads the table of `checkpoint` once. Memory: two matrices [width, width] of doubles. Cost
  /// (rows + width)·width². The covariance is Σ weight·(row − mean)(row − mean)ᵀ, summed in row
  /// order whatever the number of threads.
  ///
  /// table    [rows, width]
  /// weights  one a row, adding up to 1; rows of weight 0 may hold anything. Empty: 1/rows each
  /// mean     [width], finite
  /// threads  at most; ≤ 0: all processors
  ///
  /// Throws InputError if a row of some weight is not finite.
  RowGaussian(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
              std::span<const double> weights, std::vector<double> mean, int threads);
  ~RowGaussian();
  RowGaussian(const RowGaussian&) = delete;
  RowGaussian& operator=(const RowGaussian&) = delete;

  /// `out` ← mean + F·`noise`, where F·Fᵀ is the covariance: a sample for standard normal noise.
  /// Both [width]. Cost width².
  void transform(std::span<const double> noise, std::span<double> out) const;

 private:
  struct Factor;
  std::vector<double> mean_;
  std::unique_ptr<Factor> factor_;
};

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr Eigen::Index kPanel = 64;

/// Rows `first` … as √weight·(row − mean), those of weight 0 left out.
RowMajor centred_rows(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                      std::span<const double> weights, const std::vector<double>& mean,
                      std::uint64_t first, std::uint64_t count) {
  const std::uint64_t row_bytes = table.bytes() / table.shape[0];
  std::vector<std::byte> bytes(count * row_bytes);
  checkpoint.read(table, first * row_bytes, bytes);
  RowMajor out(static_cast<Eigen::Index>(count), static_cast<Eigen::Index>(mean.size()));
  std::vector<double> row(mean.size());
  Eigen::Index kept = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double weight =
        weights.empty() ? 1 / static_cast<double>(table.shape[0]) : weights[first + i];
    if (weight == 0) continue;
    to_double(table.dtype, Bytes(bytes).subspan(i * row_bytes, row_bytes), row);
    for (std::size_t j = 0; j < row.size(); ++j) {
      out(kept, static_cast<Eigen::Index>(j)) = std::sqrt(weight) * (row[j] - mean[j]);
    }
    ++kept;
  }
  out.conservativeResize(kept, Eigen::NoChange);
  return out;
}

/// Pᵀ·L·D·Lᵀ·P of the covariance: good for those without full rank, too.
struct RowGaussian::Factor {
  Eigen::LDLT<Eigen::MatrixXd> ldlt;
  Eigen::VectorXd root;  ///< √D; what rounding made negative is 0
};

RowGaussian::RowGaussian(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                         std::span<const double> weights, std::vector<double> mean, int threads)
    : mean_(std::move(mean)) {
  const auto width = static_cast<Eigen::Index>(mean_.size());
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(width, width);
  const std::uint64_t rows = table.shape[0];
  const std::uint64_t step = rows_per_block(table);
  for (std::uint64_t first = 0; first < rows; first += step) {
    const RowMajor block =
        centred_rows(checkpoint, table, weights, mean_, first, std::min(step, rows - first));
    // The lower triangle, some columns to a thread.
    parallel_for(divide_up(width, kPanel), threads, [&](Index panel) {
      const Eigen::Index at = panel * kPanel;
      const Eigen::Index columns = std::min(kPanel, width - at);
      covariance.block(at, at, width - at, columns).noalias() +=
          block.rightCols(width - at).transpose() * block.middleCols(at, columns);
    });
  }
  if (!covariance.allFinite()) {
    throw InputError(
        checkpoint.path(),
        fmt::format("tensor '{}': the covariance of its rows is not finite", escape(table.name)));
  }
  factor_ = std::make_unique<Factor>();
  factor_->ldlt.compute(covariance);
  factor_->root = factor_->ldlt.vectorD().cwiseMax(0.0).cwiseSqrt();
}

RowGaussian::~RowGaussian() = default;

void RowGaussian::transform(std::span<const double> noise, std::span<double> out) const {
  const auto width = static_cast<Eigen::Index>(mean_.size());
  Eigen::VectorXd sample =
      factor_->root.cwiseProduct(Eigen::Map<const Eigen::VectorXd>(noise.data(), width));
  sample = factor_->ldlt.matrixL() * sample;
  sample = factor_->ldlt.transpositionsP().transpose() * sample;
  Eigen::Map<Eigen::VectorXd>(out.data(), width) =
      sample + Eigen::Map<const Eigen::VectorXd>(mean_.data(), width);
}

// The mean of the rows that have a token: the logit of a new token is then the mean of the others'.
// Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language Models".

/// One weight for each row of `context`: 1/n for each of the n rows that have a token, else 0;
/// empty (all rows count alike) without a tokenizer, or if every row has one.
std::vector<double> assigned_weights(const RowInitContext& context) {
  std::vector<double> weights(context.rows);
  std::uint64_t count = 0;
  for (std::uint64_t row = 0; row < context.rows; ++row) {
    if (!context.names.assigned(row)) continue;
    weights[row] = 1;
    ++count;
  }
  if (count == 0 || count == context.rows) return {};
  for (double& weight : weights) weight /= static_cast<double>(count);
  return weights;
}

/// Σ weight·row over the rows of `table` [rows, width], as width numbers; with empty `weights`
/// their mean. Reads the table, which lies in the checkpoint of `context`, once. Throws InputError
/// if the sum is not finite.
std::vector<double> mean_row_of(const RowInitContext& context, const store::TensorInfo& table,
                                std::span<const double> weights) {
  std::vector<double> mean = weighted_row_sum(context.checkpoint, table, weights, context.threads);
  for (double& value : mean) {
    if (weights.empty()) value /= static_cast<double>(table.shape[0]);
    if (!std::isfinite(value)) {
      throw InputError(
          context.checkpoint.path(),
          fmt::format("tensor '{}': the mean of its rows is not finite", escape(table.name)));
    }
  }
  return mean;
}

RowValues mean_values(const RowInitContext& context, const std::string& /*argument*/,
                      const store::TensorInfo& table, bool /*vector*/) {
  const std::vector<double> weights = assigned_weights(context);
  return [mean = mean_row_of(context, table, weights)](
             std::uint64_t /*id*/, std::span<double> out) { std::ranges::copy(mean, out.begin()); };
}

// Normal values as in a new model: with initializer_range of the config, else with the deviation
// of the table's values. A bias begins with 0, as in a new model.

/// Standard deviation of all values in rows that have a token, around their common mean.
double deviation_of(const RowInitContext& context, const store::TensorInfo& table) {
  const std::vector<double> weights = assigned_weights(context);
  const std::vector<double> means = mean_row_of(context, table, weights);
  const auto width = static_cast<double>(means.size());
  double mean = 0;
  for (const double value : means) mean += value / width;
  const std::uint64_t step = rows_per_block(table);
  std::vector<double> parts(divide_up(context.rows, step));
  for_each_row_block(context.checkpoint, table, context.threads,
                     [&](std::uint64_t first, std::span<const double> rows) {
                       double sum = 0;
                       for (std::size_t i = 0; i < rows.size(); ++i) {
                         const std::uint64_t row = first + i / means.size();
                         const double weight =
                             weights.empty() ? 1 / static_cast<double>(context.rows) : weights[row];
                         if (weight != 0) sum += weight * (rows[i] - mean) * (rows[i] - mean);
                       }
                       parts[first / step] = sum;
                     });
  double variance = 0;
  for (const double part : parts) variance += part / width;
  return std::sqrt(variance);
}

RowValues random_values(const RowInitContext& context, const std::string& /*argument*/,
                        const store::TensorInfo& table, bool vector) {
  if (vector)
    return [](std::uint64_t /*id*/, std::span<double> out) { std::ranges::fill(out, 0.0); };
  const double deviation =
      context.initializer_range ? *context.initializer_range : deviation_of(context, table);
  return [deviation, stream = RandomStream(context.seed, table.name)](std::uint64_t id,
                                                                      std::span<double> out) {
    stream.for_item(id).normal(0, out.size(), out.data());
    for (double& value : out) value *= deviation;
  };
}

// Zeros.

RowValues zero_values(const RowInitContext& /*context*/, const std::string& /*argument*/,
                      const store::TensorInfo& /*table*/, bool /*vector*/) {
  return [](std::uint64_t /*id*/, std::span<double> out) { std::ranges::fill(out, 0.0); };
}

// The mean of the rows and a little noise with their covariance.
// Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language Models", which scales the
// covariance by 1e-5 (transformers' resize_token_embeddings: by 1e-9).

constexpr double kUsualScale = 1e-5;

/// A finite number from 0.
std::optional<double> parse_scale(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && *value >= 0 && std::isfinite(*value) ? value : std::nullopt;
}

RowValues gaussian_values(const RowInitContext& context, const std::string& argument,
                          const store::TensorInfo& table, bool /*vector*/) {
  const auto scale = argument.empty() ? std::optional(kUsualScale) : parse_scale(argument);
  if (!scale) {
    throw UsageError(fmt::format("{} cov: found '{}', expected a number from 0", field("init"),
                                 escape(argument)));
  }
  const std::vector<double> weights = assigned_weights(context);
  std::vector<double> mean = mean_row_of(context, table, weights);
  const auto gaussian = std::make_shared<const RowGaussian>(context.checkpoint, table, weights,
                                                            std::move(mean), context.threads);
  return [gaussian, deviation = std::sqrt(*scale), stream = RandomStream(context.seed, table.name)](
             std::uint64_t id, std::span<double> out) {
    std::vector<double> noise(out.size());
    stream.for_item(id).normal(0, noise.size(), noise.data());
    for (double& value : noise) value *= deviation;
    gaussian->transform(noise, out);
  };
}

// A copy of one row.

RowMeans copied_means(const RowInitContext& context, const std::string& argument) {
  const auto count =
      static_cast<std::size_t>(std::ranges::count(context.change.from, VocabularyChange::kNew));
  return RowMeans(count, {find_row(context, argument, fmt::format("{} copy:", field("init")))});
}

// The mean of some rows, as bert4keras' compound_tokens.

RowMeans compound_means(const RowInitContext& context, const std::string& argument) {
  std::vector<std::uint64_t> rows;
  for (const std::string_view name : split(argument, ',')) {
    if (name.empty())
      throw UsageError(
          fmt::format("{} compound: an empty name, expected compound:A,B", field("init")));
    rows.push_back(
        find_row(context, std::string(name), fmt::format("{} compound:", field("init"))));
  }
  const auto count =
      static_cast<std::size_t>(std::ranges::count(context.change.from, VocabularyChange::kNew));
  return RowMeans(count, rows);
}

// The mean of the pieces that the tokenizer made of the token before it had it. Rows without a
// token get the mean of all that have one.

std::vector<std::uint64_t> pieces_of(const RowInitContext& context,
                                     const text::Tokenizer& tokenizer, const std::string& token) {
  const TokenForms forms(tokenizer);
  std::vector<std::uint64_t> rows = forms.pieces(forms.text_of_new(token)).ids;
  for (const std::uint64_t row : rows) {
    if (row < context.rows) continue;
    throw InputError(context.checkpoint.path(),
                     fmt::format("the piece '{}' of '{}' has id {}, but the table has {} rows",
                                 escape(tokenizer.token(static_cast<TokenId>(row))), escape(token),
                                 row, context.rows));
  }
  if (rows.empty()) {
    throw InputError(context.checkpoint.path(),
                     fmt::format("{} subword: the tokenizer splits '{}' into no tokens",
                                 field("init"), escape(token)));
  }
  const auto unknown = tokenizer.roles().unk;
  if (unknown && context.notes != nullptr &&
      std::ranges::count(rows, static_cast<std::uint64_t>(*unknown)) > 0) {
    context.notes->push_back(fmt::format(
        "'{}' has pieces that the tokenizer does not know: the mean includes the row of '{}'",
        escape(token), escape(tokenizer.token(*unknown))));
  }
  return rows;
}

RowMeans subword_means(const RowInitContext& context, const std::string& /*argument*/) {
  if (context.names.empty()) {
    throw InputError(
        context.checkpoint.path(),
        fmt::format("{} subword: no tokenizer file, expected one of mean, random, zero, cov",
                    field("init")));
  }
  const text::Tokenizer tokenizer = text::Tokenizer::open(context.checkpoint.folder());
  RowMeans out;
  for (std::size_t id = 0; id < context.change.from.size(); ++id) {
    if (context.change.from[id] != VocabularyChange::kNew) continue;
    const std::string& token = context.change.tokens[id];
    out.push_back(token.empty() ? std::vector<std::uint64_t>()
                                : pieces_of(context, tokenizer, token));
  }
  return out;
}

constexpr RowInit kRowInits[] = {
    {.name = "compound",
     .argument = "A,B",
     .help = "the mean of the rows of these tokens or ids",
     .means = compound_means,
     .values = nullptr},
    {.name = "copy",
     .argument = "T",
     .help = "the row of the token or id T",
     .means = copied_means,
     .values = nullptr},
    {.name = "cov",
     .argument = "[S]",
     .help = "normal with the mean of the rows and S times their covariance; default S 1e-5",
     .means = nullptr,
     .values = gaussian_values},
    {.name = "mean",
     .argument = "",
     .help = "the mean of the rows that have a token",
     .means = nullptr,
     .values = mean_values},
    {.name = "random",
     .argument = "",
     .help = "normal with initializer_range of the config as standard deviation, else "
             "that of the table; 0 for a bias",
     .means = nullptr,
     .values = random_values},
    {.name = "subword",
     .argument = "",
     .help = "the mean of the rows of its pieces, as the old tokenizer splits it",
     .means = subword_means,
     .values = nullptr},
    {.name = "zero", .argument = "", .help = "zeros", .means = nullptr, .values = zero_values},
};

/// Of NAME:ARGUMENT; empty without a colon.
std::string argument_of(const std::string& spec) {
  return std::string(split_at_first(spec, ':').second.value_or(""));
}

const RowInit& find_init(const std::string& spec, const std::string& argument) {
  const auto [name, after] = split_at_first(spec, ':');
  if (const auto found = std::ranges::find(kRowInits, name, &RowInit::name);
      found != std::end(kRowInits)) {
    const RowInit& init = *found;
    const bool wanted = !init.argument.empty() && !init.argument.starts_with('[');
    const bool good = argument.empty() ? !wanted && !after : !init.argument.empty();
    if (good) return init;
    throw UsageError(
        fmt::format("{}: found '{}', expected {}", field("init"), escape(spec), spelling(init)));
  }
  throw UsageError(fmt::format("{}: found '{}', expected one of {}", field("init"), escape(spec),
                               comma_list(kRowInits, spelling)));
}

/// Means of old rows, read when they are needed.
RowValues values_of_means(const RowInitContext& context, const store::TensorInfo& tensor,
                          std::shared_ptr<const std::vector<std::uint64_t>> ids,
                          std::shared_ptr<const RowMeans> means) {
  const store::Checkpoint& checkpoint = context.checkpoint;
  const store::TensorInfo table = as_table(tensor);
  const auto is_empty = [](const std::vector<std::uint64_t>& rows) { return rows.empty(); };
  std::vector<double> mean;
  if (std::ranges::any_of(*means, is_empty))
    mean = mean_row_of(context, table, assigned_weights(context));
  return [&checkpoint, table, ids = std::move(ids), means = std::move(means),
          mean = std::move(mean)](std::uint64_t id, std::span<double> out) {
    const auto at = std::ranges::lower_bound(*ids, id) - ids->begin();
    const std::vector<std::uint64_t>& rows = (*means)[static_cast<std::size_t>(at)];
    if (rows.empty()) {
      std::ranges::copy(mean, out.begin());
      return;
    }
    std::ranges::fill(out, 0.0);
    for (const std::uint64_t row : rows) {
      const std::vector<double> old = read_row(checkpoint, table, row);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += old[i];
    }
    for (double& value : out) value /= static_cast<double>(rows.size());
  };
}

std::shared_ptr<const std::vector<std::uint64_t>> new_ids(const VocabularyChange& change) {
  std::vector<std::uint64_t> ids;
  for (std::uint64_t id = 0; id < change.from.size(); ++id) {
    if (change.from[id] == VocabularyChange::kNew) ids.push_back(id);
  }
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(ids));
}

}  // namespace

std::span<const RowInit> row_inits() { return kRowInits; }

std::string spelling(const RowInit& init) {
  if (init.argument.empty()) return std::string(init.name);
  if (init.argument.starts_with('['))
    return fmt::format("{}[:{}", init.name, init.argument.substr(1));
  return fmt::format("{}:{}", init.name, init.argument);
}

NewRows::NewRows(const RowInitContext& context, const std::string& spec)
    : context_(&context),
      argument_(argument_of(spec)),
      init_(&find_init(spec, argument_)),
      new_ids_(new_ids(context.change)) {
  if (init_->means == nullptr) return;
  means_ = std::make_shared<const RowMeans>(init_->means(context, argument_));
  MASQUE_CHECK(means_->size() == new_ids_->size());
}

NewRows::NewRows(const RowInitContext& context, RowMeans means)
    : context_(&context),
      new_ids_(new_ids(context.change)),
      means_(std::make_shared<const RowMeans>(std::move(means))) {
  MASQUE_CHECK(means_->size() == new_ids_->size());
}

RowValues NewRows::of(const store::TensorInfo& tensor) const {
  const auto [place, is_new] = made_.try_emplace(&tensor);
  if (is_new) place->second = make(tensor);
  return place->second;
}

RowValues NewRows::make(const store::TensorInfo& tensor) const {
  if (means_) return values_of_means(*context_, tensor, new_ids_, means_);
  if (new_ids_->empty()) return [](std::uint64_t, std::span<double>) {};
  const auto table = std::make_shared<const store::TensorInfo>(as_table(tensor));
  RowValues values = init_->values(*context_, argument_, *table, tensor.shape.size() == 1);
  return [table, values = std::move(values)](std::uint64_t id, std::span<double> out) {
    values(id, out);
  };
}

std::uint64_t find_row(const RowInitContext& context, const std::string& text,
                       std::string_view what) {
  // Vocabularies have numbers as tokens.
  std::optional<std::uint64_t> row = context.names.id(text);
  if (!row) row = parse_unsigned(text.starts_with('#') ? text.substr(1) : text);
  if (row && *row < context.rows) return *row;
  const std::string why =
      row ? fmt::format("found row {}, expected a row below {}", *row, context.rows)
      : context.names.empty() ? std::string("no tokenizer file, expected an id")
                              : fmt::format("no such token in {}", context.names.source());
  throw InputError(context.checkpoint.path(), fmt::format("{} '{}': {}", what, escape(text), why));
}

store::Source edited_rows(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor,
                          std::shared_ptr<const std::vector<std::uint64_t>> from,
                          RowValues values) {
  const std::uint64_t row_bytes = tensor.bytes() / tensor.shape[0];
  auto job = std::make_shared<const RowJob>(
      RowJob{&checkpoint, &tensor, std::move(from), std::move(values), row_bytes});
  return store::Computed{[job](std::uint64_t offset, MutableBytes out) { job->fill(offset, out); },
                         rows_per_block(tensor) * row_bytes, job.get()};
}

}  // namespace masque::surgery
