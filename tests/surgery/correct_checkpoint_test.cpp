#include "surgery/correction/correct_checkpoint.hpp"

#include <doctest/doctest.h>

#include "base/json/json.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/sharding.hpp"
#include "support/faults.hpp"
#include "support/message.hpp"
#include "support/near.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::far_off;
using test::Faults;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;

CorrectionRequest request_of() {
  CorrectionRequest request;
  request.verify = true;
  request.write.threads = 2;
  return request;
}

std::vector<std::string> changed_names(const std::string& a, const std::string& b) {
  const store::Checkpoint left = store::open_checkpoint(a);
  const store::Checkpoint right = store::open_checkpoint(b);
  std::vector<std::string> names;
  for (const auto& change : store::compare_checkpoints(left, right, {})) {
    names.push_back(std::string(store::change_name(change.kind)) + " " + change.name);
  }
  return names;
}

bool noted(const CorrectionReport& report, const std::string& part) {
  for (const std::string& note : report.notes) {
    if (contains(note, part)) return true;
  }
  return false;
}

TEST_CASE("a tied head gets the table as it was, and the config changes in one value") {
  const TempFolder folder;
  ExampleBert().write(folder);
  write_file(folder / "in/sub/notes.txt", "hello");
  const auto report = correct_checkpoint(folder / "in", folder / "out", request_of());
  CHECK(report.added_tensors ==
        std::vector<std::string>{"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"});
  CHECK(changed_names(folder / "in", folder / "out") ==
        std::vector<std::string>{"values " + kTable, "only-b cls.predictions.decoder.bias",
                                 "only-b cls.predictions.decoder.weight"});
  const store::Checkpoint in = store::open_checkpoint(folder / "in");
  const store::Checkpoint out = store::open_checkpoint(folder / "out");
  CHECK(values_of(out, "cls.predictions.decoder.weight") == values_of(in, kTable));
  CHECK(values_of(out, "cls.predictions.decoder.bias") == values_of(in, "cls.predictions.bias"));
  CHECK(read_file(folder / "out/config.json") ==
        "{\n  \"model_type\": \"bert\",\n  \"tie_word_embeddings\": false\n}\n");
  CHECK(read_file(folder / "out/sub/notes.txt") == "hello");
  CHECK(read_file(folder / "out/vocab.txt") == kVocabulary);
  REQUIRE(report.verified);
  CHECK(report.verified->tensors_unchanged == 2);
  CHECK(report.verified->files_unchanged == 2);
  CHECK(report.verified->digest_before == report.verified->digest_after);
  CHECK(report.moves.rows == 11 - 4);
  CHECK(folder.names() == std::vector<std::string>{"in", "out"});
}

TEST_CASE("--tied keep changes the head with the table, also where it is stored twice") {
  const TempFolder folder;
  ExampleBert bert;
  bert.decoder = true;
  bert.write(folder);
  CorrectionRequest request = request_of();
  request.tied = TiedPolicy::kKeep;
  const auto report = correct_checkpoint(folder / "in", folder / "out", request);
  CHECK(report.added_tensors.empty());
  const store::Checkpoint out = store::open_checkpoint(folder / "out");
  CHECK(values_of(out, kTable) == values_of(out, "cls.predictions.decoder.weight"));
  CHECK(changed_names(folder / "in", folder / "out").size() == 2);
  CHECK(read_file(folder / "out/config.json") == bert.config);
}

TEST_CASE("a stored equal copy is untied by the config and by what is missing") {
  const TempFolder folder;
  ExampleBert bert;
  bert.decoder = true;
  bert.write(folder);
  const auto report = correct_checkpoint(folder / "in", folder / "out", request_of());
  CHECK(report.added_tensors == std::vector<std::string>{"cls.predictions.decoder.bias"});
  CHECK(contains(read_file(folder / "out/config.json"), "\"tie_word_embeddings\": false"));
}

TEST_CASE("--tied refuse leaves nothing behind") {
  const TempFolder folder;
  ExampleBert().write(folder);
  CorrectionRequest request = request_of();
  request.tied = TiedPolicy::kRefuse;
  CHECK(contains(message_of([&] { correct_checkpoint(folder / "in", folder / "out", request); }),
                 "the output head is tied"));
  CHECK(folder.names() == std::vector<std::string>{"in"});
}

TEST_CASE("an own head and a missing one are left alone, and said so") {
  for (const bool own : {true, false}) {
    const TempFolder folder;
    ExampleBert bert;
    bert.head = own;
    bert.decoder = own;
    bert.config = R"({"model_type":"bert","tie_word_embeddings":false})";
    bert.write(folder);
    const auto report = correct_checkpoint(folder / "in", folder / "out", request_of());
    CHECK(noted(report, own ? "has its own" : "no output head"));
    CHECK(read_file(folder / "out/config.json") == bert.config);
  }
}

