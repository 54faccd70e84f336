// Pooling, and folders of sentence-transformers.
#include "evaluate/states/sentence_vectors.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include "fake_model.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::evaluate {
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
    return vectors({.poolings = {pooling}}, {sentence()})[0];
  };
  CHECK(one(SentencePooling::kMean) == V{24, 1.5, 18.5});
  CHECK(one(SentencePooling::kCls) == V{22, 0, 4});
  CHECK(one(SentencePooling::kTta) == V{25.5, 1.5, 30.5});
  CHECK(one(SentencePooling::kFirstLast) == V{19, 1.5, 18.5});
  CHECK(one(SentencePooling::kMax) == V{26, 3, 36});
  CHECK(one(SentencePooling::kLastToken) == V{23, 3, 9});
  CHECK(one(SentencePooling::kMeanSqrt) == V{48, 3, 37});
  CHECK(one(SentencePooling::kWeightedMean)[1] == doctest::Approx(2).epsilon(1e-15));
  CHECK(vectors({.poolings = {SentencePooling::kLastToken, SentencePooling::kTta}},
                {sentence()})[0] == V{23, 3, 9, 25.5, 1.5, 30.5});
  const V unit = vectors({.poolings = {SentencePooling::kCls}, .normalize = true}, {sentence()})[0];
  CHECK(unit[0] * unit[0] + unit[2] * unit[2] == doctest::Approx(1).epsilon(1e-14));
  CHECK(cosine(unit, V{44, 0, 8}) == doctest::Approx(1).epsilon(1e-14));
}

TEST_CASE("tokens of a prompt are not pooled, and a vector is cut after its normalisation") {
  using V = std::vector<double>;
  const auto one = [](const VectorOptions& options) { return vectors(options, {sentence()})[0]; };
  CHECK(one({.unpooled = 2}) == V{24.5, 2.5, 22.5});
  CHECK(one({.poolings = {SentencePooling::kCls}, .unpooled = 2}) == V{26, 2, 36});
  CHECK(one({.poolings = {SentencePooling::kTta}, .unpooled = 2}) == V{26, 2, 36});
  CHECK(one({.poolings = {SentencePooling::kFirstLast}, .unpooled = 3}) == V{18, 3, 9});
  CHECK(one({.poolings = {SentencePooling::kMax}, .unpooled = 3}) == V{23, 3, 9});
  CHECK(one({.poolings = {SentencePooling::kWeightedMean}, .unpooled = 3}) == V{23, 3, 9});
  // Nothing is left: zero, but for the first token.
  CHECK(one({.poolings = {SentencePooling::kMax}, .unpooled = 4}) == V{0, 0, 0});
  CHECK(one({.poolings = {SentencePooling::kLastToken}, .unpooled = 4}) == V{0, 0, 0});
  CHECK(one({.unpooled = 4}) == V{0, 0, 0});
  CHECK(one({.poolings = {SentencePooling::kCls}, .unpooled = 4}) == V{22, 0, 4});
  const V unit = one({.normalize = true});
  CHECK(one({.normalize = true, .dim = 2}) == V{unit[0], unit[1]});
  CHECK(one({.dim = 9}) == V{24, 1.5, 18.5});
  const V kept = one({.dim = 2, .normalize_kept = true});
  CHECK(kept.size() == 2);
  CHECK(kept[0] * kept[0] + kept[1] * kept[1] == doctest::Approx(1).epsilon(1e-14));
}

TEST_CASE("steps after the pooling") {
  using V = std::vector<double>;
  const VectorStep dense{
      "2_Dense", DenseStep{.in = 3, .out = 2, .weight = {1, 0, 0, 0, 1, 1}, .bias = {1, -1}}};
  const VectorStep norm{"3_LayerNorm", LayerNormStep{{1, 2}, {0, 1}}};
  const V x = vectors({.steps = {dense}}, {sentence()})[0];
  CHECK(x == V{25, 19});
  const V y = vectors({.steps = {dense, norm}, .dim = 1}, {sentence()})[0];
  CHECK(y.size() == 1);
  CHECK(y[0] == doctest::Approx(3 / std::sqrt(9 + 1e-5)).epsilon(1e-14));
  CHECK(vector_size({.steps = {dense, norm}}, 3) == 2);
  CHECK(message_of<InputError>([&] {
          vector_size(
              {.poolings = {SentencePooling::kMax, SentencePooling::kMean}, .steps = {dense}}, 3);
        }) == "2_Dense: reads vectors of 3 numbers, expected 6: the module before it gives these");
}

TEST_CASE("similarities of sentence-transformers") {
  const std::vector<double> x{1, 2, 2}, y{2, 0, 1};
  CHECK(similarity(Similarity::kDot, x, y) == 4);
  CHECK(similarity(Similarity::kManhattan, x, y) == -4);
  CHECK(similarity(Similarity::kEuclidean, x, y) == doctest::Approx(-std::sqrt(6)).epsilon(1e-15));
  CHECK(similarity(Similarity::kCosine, x, y) == cosine(x, y));
}

TEST_CASE("the longest text of a tokenizer") {
  const test::TempFolder temp;
  const auto limit = [&](const std::string& text) {
    test::write_file(temp / "tokenizer_config.json", text);
    return read_tokenizer_limit(temp.path());
  };
  CHECK(read_tokenizer_limit(temp.path()).max_length == 0);
  CHECK(limit("{}").max_length == 0);
  CHECK(limit(R"({"model_max_length":32})").max_length == 32);
  CHECK(limit(R"({"max_len":5})").max_length == 5);
  CHECK(limit(R"({"model_max_length":null,"max_len":5})").max_length == 0);
  CHECK(limit(R"({"model_max_length":1000000000000000019884624838656})").max_length == 0);
  CHECK(limit(R"({"truncation_side":"left"})").keep_last);
  for (const char* bad : {R"({"model_max_length":"32"})", R"({"model_max_length":0})",
                          R"({"model_max_length":1.5})", R"({"truncation_side":"middle"})", "[]"})
    CHECK(!message_of<InputError>([&] { limit(bad); }).empty());
}

