// What stands next to the tensors of a TensorFlow checkpoint: the object graph (first byte g), and
// the list that names the newest checkpoint of a folder (l).
#include <algorithm>
#include <array>

#include "fuzz/fuzz.hpp"
#include "store/tensorflow/bundle_place.hpp"
#include "store/tensorflow/object_graph.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void graph(std::string_view message) {
  const auto variables = store::read_object_graph(message);
  if (!variables) return;
  std::size_t bytes = 0;
  for (const store::GraphVariable& variable : *variables)
    bytes += variable.name.size() + variable.key.size();
  test::require(bytes <= message.size(), "more names than the message has");
}

void list(std::string_view text) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  static const std::vector<std::string> names = {"a.data-00000-of-00001", "a.index",
                                                 "b.data-00000-of-00001", "b.index", "checkpoint"};
  for (const std::string& name : names) test::write_file(folder / name, "");
  test::write_file(folder / "checkpoint", text);
  std::vector<std::string> notes;
  const auto index = store::find_bundle_index(folder.path(), names, notes);
  test::require(index == "a.index" || index == "b.index", "an index that is not there");
  for (const std::string& note : notes)
    test::require(test::wrong_message(note).empty(), "a note that is not safe to print");
}

constexpr std::array<test::Kind, 2> kKinds = {{{'g', graph}, {'l', list}}};

void check(std::string_view input) { test::use_by_kind(input, kKinds); }

}  // namespace

MASQUE_FUZZ_TARGET(check)