TEST_CASE("sharded equals single, and the index gains the head") {
  const TempFolder folder;
  ExampleBert bert;
  bert.write(folder, "one");
  bert.write_shards(folder, "two");
  write_file(folder / "two/config.json", bert.config);
  const std::string index =
      "{\"metadata\": {\"total_size\": 1.0e3, \"total_parameters\": 69}, \"weight_map\": {\n"
      "  \"cls.predictions.bias\": \"model-00001-of-00002.safetensors\",\n"
      "  \"other\": \"model-00001-of-00002.safetensors\",\n"
      "  \"" +
      kTable + "\": \"model-00002-of-00002.safetensors\"}}";
  write_file(folder / "two/model.safetensors.index.json", index);
  correct_checkpoint(folder / "one", folder / "one-out", request_of());
  correct_checkpoint(folder / "two", folder / "two-out", request_of());
  CHECK(changed_names(folder / "one-out", folder / "two-out").empty());
  const std::string after = read_file(folder / "two-out/model.safetensors.index.json");
  // 55 elements of the matrix and 11 of the bias; a size that is no whole number stays.
  CHECK(contains(after, "\"total_size\": 1.0e3, \"total_parameters\": 135}"));
  CHECK(contains(after,
                 "\"" + kTable +
                     "\": \"model-00002-of-00002.safetensors\",\n"
                     "  \"cls.predictions.decoder.weight\": \"model-00002-of-00002.safetensors\",\n"
                     "  \"cls.predictions.decoder.bias\": \"model-00002-of-00002.safetensors\"}}"));
  // The shard without the table is the same file, byte for byte.
  CHECK(read_file(folder / "two/model-00001-of-00002.safetensors") ==
        read_file(folder / "two-out/model-00001-of-00002.safetensors"));
}

TEST_CASE("rate 0 gives a byte-identical copy without a mark") {
  const TempFolder folder;
  ExampleBert().write(folder);
  CorrectionRequest request = request_of();
  request.rate = 0;
  const auto report = correct_checkpoint(folder / "in", folder / "out", request);
  CHECK(noted(report, "the output is a copy"));
  for (const char* name : {"model.safetensors", "config.json", "vocab.txt"}) {
    CHECK(read_file(folder / (std::string("in/") + name)) ==
          read_file(folder / (std::string("out/") + name)));
  }
}

TEST_CASE("a mark stops a second correction, and carries what the inverse needs") {
  const TempFolder folder;
  ExampleBert bert;
  bert.dtype = DType::kF64;
  bert.write(folder);
  CorrectionRequest request = request_of();
  request.mean = "used";
  request.rate = 0.3;
  correct_checkpoint(folder / "in", folder / "out", request);
  CHECK(
      contains(message_of([&] { correct_checkpoint(folder / "out", folder / "x", request_of()); }),
               "is already corrected (rate=0.3 "));
  CorrectionRequest inverse = request_of();
  inverse.inverse = true;
  correct_checkpoint(folder / "out", folder / "back", inverse);
  const store::Checkpoint in = store::open_checkpoint(folder / "in");
  const store::Checkpoint back = store::open_checkpoint(folder / "back");
  CHECK(far_off(values_of(back, kTable), values_of(in, kTable), 1e-15, 1e-14) == "");
  CHECK(back.files()[0].content.metadata == store::Metadata{{"format", "pt"}});
  CHECK(contains(message_of([&] { correct_checkpoint(folder / "back", folder / "x", inverse); }),
                 "has no mark"));
  inverse.rate = 0.15;
  CHECK(message_of<UsageError>([&] {
          correct_checkpoint(folder / "out", folder / "x", inverse);
        }) == "rate: found 0.15, the correction to invert used 0.3");
  CorrectionRequest again = request_of();
  again.again = true;
  CHECK_NOTHROW(correct_checkpoint(folder / "out", folder / "again", again));
}

TEST_CASE(
    "a mark that not the mark of a correction is refused, even one with a row beyond the table") {
  const TempFolder folder;
  for (const char* mark :
       {"nonsense", "rate=0.15 mask=0.8 keep=0.1 random=0.1 mask_row=99 kept= mean=vocab"}) {
    write_file(folder / "a.safetensors",
               example_file(ExampleBert().tensors(), {{std::string(kMlmMarkerKey), mark}}));
    CorrectionRequest request = request_of();
    request.inverse = true;
    const std::string message = message_of(
        [&] { correct_checkpoint(folder / "a.safetensors", folder / "b.safetensors", request); });
    CHECK((contains(message, "not the mark of a correction") || contains(message, "names row 99")));
  }
}

