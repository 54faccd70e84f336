// Pooling, and folders of sentence-transformers.
#include "probe/states/sentence_vectors.hpp"

#include <doctest/doctest.h>

#include "fake_model.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::probe {
namespace {

using test::message_of;

Sentence sentence() {
  Sentence s;
  s.ids = {2, 5, 6, 3};
  s.words = {text::kNoWord, 0, 1, text::kNoWord};
  s.pieces.resize(4);
  s.prefix = s.suffix = 1;
  return s;
}

std::vector<std::vector<double>> vectors(const VectorOptions& options,
                                         const std::vector<Sentence>& sentences) {
  const FakeModel model(model::HeadKind::kNone);
  std::vector<std::vector<double>> out;
  VectorMaker maker(model, options, [&](std::uint64_t id, std::vector<double>&& v) {
    CHECK(id == out.size());
    out.push_back(std::move(v));
  });
  for (std::size_t i = 0; i < sentences.size(); ++i) maker.add(i, sentences[i]);
  maker.flush();
  return out;
}

TEST_CASE("poolings of states that are known") {
  // State l of id x in row i is (x + 10 l, i, x²); there are two layers.
  using V = std::vector<double>;
  const auto one = [](SentencePooling pooling) {
    return vectors({.pooling = pooling}, {sentence()})[0];
  };
  CHECK(one(SentencePooling::kMean) == V{24, 1.5, 18.5});
  CHECK(one(SentencePooling::kCls) == V{22, 0, 4});
  CHECK(one(SentencePooling::kTta) == V{25.5, 1.5, 30.5});
  CHECK(one(SentencePooling::kFirstLast) == V{19, 1.5, 18.5});
  const V unit = vectors({.pooling = SentencePooling::kCls, .normalize = true}, {sentence()})[0];
  CHECK(unit[0] * unit[0] + unit[2] * unit[2] == doctest::Approx(1).epsilon(1e-14));
  CHECK(cosine(unit, V{44, 0, 8}) == doctest::Approx(1).epsilon(1e-14));
}

TEST_CASE("a vector does not depend on its batch") {
  Sentence other = sentence();
  other.ids[1] = 9;
  const std::vector<Sentence> all{sentence(), other, part_of(other, 0, 1), part_of(other, 0, 0)};
  for (const SentencePooling pooling : {SentencePooling::kMean, SentencePooling::kCls,
                                        SentencePooling::kFirstLast, SentencePooling::kTta}) {
    const auto together = vectors({.pooling = pooling}, all);
    CHECK(vectors({.pooling = pooling, .batch_tokens = 1}, all) == together);
    CHECK(vectors({.pooling = pooling, .batch_tokens = 8}, all) == together);
  }
  // Nothing to pool: zero, and no division by it.
  CHECK(vectors({.pooling = SentencePooling::kTta, .normalize = true}, {all[3]})[0] ==
        std::vector<double>(3, 0));
}

TEST_CASE("long sentences are refused or cut") {
  const FakeModel model(model::HeadKind::kNone);
  const VectorMaker strict(model, {.max_length = 3}, [](std::uint64_t, std::vector<double>&&) {});
  CHECK(spell_fields(strict.length_problem(sentence()).value_or("")) ==
        "4 tokens, expected at most 3 (policy truncate reads only the first tokens)");
  const auto cut = vectors({.truncate = true, .max_length = 3}, {sentence()});
  CHECK(cut == vectors({}, {part_of(sentence(), 0, 1)}));
}

TEST_CASE("folders of sentence-transformers") {
  const test::TempFolder temp;
  const std::string path = temp.path();
  CHECK(read_sentence_folder(path).model == path);
  const std::string modules = path + "/modules.json";
  const auto type = [](const char* name, const char* place) {
    return std::string(R"({"path":")") + place + R"(","type":"sentence_transformers.models.)" +
           name + "\"}";
  };
  test::write_file(modules, "[" + type("Transformer", "") + "," + type("Pooling", ".") + "," +
                                type("Normalize", "2_Normalize") + "]");
  test::write_file(path + "/config.json",
                   R"({"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true})");
  test::write_file(path + "/sentence_bert_config.json",
                   R"({"max_seq_length":17,"do_lower_case":true})");
  const SentenceFolder folder = read_sentence_folder(path);
  CHECK(folder.pooling == SentencePooling::kMean);
  CHECK(folder.normalize);
  CHECK(folder.max_length == 17);
  CHECK(folder.notes.size() == 1);
  test::write_file(path + "/sentence_bert_config.json",
                   R"({"max_seq_length":9223372036854775808})");
  CHECK(message_of<InputError>([&] {
          read_sentence_folder(path);
        }).ends_with("max_seq_length is 9223372036854775808, expected at most 2147483647"));
  test::write_file(path + "/sentence_bert_config.json", "{}");
  test::write_file(path + "/config.json", R"({"pooling_mode":"cls"})");
  CHECK(read_sentence_folder(path).pooling == SentencePooling::kCls);
  test::write_file(path + "/config.json", R"({"pooling_mode_max_tokens":true})");
  CHECK(message_of<InputError>([&] {
          read_sentence_folder(path);
        }).ends_with("pooling 'max_tokens' is not supported, expected mean or cls"));
  test::write_file(modules, "[" + type("Dense", "2_Dense") + "]");
  CHECK(test::contains(message_of<InputError>([&] { read_sentence_folder(path); }),
                       "module 'sentence_transformers.models.Dense' is not supported"));
}

}  // namespace
}  // namespace masque::probe
