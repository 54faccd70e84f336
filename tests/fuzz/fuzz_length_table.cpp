// What length-gen keeps: results.tsv (first byte r), the parts of a run with NULs between (c), a
// cell (s) and a number of steps (n).
#include <array>
#include <filesystem>

#include "base/input/digest_line.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "length/store.hpp"
#include "length/table.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

const length::LengthSubject::Settings kSettings = {
    {"task", "parity"}, {"steps", "10"}, {"windows", "0"}};
const std::vector<Index> kLengths = {8, 16};  // as the corpus has them

void results(std::string_view text) {
  const length::LengthTable table = length::read_results("fuzz", std::string(text));
  for (const length::LengthRow& row : table.rows) {
    test::require(row.arm < table.names.designs.size(), "a design that is not there");
    test::require(table.names.chance.contains(row.length), "a length without chance");
  }
}

void parts(std::string_view text) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  std::vector<std::string> names;
  test::InputParts inputs(text);
  std::vector<std::string_view> texts;
  while (!inputs.rest().empty() && texts.size() < 4) texts.push_back(inputs.next());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    names.push_back(folder / length::part_name(i + 1, texts.size()));
    test::write_file(names.back(), with_digest_line(texts[i]));
  }
  test::accepts([&] { results(length::collect_parts({folder.path()})); });
  for (const std::string& name : names) std::filesystem::remove(name);
}

void cell(std::string_view text) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  const length::LengthStore store(folder.path());
  const std::string path = folder / ("cells/" + length::settings_digest(kSettings) + ".tsv");
  store.keep(kSettings, {});
  test::write_file(path, test::read_file(path) + std::string(text));
  const auto rows = store.find(kSettings, kLengths, 0, 0);
  test::require(rows.has_value(), "a cell that is not found");
  store.keep(kSettings, *rows);
  const auto again = store.find(kSettings, kLengths, 0, 0);
  test::require(again && again->size() == rows->size(), "rows that do not read back");
}

void steps(std::string_view text) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  const length::LengthStore store(folder.path());
  test::write_file(folder / "cells/fuzz.steps", text);
  store.steps("fuzz");
}

constexpr std::array<test::Kind, 4> kKinds = {
    {{'r', results}, {'c', parts}, {'s', cell}, {'n', steps}}};

void check(std::string_view input) { test::use_by_kind(input, kKinds); }

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_lines>)
