// GGUF vocabularies with rows and tokens of other kinds, and parts of models.
#include <functional>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/edit/head.hpp"
#include "surgery/gguf_files.hpp"
#include "surgery/positions/resize_positions.hpp"
#include "surgery/positions/resize_types.hpp"
#include "surgery/vocabulary/gguf_tokens.hpp"
#include "surgery/vocabulary/vocabulary_spelling.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::gguf_array;
using test::gguf_text;
using test::gguf_value;
using test::le;
using test::message_of;
using test::TempFolder;
using test::write_file;

TEST_CASE("unused rows of a GGUF file are no tokens") {
  const TempFolder folder;
  write_file(
      folder / "in.gguf",
      encoder({"[MASK]", "\u2581the", "gone", "s", "\u2581[PAD4]", "[PAD5]"}, {3, 1, 5, 1, 5, 5}));
  const store::Checkpoint in = store::open_checkpoint(folder / "in.gguf");
  CHECK(names_of(in) == Texts{"[MASK]", "the", "", "##s"});
  CHECK_FALSE(TokenNames::of(in).assigned(2));
  CHECK(used_weights(6, TokenNames::of(in)) ==
        std::vector<double>{1. / 3, 1. / 3, 0, 1. / 3, 0, 0});
  const auto report =
      change(folder / "in.gguf", folder / "add.gguf",
             [](const VocabularyState& state) { return plan_add(state, {"Foo"}, false, 1); });
  CHECK(report.rows_after == 6);
  CHECK(report.tokens_after == 4);
  const store::Checkpoint added = store::open_checkpoint(folder / "add.gguf");
  CHECK(texts_of(added) == Texts{"[MASK]", "\u2581the", "gone", "s", "\u2581Foo", "[PAD5]"});
  CHECK(store::gguf_elements(*store::find_gguf_value(added, store::kGgufTokenTypes),
                             store::GgufType::kInt32) ==
        le(3) + le(1) + le(5) + le(1) + le(1) + le(5));
  change(folder / "in.gguf", folder / "fewer.gguf",
         [](const VocabularyState& state) { return plan_remove(state, {{"the"}}); });
  CHECK(texts_of(store::open_checkpoint(folder / "fewer.gguf")) ==
        Texts{"[MASK]", "gone", "s", "\u2581[PAD3]", "[PAD4]"});
  change(folder / "in.gguf", folder / "cut.gguf",
         [](const VocabularyState& state) { return plan_resize(state, 4, 1); });
  CHECK(texts_of(store::open_checkpoint(folder / "cut.gguf")).back() == "s");
}

TEST_CASE("bracketed tokens of earlier converters are read and written as they are") {
  const TempFolder folder;
  write_file(folder / "in.gguf",
             encoder({"[MASK]", "[unused0]", "\u2581[unused1]", "s", "[x"}, {3, 1, 1, 1, 1}));
  CHECK(names_of(store::open_checkpoint(folder / "in.gguf")) ==
        Texts{"[MASK]", "[unused0]", "[unused1]", "##s", "##[x"});
  change(folder / "in.gguf", folder / "out.gguf", [](const VocabularyState& state) {
    return plan_rename(state, {{"[unused0]", "[E1]"}, {"[unused1]", "[E2]"}, {"##s", "[E3]"}});
  });
  CHECK(texts_of(store::open_checkpoint(folder / "out.gguf")) ==
        Texts{"[MASK]", "[E1]", "\u2581[E2]", "\u2581[E3]", "[x"});
  change(folder / "out.gguf", folder / "word.gguf", [](const VocabularyState& state) {
    return plan_rename(state, {{"[E1]", "word"}});
  });
  CHECK(texts_of(store::open_checkpoint(folder / "word.gguf"))[1] == "\u2581word");
}