TEST_CASE("a vector does not depend on its batch") {
  Sentence other = sentence();
  other.ids[1] = 9;
  const std::vector<Sentence> all{sentence(), other, part_of(other, 0, 1), part_of(other, 0, 0)};
  for (const SentencePooling pooling : {SentencePooling::kMean, SentencePooling::kCls,
                                        SentencePooling::kFirstLast, SentencePooling::kTta}) {
    const auto together = vectors({.poolings = {pooling}}, all);
    CHECK(vectors({.poolings = {pooling}, .batch_tokens = 1}, all) == together);
    CHECK(vectors({.poolings = {pooling}, .batch_tokens = 8}, all) == together);
  }
  // Nothing to pool: zero, and no division by it.
  CHECK(vectors({.poolings = {SentencePooling::kTta}, .normalize = true}, {all[3]})[0] ==
        std::vector<double>(3, 0));
}

TEST_CASE("long sentences are refused or cut") {
  const FakeModel model(model::HeadKind::kNone);
  const VectorMaker strict(model, {.max_length = 3}, [](std::uint64_t, std::vector<double>&&) {});
  CHECK(spell_fields(strict.length_problem(sentence()).value_or("")) ==
        "4 tokens, expected at most 3 (see policy)");
  const auto cut = vectors({.truncate = true, .max_length = 3}, {sentence()});
  CHECK(cut == vectors({}, {part_of(sentence(), 0, 1)}));
  const auto last = vectors({.truncate = true, .keep_last = true, .max_length = 3}, {sentence()});
  CHECK(last == vectors({}, {part_of(sentence(), 1, 2)}));
}

TEST_CASE("folders of sentence-transformers") {
  const test::TempFolder temp;
  const std::string path = temp.path();
  CHECK(read_sentence_folder(path).model == path);
  const std::string modules = path + "/modules.json";
  const auto type = [](const char* name, const char* place) {
    return std::string(R"({"name":")") + name + R"(","path":")" + place +
           R"(","type":"sentence_transformers.models.)" + name + "\"}";
  };
  test::write_file(modules, "[" + type("Transformer", "") + "," + type("Pooling", ".") + "," +
                                type("Normalize", "2_Normalize") + "]");
  test::write_file(path + "/config.json",
                   R"({"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true})");
  test::write_file(path + "/sentence_bert_config.json",
                   R"({"max_seq_length":17,"do_lower_case":true})");
  const SentenceFolder folder = read_sentence_folder(path);
  CHECK(folder.poolings == std::vector{SentencePooling::kMean});
  CHECK(folder.normalize);
  CHECK(folder.max_length == 17);
  CHECK(folder.lower_case);
  CHECK(folder.notes.empty());
  test::write_file(path + "/sentence_bert_config.json",
                   R"({"max_seq_length":9223372036854775808})");
  CHECK(message_of<InputError>([&] {
          read_sentence_folder(path);
        }).ends_with("max_seq_length is 9223372036854775808, expected at most 2147483647"));
  const auto notes = [&](const std::string& members) {
    test::write_file(path + "/sentence_bert_config.json", "{" + members + "}");
    std::string all;
    for (const std::string& note : read_sentence_folder(path).notes)
      all += note.substr(note.rfind('/') + 1);
    return all;
  };
  const auto rounded = [](const std::string& what) {
    return "sentence_bert_config.json: " + what +
           ": sentence-transformers rounds the weights to it and computes in it, here they count "
           "as they are stored";
  };
  CHECK(notes(R"("model_args":{"torch_dtype":"float16"})") ==
        rounded("model_args.torch_dtype is float16"));
  CHECK(notes(R"("model_kwargs":{"dtype":"bfloat16"})") ==
        rounded("model_kwargs.dtype is bfloat16"));
  CHECK(notes(R"("config_args":{"torch_dtype":"half"})") ==
        rounded("config_args.torch_dtype is half"));
  for (const char* none : {R"("model_kwargs":{"dtype":"float32","torch_dtype":"float16"})",
                           R"("model_kwargs":{"dtype":"float32"},"config_kwargs":{"dtype":"half"})",
                           R"("model_args":{"torch_dtype":"auto"})", R"("model_args":{})"})
    CHECK(notes(none).empty());
  test::write_file(path + "/sentence_bert_config.json", "{}");
  test::write_file(path + "/config.json", R"({"pooling_mode":"cls"})");
  CHECK(read_sentence_folder(path).poolings == std::vector{SentencePooling::kCls});
  // A file of weights is part of its folder.
  CHECK(read_sentence_folder(path + "/model.safetensors").poolings ==
        std::vector{SentencePooling::kCls});
  test::write_file(path + "/config.json", R"({"pooling_mode_max_tokens":true})");
  CHECK(read_sentence_folder(path).poolings == std::vector{SentencePooling::kMax});
  test::write_file(path + "/config.json", R"({"pooling_mode":"median"})");
  CHECK(test::contains(message_of<InputError>([&] { read_sentence_folder(path); }),
                       "pooling 'median', expected cls"));
  test::write_file(modules, "[" + type("CNN", "2_CNN") + "]");
  CHECK(test::contains(message_of<InputError>([&] { read_sentence_folder(path); }),
                       "module 'sentence_transformers.models.CNN' is not supported"));
}

}  // namespace
}  // namespace masque::evaluate
