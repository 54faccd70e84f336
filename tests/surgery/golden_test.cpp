// Checkpoints that transformers saved, against what numpy makes of them in double precision,
// rounded once (scripts/goldens/mlm_correct.py): bit for bit.
#include <doctest/doctest.h>

#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

const std::string kGoldens = std::string(MASQUE_TEST_DATA) + "/mlm_correct";

std::string bytes_of(const store::Checkpoint& checkpoint, const std::string& name) {
  const store::TensorInfo& tensor = checkpoint.get(name);
  std::string bytes(tensor.bytes(), '\0');
  checkpoint.read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

CorrectionRequest verified() {
  CorrectionRequest request;
  request.verify = true;
  return request;
}

TEST_CASE("a tied BERT from transformers: every kind of mean, special rows kept or not") {
  const store::Checkpoint expected = store::open_checkpoint(kGoldens + "/expected.safetensors");
  const TempFolder folder;
  std::string counts;
  for (int i = 0; i < 61; ++i) counts += std::to_string(i) + "\t" + std::to_string(i % 5) + "\n";
  write_file(folder / "counts.tsv", counts);
  for (const char* kind : {"vocab", "used", "freq", "special-correct"}) {
    CAPTURE(kind);
    CorrectionRequest request = verified();
    const std::string name = kind;
    if (name == "used") request.mean = "used";
    if (name == "special-correct") request.special = SpecialPolicy::kCorrect;
    if (name == "freq") {
      request.mean = "freq:" + folder / "counts.tsv";
      request.rate = 0.3;
      request.mask = 0.5;
      request.keep = 0.2;
      request.random = 0.3;
    }
    const std::string out = folder / name;
    correct_checkpoint(kGoldens + "/tied", out, request);
    const store::Checkpoint in = store::open_checkpoint(kGoldens + "/tied");
    const store::Checkpoint corrected = store::open_checkpoint(out);
    CHECK(bytes_of(corrected, kTable) == bytes_of(expected, name));
    CHECK(bytes_of(corrected, "cls.predictions.decoder.weight") == bytes_of(in, kTable));
    CHECK(bytes_of(corrected, "cls.predictions.decoder.bias") ==
          bytes_of(in, "cls.predictions.bias"));
  }
}

TEST_CASE("an untied BERT from transformers keeps its head") {
  const TempFolder folder;
  const auto report = correct_checkpoint(kGoldens + "/untied", folder / "out", verified());
  CHECK(report.head == HeadState::kOwn);
  CHECK(report.added_tensors.empty());
  CHECK(read_file(folder / "out/config.json") == read_file(kGoldens + "/untied/config.json"));
}

TEST_CASE("half and bfloat16 tables are rounded once from double") {
  const store::Checkpoint expected = store::open_checkpoint(kGoldens + "/expected.safetensors");
  const TempFolder folder;
  for (const auto& pair : {std::pair{std::string("f16"), DType::kF16}, {"bf16", DType::kBF16}}) {
    const auto& name = pair.first;
    const auto& dtype = pair.second;
    CAPTURE(name);
    write_file(folder / name, store::write_safetensors_header(
                                  {{.name = kTable, .dtype = dtype, .shape = {61, 24}}}, {}) +
                                  bytes_of(expected, name + "-in"));
    CorrectionRequest request = verified();
    request.mask_token = "4";
    request.special_tokens = {"0", "2", "3"};
    correct_checkpoint(folder / name, folder / (name + "-out"), request);
    CHECK(bytes_of(store::open_checkpoint(folder / (name + "-out")), kTable) ==
          bytes_of(expected, name));
  }
}

}  // namespace
}  // namespace masque::surgery
