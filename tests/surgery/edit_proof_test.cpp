#include <filesystem>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"
#include "surgery/edit/verify_checkpoint.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;

/// An edit of the example: one tensor longer, one file changed, one less.
struct ProofExample {
  ProofExample() {
    ExampleBert().write(folder);
    write_file(folder / "in/notes.txt", "hello");
    write_file(folder / "in/gone.txt", "bye");
    checkpoint.emplace(store::open_checkpoint(folder / "in"));
    edit.emplace(*checkpoint);
    std::string text(48, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i);
    edit->replace("cls.predictions.bias", {12}, store::Literal{text});
    edit->set_file("vocab.txt", "a\nb\n");
    edit->drop_file("gone.txt");
    proof.emplace(*edit);
    write_edit(*edit, folder / "out", {});
  }

  std::string failure() const {
    return message_of([&] { proof->check(folder / "out", 2); });
  }

  TempFolder folder;
  std::optional<store::Checkpoint> checkpoint;
  std::optional<CheckpointEdit> edit;
  std::optional<EditProof> proof;
};

TEST_CASE("an output that is what was planned passes, with what stayed counted") {
  const ProofExample example;
  const VerifyResult result = example.proof->check(example.folder / "out", 2);
  CHECK(result.tensors_unchanged == 2);
  CHECK(result.bytes_unchanged == 11 * 5 * 4 + 12);
  CHECK(result.files_unchanged == 2);  // config.json and notes.txt
  CHECK(result.digest_before == result.digest_after);
}

TEST_CASE("tensors that were added are compared by name, dtype, shape and bytes") {
  TempFolder folder;
  ExampleBert().write(folder);
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "in");
  const auto written = [&](const std::string& name, const Shape& shape, const std::string& text,
                           const std::string& out) {
    CheckpointEdit edit(checkpoint);
    edit.add({{.name = name, .dtype = DType::kF32, .shape = shape}, store::Literal{text}}, kTable);
    write_edit(edit, folder / out, {});
  };
  CheckpointEdit edit(checkpoint);
  edit.add({{.name = "new", .dtype = DType::kF32, .shape = {2}}, store::Literal{"12345678"}},
           kTable);
  const EditProof proof(edit);
  const auto failure = [&](const std::string& out) {
    return message_of([&] { proof.check(folder / out, 2); });
  };
  written("new", {2}, "12345678", "same");
  written("another", {2}, "12345678", "name");
  written("new", {1, 2}, "12345678", "shape");
  written("new", {2}, "12345670", "bytes");
  CHECK(failure("same") == "(nothing thrown)");
  CHECK(contains(failure("name"), "tensor 'new' is missing"));
  CHECK(contains(failure("shape"), "tensor 'new' is missing or has another dtype or shape"));
  CHECK(contains(failure("bytes"), "tensor 'new' does not match the computed values"));
}

TEST_CASE("a lone file that is not written leaves the markers next to its output alone") {
  TempFolder folder;
  write_file(folder / "in.safetensors", example_file(ExampleBert().tensors()));
  write_file(folder / "in.safetensors.masque.json", R"({"masque.new": "1"})");
  const std::string old = R"({"masque.old": "1"})";
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "in.safetensors");
  const auto write = [&](const std::string& out, bool fails) {
    CheckpointEdit edit(checkpoint);
    edit.replace(kTable, {1}, store::Literal{"1234"});
    store::WriteOptions options;
    options.verify = [&](const std::string&) {
      if (fails) throw InputError("x", "refused");
    };
    return message_of([&] { write_edit(edit, folder / out, options); });
  };
  write_file(folder / "out.safetensors", "before");
  write_file(folder / "out.safetensors.masque.json", old);
  CHECK(contains(write("out.safetensors", true), "refused"));
  CHECK(read_file(folder / "out.safetensors.masque.json") == old);
  CHECK(read_file(folder / "out.safetensors") == "before");
  CHECK(contains(write("new.safetensors", true), "refused"));
  CHECK_FALSE(exists(folder / "new.safetensors.masque.json"));
  CHECK(write("out.safetensors", false) == "(nothing thrown)");
  CHECK(contains(read_file(folder / "out.safetensors.masque.json"), "masque.new"));
}

TEST_CASE("every tensor and file that is not as planned is found") {
  const ProofExample example;
  const std::string weights = example.folder / "out/model.safetensors";
  const std::string good = read_file(weights);
  const store::Checkpoint out = store::open_checkpoint(weights);
  for (const store::TensorInfo& tensor : out.tensors()) {
    std::string bad = good;
    bad[tensor.end - 1] = static_cast<char>(bad[tensor.end - 1] ^ 1);
    write_file(weights, bad);
    CHECK(contains(example.failure(), "tensor '" + tensor.name + "'"));
  }
  write_file(weights, good);
  for (const char* name : {"config.json", "notes.txt", "vocab.txt"}) {
    const std::string path = example.folder / ("out/" + std::string(name));
    const std::string text = read_file(path);
    write_file(path, text + "x");
    CHECK(contains(example.failure(), "file '" + std::string(name) + "' differs"));
    std::filesystem::remove(path);
    CHECK(contains(example.failure(), "the files of the folder differ"));
    write_file(path, text);
  }
  write_file(example.folder / "out/gone.txt", "bye");
  CHECK(contains(example.failure(), "the files of the folder differ"));
  std::filesystem::remove(example.folder / "out/gone.txt");
  CHECK(example.failure() == "(nothing thrown)");
}

}  // namespace
}  // namespace masque::surgery