TEST_CASE("control tokens of a GGUF file are special") {
  const TempFolder folder;
  write_file(folder / "in.gguf", encoder({"[MASK]", "\u2581the", "[extra]", "s"}, {3, 1, 3, 1}));
  const auto removes = [&] {
    change(folder / "in.gguf", folder / "out.gguf",
           [](const VocabularyState& state) { return plan_remove(state, {{"[extra]"}}); });
  };
  CHECK(contains(message_of(removes), "2 [extra] is a special token of the tokenizer"));
  const auto report =
      change(folder / "in.gguf", folder / "kept.gguf",
             [](const VocabularyState& state) { return plan_keep(state, {{"##s"}}); });
  CHECK(names_of(store::open_checkpoint(folder / "kept.gguf")) ==
        Texts{"[MASK]", "[extra]", "##s"});
  CHECK(contains(report.notes.front(), "2 special tokens are also kept: 0 [MASK], 2 [extra]"));
}

TEST_CASE("a part of a split GGUF model keeps its rows, and its head is not known") {
  const TempFolder folder;
  const std::string in = folder / "in.gguf";
  const std::string out = folder / "out.gguf";
  write_file(in, encoder({"[MASK]", "\u2581the"}, {3, 1},
                         {gguf_value("split.no", 2, le(std::uint16_t{0})),
                          gguf_value("split.count", 2, le(std::uint16_t{2}))}));
  const store::Checkpoint part = store::open_checkpoint(in);
  CHECK(find_embedding_table(part, std::nullopt, std::nullopt).head == HeadState::kUnknown);
  const auto append = [](const VocabularyState& state) { return plan_append(state, 1, 1); };
  PositionsRequest positions;
  positions.positions = 4;
  positions.how = "repeat";
  TypesRequest types;
  types.types = 3;
  for (const std::function<void()>& edit : std::vector<std::function<void()>>{
           [&] { change(in, out, append); }, [&] { untie_checkpoint(in, out, {}); },
           [&] { tie_checkpoint(in, out, {}); }, [&] { resize_positions(in, out, positions); },
           [&] { resize_types(in, out, types); }}) {
    CHECK(contains(message_of(edit), "part 1 of 2 of a split model, expected all of them"));
  }
  CorrectionRequest request;
  CHECK(contains(message_of([&] { correct_checkpoint(in, out, request); }), "tied keep"));
  CHECK_FALSE(exists(out));
  request.tied = TiedPolicy::kKeep;
  CHECK(correct_checkpoint(in, out, request).moves.rows == 1);
}

TEST_CASE("metadata of a GGUF file with ids follow, and those with tokens are noted") {
  const TempFolder folder;
  write_file(folder / "in.gguf",
             encoder({"[MASK]", "\u2581the", "s"}, {3, 1, 1},
                     {gguf_value("tokenizer.huggingface.json", 8, gguf_text("{}")),
                      gguf_array("tokenizer.ggml.suppress_tokens", 5, 1, le(2))}));
  const auto notes = [&](const char* out, const VocabularyPlan& plan) {
    return fmt::format("{}", fmt::join(change(folder / "in.gguf", folder / out, plan).notes, "\n"));
  };
  const std::string removed =
      notes("a.gguf", [](const VocabularyState& state) { return plan_remove(state, {{"the"}}); });
  CHECK(contains(removed, "metadata 'tokenizer.huggingface.json' stays unchanged"));
  CHECK_FALSE(contains(removed, "suppress_tokens"));
  const store::Checkpoint shorter = store::open_checkpoint(folder / "a.gguf");
  const store::TypedValue* suppressed =
      store::find_gguf_value(shorter, "tokenizer.ggml.suppress_tokens");
  REQUIRE(suppressed != nullptr);
  CHECK(store::gguf_elements(*suppressed, store::GgufType::kInt32) == le(1));
  const std::string gone =
      notes("c.gguf", [](const VocabularyState& state) { return plan_remove(state, {{"##s"}}); });
  CHECK(contains(gone, "suppress_tokens': ids of removed tokens are left out: 2"));
  const std::string added = notes(
      "b.gguf", [](const VocabularyState& state) { return plan_add(state, {"foo"}, false, 1); });
  CHECK(contains(added, "metadata 'tokenizer.huggingface.json' stays unchanged"));
  CHECK_FALSE(contains(added, "suppress_tokens"));
}

}  // namespace
}  // namespace masque::surgery