TEST_CASE("a file in gives a file out, over an existing one, in the tensors' order") {
  const TempFolder folder;
  ExampleBert bert;
  bert.write(folder);
  write_file(folder / "out.safetensors", "old");
  CorrectionRequest request = request_of();
  request.mask_token = "4";
  correct_checkpoint(folder / "in/model.safetensors", folder / "out.safetensors", request);
  const store::Checkpoint out = store::open_checkpoint(folder / "out.safetensors");
  std::vector<std::string> names;
  for (const store::TensorInfo& tensor : out.tensors()) names.push_back(tensor.name);
  // In the reference order, so the new ones are at their places.
  CHECK(names == std::vector<std::string>{kTable, "cls.predictions.bias",
                                          "cls.predictions.decoder.bias",
                                          "cls.predictions.decoder.weight", "other"});
}

TEST_CASE("what the data says no to") {
  const TempFolder folder;
  ExampleBert bert;
  bert.write(folder);
  bert.vocabulary.clear();
  bert.write(folder, "bare");
  const auto message = [&](const char* in, auto change) {
    CorrectionRequest request = request_of();
    change(request);
    return message_of([&] { correct_checkpoint(folder / in, folder / "out", request); });
  };
  const auto nothing = [](CorrectionRequest&) {};
  CHECK(contains(message("bare", nothing), "name the mask with mask_token"));
  CHECK(contains(message("bare", [](auto& r) { r.mask_token = "[MASK]"; }), "no tokenizer file"));
  CHECK(contains(message("bare", [](auto& r) { r.mask_token = "11"; }),
                 "found row 11, expected a row below 11"));
  CHECK(contains(message("in", [](auto& r) { r.mask_token = "x"; }), "no such token in vocab.txt"));
  CHECK(contains(message("in", [](auto& r) { r.mean = "freq:/nonexistent"; }), "No such file"));
  CHECK(contains(message("bare",
                         [](auto& r) {
                           r.mask_token = "4";
                           r.mean = "used";
                         }),
                 "no tokenizer file"));
  CHECK(contains(message("in", [](auto& r) { r.tensor = "other"; }), "expected a table"));
  write_file(folder / "out/x", "");
  CHECK(contains(message("in", nothing), "exists and is not empty"));
}

TEST_CASE("an inverse that overflows the type is refused and leaves nothing") {
  const TempFolder folder;
  ExampleBert bert;
  bert.dtype = DType::kF16;
  auto tensors = bert.tensors();
  tensors[0].values[30] = 60000;
  write_file(folder / "in/model.safetensors", example_file(tensors));
  write_file(folder / "in/vocab.txt", bert.vocabulary);
  CorrectionRequest request = request_of();
  request.inverse = true;
  request.again = true;
  request.rate = 0.5;
  CHECK(contains(message_of([&] { correct_checkpoint(folder / "in", folder / "out", request); }),
                 "row 6 would overflow F16"));
  CHECK(folder.names() == std::vector<std::string>{"in"});
}

TEST_CASE("a dry run reports the same moves and writes nothing") {
  const TempFolder folder;
  ExampleBert().write(folder);
  CorrectionRequest request = request_of();
  const auto real = correct_checkpoint(folder / "in", folder / "out", request);
  request.dry_run = true;
  const auto dry = correct_checkpoint(folder / "in", "", request);
  CHECK(dry.moves.sum_relative == real.moves.sum_relative);
  CHECK(dry.moves.min_cosine_row == real.moves.min_cosine_row);
  CHECK(folder.names() == std::vector<std::string>{"in", "out"});
}

TEST_CASE("the same bytes for any number of threads") {
  const TempFolder folder;
  ExampleBert bert;
  bert.rows = 20011;
  bert.width = 33;
  bert.write(folder);
  std::string first;
  for (const int threads : {1, 2, 5}) {
    CorrectionRequest request = request_of();
    request.write.threads = threads;
    const std::string out = folder / ("out" + std::to_string(threads));
    correct_checkpoint(folder / "in", out, request);
    const std::string bytes = read_file(out + "/model.safetensors");
    if (first.empty()) first = bytes;
    CHECK(bytes == first);
  }
}

TEST_CASE("--verify notices a byte that did not arrive as it was, and discards the output") {
  const TempFolder folder;
  ExampleBert().write(folder);
  CorrectionRequest request = request_of();
  request.write.threads = 1;
  // The staged file is damaged between writing and reading back: when it is opened for that.
  int reads = 0;
  const std::string staged = folder / ".out.masque-tmp/model.safetensors";
  const Faults faults(
      [&](os::Call call, std::string_view path, std::size_t) -> std::optional<os::Fault> {
        if (call == os::Call::kOpen && contains(path, ".out.masque-tmp/model.safetensors") &&
            ++reads == 1) {
          std::string bytes = read_file(staged);
          bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 1);
          write_file(staged, bytes);
        }
        return std::nullopt;
      });
  const std::string message =
      message_of([&] { correct_checkpoint(folder / "in", folder / "out", request); });
  CHECK(reads > 0);
  CHECK(contains(message, "tensor 'other' differs"));
  CHECK(folder.names() == std::vector<std::string>{"in"});
}

}  // namespace
}  // namespace masque::surgery
