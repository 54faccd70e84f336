#include "model/treatable_model.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/transformer.hpp"
#include "model/variants.hpp"

namespace masque::model {

namespace {

std::variant<LoadedModel<float>, LoadedModel<double>> load(const std::string& path,
                                                           const std::string& family,
                                                           kernel::Precision precision) {
  if (precision == kernel::Precision::kF64) return load_model<double>(path, {.family = family});
  return load_model<float>(path, {.family = family});
}

/// The learned table: in front of the layers, or as a parameter of a scheme.
template <class T>
const Weight<T>& table_of(const LoadedModel<T>& model) {
  const auto scheme = position_scheme(model.design);
  if (scheme && scheme->name() == "learned") return model.weights.position.front();
  return model.weights.position_table;
}

/// The rows in front of the first position as they are, then `rows`.
template <class T>
Weight<T> extended(const Weight<T>& table, Index offset, const std::vector<TableRows>& rows) {
  const MatrixView<const T> positions = table.view.middle_rows(offset, table.view.rows - offset);
  auto more =
      std::make_shared<Matrix<T>>(Matrix<T>::zero(offset + std::ssize(rows), positions.columns));
  for (Index i = 0; i < offset; ++i) std::ranges::copy(table.view.row_span(i), more->view().row(i));
  for (Index p = 0; p < std::ssize(rows); ++p)
    add_rows(positions, rows[static_cast<std::size_t>(p)], more->view().row_span(offset + p));
  return {std::as_const(*more).view(), more};
}

/// Whether a second table, which no treatment extends, has a row for each position.
bool has_late_table(const Design& design) { return design.variants.late_positions > 0; }

}  // namespace

TreatableModel::TreatableModel(const std::string& path, const std::string& family,
                               kernel::Precision precision)
    : precision_(precision), loaded_(load(path, family, precision)) {}

const std::string& TreatableModel::path() const {
  return std::visit([](const auto& loaded) -> const std::string& { return loaded.path; }, loaded_);
}

const Design& TreatableModel::design() const {
  return std::visit([](const auto& loaded) -> const Design& { return loaded.design; }, loaded_);
}

const std::vector<std::string>& TreatableModel::unused() const {
  return std::visit(
      [](const auto& loaded) -> const std::vector<std::string>& { return loaded.unused; }, loaded_);
}

Index TreatableModel::trained_length() const {
  const Index rows =
      std::visit([](const auto& loaded) { return table_of(loaded).view.rows; }, loaded_);
  if (rows > 0) return rows - design().position_offset;
  const Index longest = design().max_position_embeddings;
  return longest > 0 ? longest : design().max_relative_positions;
}

TreatedPositions TreatableModel::treated(const PositionTreatment& treatment,
                                         const LengthExtension& extension) const {
  TreatedPositions positions;
  positions.design = design();
  positions.table = std::visit(
      [](const auto& loaded) { return static_cast<bool>(loaded.weights.position_table); }, loaded_);
  treatment.apply(extension, positions);
  Design& design = positions.design;
  if (!positions.rows.empty()) {
    const Index trained = trained_length();
    if (extension.trained > trained) {
      throw UsageError(
          fmt::format("the trained length is {}, but the model's table has {} positions",
                      extension.trained, trained));
    }
    if (design.variants.mixer != nullptr) {
      throw UsageError(fmt::format("{} cannot read more positions than it was trained with",
                                   mixer_name(design)));
    }
    if (has_late_table(design)) {
      throw UsageError("late positions cannot read more positions than they were trained with");
    }
    design.max_position_embeddings = std::ssize(positions.rows);
  } else if (!positions.table && design.variants.mixer == nullptr && !has_late_table(design) &&
             design.variants.position.empty() && design.max_position_embeddings > 0) {
    design.max_position_embeddings = std::max(design.max_position_embeddings, extension.length);
  }
  return positions;
}

Index TreatableModel::longest(const PositionTreatment& treatment,
                              const LengthExtension& extension) const {
  const TreatedPositions positions = treated(treatment, extension);
  const Design& design = positions.design;
  if (positions.longest > 0 && extension.length > positions.longest) return positions.longest;
  if (positions.table && positions.rows.empty()) return trained_length();
  // A scheme of nn says itself what it does beyond the trained length.
  const bool scheme = !design.variants.position.empty() && design.variants.mixer == nullptr &&
                      !has_late_table(design);
  if (!scheme || positions.table) return design.max_position_embeddings;
  return position_scheme(design)->position_count(trained_length());
}

std::unique_ptr<Model> TreatableModel::open(const PositionTreatment& treatment,
                                            const LengthExtension& extension,
                                            const ModelOptions& options) const {
  MASQUE_CHECK(options.family.empty() && options.precision == precision_);
  TreatedPositions positions = treated(treatment, extension);
  return std::visit(
      [&]<class T>(const LoadedModel<T>& loaded) -> std::unique_ptr<Model> {
        LoadedModel<T> changed = loaded;
        if (positions.table) {
          Weight<T> table = table_of(loaded);
          if (!positions.rows.empty())
            table = extended(table, loaded.design.position_offset, positions.rows);
          changed.weights.position_table = std::move(table);
        }
        if (positions.design.variants.position != loaded.design.variants.position) {
          changed.weights.position.clear();
          for (LayerWeights<T>& layer : changed.weights.layers) layer.position.clear();
        }
        changed.design = std::move(positions.design);
        return std::make_unique<Transformer<T>>(prepare(std::move(changed), precision_), options);
      },
      loaded_);
}

}  // namespace masque::model
