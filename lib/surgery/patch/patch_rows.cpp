#include "surgery/patch/patch_rows.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/split.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/edit/head.hpp"
#include "surgery/edit/vocab_size.hpp"
#include "surgery/rows/new_rows.hpp"
#include "surgery/rows/row_expression.hpp"
#include "surgery/rows/row_map.hpp"

namespace masque::surgery {

namespace {

/// A checkpoint whose input table is about to change.
struct PatchedCheckpoint : EditedCheckpoint {
  PatchedCheckpoint(const std::string& path, const PatchRequest& request)
      : EditedCheckpoint(path, request),
        names(TokenNames::of(checkpoint)),
        table(find_embedding_table(checkpoint, config, request.tensor)) {}

  TokenNames names;
  EmbeddingTable table;
};

/// The table gets these rows, and a head that is one with it, too, unless the policy says no.
void patch(PatchedCheckpoint& patched, const ComputedRow& row, const PatchRequest& request,
           EditReport& report) {
  EmbeddingTable& table = patched.table;
  check_one_table(patched.checkpoint, table);
  const store::Source source = new_rows_source(patched.checkpoint, *table.input, row);
  const auto replace = [&](const store::TensorInfo& tensor) {
    patched.edit.replace(tensor.name, tensor.shape, source);
  };
  report.family = table.family == nullptr ? "" : std::string(table.family->name);
  replace(*table.input);
  if (!request.in_place && !request.tensor)
    match_vocab_size(patched.edit, table.family, table.rows(), &report.notes);
  if (store::find_marker(patched.checkpoint, table.input->name, kMlmMarkerKey)) {
    report.notes.emplace_back(
        fmt::format("the table is corrected: mlm-correct {} would not restore the original rows",
                    field("inverse")));
  }
  if (table.head == HeadState::kUnknown && request.tied != TiedPolicy::kKeep) {
    if (table.family == nullptr) {
      throw InputError(patched.checkpoint.path(),
                       fmt::format("'{}' belongs to no known family, so a tied output head cannot "
                                   "be detected: {} keep changes only this tensor",
                                   escape(table.input->name), field("tied")));
    }
    table.head = HeadState::kTied;  // the user knows that there is one
  }
  const bool tied = table.head == HeadState::kTied || table.head == HeadState::kCopy;
  if (table.head == HeadState::kOwn)
    report.notes.push_back(
        fmt::format("the output head has its own '{}': left unchanged", table.decoder_weight));
  if (!tied) {
    if (request.tied != TiedPolicy::kKeep && table.head == HeadState::kNone)
      report.notes.emplace_back("no output head in the checkpoint: nothing to untie");
    return;
  }
  switch (request.tied) {
    case TiedPolicy::kRefuse:
      throw InputError(patched.checkpoint.path(),
                       fmt::format("the output head is tied to the input table: {} untie gives it "
                                   "a copy, {} keep changes both",
                                   field("tied"), field("tied")));
    case TiedPolicy::kUntie: untie_head(patched.edit, table, report.notes); return;
    case TiedPolicy::kKeep: break;
  }
  report.notes.emplace_back(kTiedHeadNote);
  if (table.head == HeadState::kCopy) replace(patched.checkpoint.get(table.decoder_weight));
}

}  // namespace

PatchReport apply_expressions(const std::string& in, const std::string& out,
                              const std::vector<std::string>& programs,
                              const PatchRequest& request) {
  PatchedCheckpoint patched(in, request);
  const store::TensorInfo& table = *patched.table.input;
  RowExpressions expressions(patched.checkpoint, table, patched.names);
  for (const std::string& program : programs) expressions.run(program);
  PatchReport report;
  report.tensor = table.name;
  using Rows = std::map<std::uint64_t, std::vector<double>>;
  const auto rows = std::make_shared<const Rows>(expressions.rows());
  for (const auto& [row, values] : *rows) {
    const std::vector<double> before = read_row(patched.checkpoint, table, row);
    const double norm_before = std::sqrt(dot(before, before));
    const double norm_after = std::sqrt(dot(values, values));
    report.rows.push_back({row, patched.names.token(row), norm_before, norm_after,
                           dot(before, values) / (norm_before * norm_after)});
  }
  patch(
      patched,
      [rows](std::uint64_t row, std::span<double> values) -> std::uint64_t {
        const auto found = rows->find(row);
        if (found == rows->end()) return row;
        std::ranges::copy(found->second, values.begin());
        return kComputedRow;
      },
      request, report);
  finish_edit(patched, out, request, report);
  return report;
}

namespace {

/// Which rows a list names: ids, ranges of ids, tokens, separated by commas.
std::vector<bool> listed_rows(const std::string& list, const TokenNames& names, std::uint64_t rows,
                              const std::string& path) {
  std::vector<bool> listed(rows);
  for (const std::string_view part : split(list, ',')) {
    const std::string item(part);
    const auto [first, last] = split_at_first(part, '-');
    const auto low = parse_unsigned(first);
    const auto high = last ? parse_unsigned(*last) : std::nullopt;
    if (!low || !high) {
      listed[find_row(item, names, rows, path)] = true;
      continue;
    }
    if (*low > *high || *high >= rows) {
      throw InputError(
          path, fmt::format("{}: found '{}', expected a range of ids in increasing order, below {}",
                            field("rows"), item, rows));
    }
    for (std::uint64_t row = *low; row <= *high; ++row) listed[row] = true;
  }
  return listed;
}

std::vector<double> norms_of(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                             int threads) {
  std::vector<double> norms(table.shape[0]);
  const std::uint64_t width = table.shape[1];
  for_each_row_block(checkpoint, table, threads,
                     [&](std::uint64_t first, std::span<const double> rows) {
                       for (std::uint64_t i = 0; i < rows.size() / width; ++i) {
                         const auto row = rows.subspan(i * width, width);
                         norms[first + i] = std::sqrt(dot(row, row));
                       }
                     });
  return norms;
}

}  // namespace

NormReport scale_to_norm(const std::string& in, const std::string& out,
                         const NormRequest& request) {
  PatchedCheckpoint patched(in, request);
  const store::TensorInfo& table = *patched.table.input;
  const std::vector<bool> listed =
      request.rows ? listed_rows(*request.rows, patched.names, table.shape[0], in)
                   : std::vector<bool>(table.shape[0], true);
  NormReport report;
  report.tensor = table.name;
  const std::vector<double> norms = norms_of(patched.checkpoint, table, request.write.threads);
  const auto factors = std::make_shared<std::vector<double>>(norms.size(), 1.0);
  for (std::size_t row = 0; row < norms.size(); ++row) {
    if (!listed[row]) continue;
    if (!std::isfinite(norms[row])) {
      throw InputError(
          in, fmt::format("tensor '{}': row {} has no finite norm", escape(table.name), row));
    }
    ++(norms[row] > 0 ? report.rows : report.zero_rows);
    report.norm_before += norms[row];
  }
  if (report.rows == 0) {
    throw InputError(in, fmt::format("every {}row has norm 0: there is nothing to scale",
                                     request.rows ? "listed " : ""));
  }
  report.norm_before /= static_cast<double>(report.rows);
  report.norm = request.to.value_or(report.norm_before);
  for (std::size_t row = 0; row < norms.size(); ++row) {
    if (listed[row] && norms[row] > 0) (*factors)[row] = report.norm / norms[row];
  }
  if (report.zero_rows > 0)
    report.notes.push_back(fmt::format("rows with norm 0 stay unchanged: {}", report.zero_rows));
  const store::Checkpoint& checkpoint = patched.checkpoint;
  patch(
      patched,
      [factors, &checkpoint, &table](std::uint64_t row, std::span<double> values) -> std::uint64_t {
        const double factor = (*factors)[row];
        if (factor == 1) return row;
        const std::vector<double> stored = read_row(checkpoint, table, row);
        for (std::size_t d = 0; d < values.size(); ++d) values[d] = factor * stored[d];
        return kComputedRow;
      },
      request, report);
  finish_edit(patched, out, request, report);
  return report;
}

}  // namespace masque::surgery
