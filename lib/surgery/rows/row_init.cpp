#include "surgery/rows/row_init.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/comma_list.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"
#include "base/registry.hpp"
#include "base/split.hpp"
#include "surgery/rows/row_map.hpp"

namespace masque::surgery {

namespace {

using RowInits = Registry<RowInit>;

std::string spelling(const RowInit& init) {
  if (init.argument.empty()) return std::string(init.name);
  if (init.argument.starts_with('['))
    return fmt::format("{}[:{}", init.name, init.argument.substr(1));
  return fmt::format("{}:{}", init.name, init.argument);
}

/// Of NAME:ARGUMENT; empty without a colon.
std::string argument_of(const std::string& spec) {
  return std::string(split_at_first(spec, ':').second.value_or(""));
}

const RowInit& find_init(const std::string& spec, const std::string& argument) {
  const auto [name, after] = split_at_first(spec, ':');
  if (const RowInit* found = RowInits::of_process().find(name)) {
    const RowInit& init = *found;
    const bool wanted = !init.argument.empty() && !init.argument.starts_with('[');
    const bool good = argument.empty() ? !wanted && !after : !init.argument.empty();
    if (good) return init;
    throw UsageError(
        fmt::format("{}: found '{}', expected {}", field("init"), escape(spec), spelling(init)));
  }
  throw UsageError(
      fmt::format("{}: found '{}', expected one of {}", field("init"), escape(spec),
                  comma_list(row_inits(), [](const RowInit* init) { return spelling(*init); })));
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

std::span<const RowInit* const> row_inits() { return RowInits::of_process().all(); }

RowInitRegistration::RowInitRegistration(const RowInit& init) { RowInits::of_process().add(init); }

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

}  // namespace masque::surgery
