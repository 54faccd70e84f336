// Tensors that PyTorch stores as one go on being one, whatever surgery does to both of them.
#include <filesystem>
#include <functional>

#include <doctest/doctest.h>

#include "surgery/convert/aliases.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/example.hpp"
#include "surgery/patch/patch_rows.hpp"
#include "surgery/positions/resize_positions.hpp"
#include "surgery/vocabulary/change_vocabulary.hpp"

namespace masque::surgery {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

const std::string kDecoder = "cls.predictions.decoder.weight";

/// A folder with a tied model of 45 rows as PyTorch saved it, without a tokenizer.
struct TiedBert {
  explicit TiedBert(bool tied = true) {
    std::string config = read_file(MASQUE_TEST_DATA "/model/bert/config.json");
    const std::string member = "\"tie_word_embeddings\": ";
    if (!tied) config.replace(config.find(member) + member.size(), 4, "false");
    write_file(folder / "in/config.json", config);
    write_file(folder / "in/pytorch_model.bin",
               read_file(MASQUE_TEST_DATA "/torch/bert/pytorch_model.bin"));
  }

  store::Checkpoint after() const { return store::open_checkpoint(folder / "out"); }

  TempFolder folder;
};

using Job = std::function<void(const std::string& in, const std::string& out)>;

Job changes(const VocabularyPlan& plan, const std::string& init = "mean") {
  return [=](const std::string& in, const std::string& out) {
    VocabularyRequest request;
    request.init = init;
    request.verify = true;
    request.write.threads = 2;
    change_vocabulary(in, out, plan, request);
  };
}

Job corrects(TiedPolicy policy) {
  return [=](const std::string& in, const std::string& out) {
    CorrectionRequest request;
    request.mask_token = "4";
    request.special = SpecialPolicy::kCorrect;
    request.tied = policy;
    request.verify = true;
    request.write.threads = 2;
    const CorrectionReport report = correct_checkpoint(in, out, request);
    CHECK(report.moves.rows > 40);
  };
}

TEST_CASE("a table and its head stay one in every job that changes both") {
  TokenList turned;
  for (int row = 44; row >= 0; --row) turned.entries.push_back(std::to_string(row));
  const std::vector<std::pair<std::string, Job>> jobs{
      {"permute", changes([&](const VocabularyState& s) { return plan_permute(s, turned); })},
      {"remove", changes([](const VocabularyState& s) {
         return plan_remove(s, {{"7", "9"}});
       })},
      {"keep", changes([](const VocabularyState& s) {
         return plan_keep(s, {{"0", "9"}});
       })},
      {"add", changes([](const VocabularyState& s) { return plan_append(s, 3, 8); }, "random")},
      {"resize", changes([](const VocabularyState& s) { return plan_resize(s, 64, 1); }, "cov")},
      {"mlm-correct", corrects(TiedPolicy::kKeep)},
      {"expr",
       [](const std::string& in, const std::string& out) {
         apply_expressions(in, out, {"#5 = 2*#6 - #7"}, PatchRequest());
       }},
      {"norm",
       [](const std::string& in, const std::string& out) {
         NormRequest request;
         request.to = 1;
         scale_to_norm(in, out, request);
       }},
  };
  for (const auto& job_entry : jobs) {
    const auto& name = job_entry.first;
    const auto& job = job_entry.second;
    CAPTURE(name);
    const TiedBert bert;
    const store::Checkpoint before = store::open_checkpoint(bert.folder / "in");
    REQUIRE(surgery::share_bytes(before.get(kTable), before.get(kDecoder)));
    job(bert.folder / "in", bert.folder / "out");
    const store::Checkpoint after = bert.after();
    CHECK(surgery::share_bytes(after.get(kTable), after.get(kDecoder)));
    CHECK(values_of(after, kTable) != values_of(before, kTable));
    CHECK(values_of(after, kTable) == values_of(after, kDecoder));
  }
}

TEST_CASE("a table that does not change keeps its head") {
  const TiedBert bert;
  PositionsRequest request;
  request.positions = 10;
  request.how = "truncate";
  resize_positions(bert.folder / "in", bert.folder / "out", request);
  const store::Checkpoint after = bert.after();
  CHECK(surgery::share_bytes(after.get(kTable), after.get(kDecoder)));
}

TEST_CASE("an untied head is stored on its own") {
  const TiedBert bert;
  const auto before = values_of(store::open_checkpoint(bert.folder / "in"), kTable);
  corrects(TiedPolicy::kUntie)(bert.folder / "in", bert.folder / "out");
  const store::Checkpoint after = bert.after();
  CHECK_FALSE(surgery::share_bytes(after.get(kTable), after.get(kDecoder)));
  CHECK(values_of(after, kTable) != before);
  CHECK(values_of(after, kDecoder) == before);
}

TEST_CASE("a head that the config calls untied gets new rows of its own") {
  const TiedBert bert(false);
  const VocabularyPlan adds = [](const VocabularyState& s) { return plan_append(s, 2, 1); };
  changes(adds, "random")(bert.folder / "in", bert.folder / "out");
  store::Checkpoint after = bert.after();
  CHECK_FALSE(surgery::share_bytes(after.get(kTable), after.get(kDecoder)));
  CHECK(values_of(after, kTable) != values_of(after, kDecoder));
  std::filesystem::remove_all(bert.folder / "out");
  const VocabularyPlan removes = [](const VocabularyState& s) { return plan_remove(s, {{"3"}}); };
  changes(removes)(bert.folder / "in", bert.folder / "out");
  after = bert.after();
  CHECK(surgery::share_bytes(after.get(kTable), after.get(kDecoder)));
}

TEST_CASE("without the first of several names the others stay one") {
  const TempFolder folder;
  write_file(folder / "in.pt", read_file(MASQUE_TEST_DATA "/torch/good/ties.pt"));
  const store::Checkpoint before = store::open_checkpoint(folder / "in.pt");
  const auto values = values_of(before, "decoder");
  CheckpointEdit edit(before);
  edit.remove("embedding");
  write_edit(edit, folder / "out.pt", {});
  const store::Checkpoint after = store::open_checkpoint(folder / "out.pt");
  CHECK(after.find("embedding") == nullptr);
  CHECK(after.get("again").alias_of == "decoder");
  CHECK(values_of(after, "again") == values);
  CHECK(after.get("transposed_again").alias_of == "transposed");
}

}  // namespace
}  // namespace masque::surgery
