// Markers: found where they are kept, moved where they belong.
#include "store/markers.hpp"

#include <doctest/doctest.h>

#include "store/numpy/array.hpp"
#include "store/values.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/convert/convert_checkpoint.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::make_safetensors;
using test::message_of;
using test::names_in;
using test::read_file;
using test::TempFolder;
using test::write_file;

const std::string kMark = "rate=0.15; \"x\"";
constexpr const char* kKey = "masque.mlm_correct";

struct Place {
  TempFolder folder;

  /// A marked safetensors file, alone or in a folder with a config.
  Place() {
    const std::string file =
        make_safetensors({{"a", "F32", {2}, std::string(8, '\1')}},
                         R"({"format":"pt","masque.mlm_correct":"rate=0.15; \"x\"","other":"y"})");
    write_file(folder / "in.safetensors", file);
    write_file(folder / "in/model.safetensors", file);
    write_file(folder / "in/config.json", "{\n  \"model_type\": \"bert\"\n}\n");
  }
  std::optional<std::string> convert(const std::string& in, const std::string& out,
                                     const std::string& format = {}) {
    surgery::ConvertRequest request;
    request.format = format;
    request.write.existing = Existing::kReplace;
    notes = surgery::convert_checkpoint(folder / in, folder / out, request).notes;
    return find_marker(open_checkpoint(folder / out), "a", kKey);
  }
  std::vector<std::string> notes;
};

TEST_CASE("the marker of a folder goes to config.json and back") {
  Place p;
  CHECK(p.convert("in", "npz", "npz") == kMark);
  CHECK(p.notes ==
        std::vector<std::string>{"metadata 'other' is lost: npz files have no metadata"});
  CHECK(names_in(p.folder / "npz") == std::vector<std::string>{"config.json", "model.npz"});
  CHECK(contains(read_file(p.folder / "npz/config.json"), "\"masque.mlm_correct\""));
  // The folder's file by itself belongs to the config next to it.
  CHECK(find_marker(open_checkpoint(p.folder / "npz/model.npz"), "a", kKey) == kMark);
  CHECK(p.convert("npz", "back", "safetensors") == kMark);
  CHECK(read_file(p.folder / "back/config.json") == read_file(p.folder / "in/config.json"));
  CHECK(p.convert("npz", "again", "npz") == kMark);
  CHECK(read_file(p.folder / "again/config.json") == read_file(p.folder / "npz/config.json"));
}

TEST_CASE("the marker of a lone file goes to a file next to it and back") {
  Place p;
  CHECK(p.convert("in.safetensors", "out.npz") == kMark);
  CHECK(exists(p.folder / "out.npz.masque.json"));
  CHECK(p.convert("out.npz", "back.safetensors") == kMark);
  CHECK_FALSE(exists(p.folder / "back.safetensors.masque.json"));
  CHECK(p.convert("out.npz", "again.npz") == kMark);
  // Into a folder without a config, and out of it.
  CHECK(p.convert("out.npz", "folder", "npz") == kMark);
  CHECK(names_in(p.folder / "folder") ==
        std::vector<std::string>{"model.npz", "model.npz.masque.json"});
  CHECK(p.convert("folder", "folder2", "npz") == kMark);
  CHECK(p.convert("folder2", "folder3", "safetensors") == kMark);
  CHECK(names_in(p.folder / "folder3") == std::vector<std::string>{"model.safetensors"});
}

TEST_CASE("a file next to weights that were replaced by unmarked ones goes") {
  Place p;
  p.convert("in.safetensors", "out.npz");
  write_file(p.folder / "plain.safetensors",
             make_safetensors({{"a", "F32", {2}, std::string(8, '\1')}}));
  CHECK_FALSE(p.convert("plain.safetensors", "out.npz").has_value());
  CHECK_FALSE(exists(p.folder / "out.npz.masque.json"));
}

TEST_CASE("a conversion that fails leaves no marker") {
  Place p;
  write_file(
      p.folder / "big.safetensors",
      make_safetensors({{"a", "F32", {1}, raw<float>({1e30F})}}, R"({"masque.mlm_correct":"x"})"));
  surgery::ConvertRequest request;
  request.dtype = DType::kF16;
  CHECK(contains(message_of([&] {
                   surgery::convert_checkpoint(p.folder / "big.safetensors", p.folder / "big.npz",
                                               request);
                 }),
                 "values overflow F16"));
  CHECK_FALSE(exists(p.folder / "big.npz"));
  CHECK_FALSE(exists(p.folder / "big.npz.masque.json"));
}

TEST_CASE("a file of markers that is none is refused") {
  Place p;
  p.convert("in.safetensors", "out.npz");
  write_file(p.folder / "out.npz.masque.json", "[]");
  CHECK(contains(message_of([&] { markers_of(open_checkpoint(p.folder / "out.npz")); }),
                 "out.npz.masque.json"));
}

}  // namespace
}  // namespace masque::store
