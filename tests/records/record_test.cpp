// Records from lines and back, and streams of them.
#include "records/record.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "records/binary_filter.hpp"
#include "records/drop.hpp"
#include "records/mlm.hpp"
#include "records/record_filter.hpp"
#include "records/record_reader.hpp"
#include "records/selection.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::records {
namespace {

using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;

std::string padded(std::string line) {
  line.reserve(line.size() + kLinePadding);
  return line;
}

std::optional<std::string> problem(const std::string& line) {
  JsonRecordReader reader;
  Record record;
  const std::string text = padded(line);
  return reader.read(text, record);
}

std::string round_trip(const std::string& line) {
  JsonRecordReader reader;
  Record record;
  const std::string text = padded(line);
  const auto wrong = reader.read(text, record);
  if (wrong) return *wrong;
  std::string out;
  append_record(record, out);
  return out;
}

TEST_CASE("records come back as they were, other fields untouched") {
  CHECK(round_trip(R"({"ids":[1,2,3]})") == "{\"schema\":1,\"ids\":[1,2,3]}\n");
  const std::string full =
      R"({"schema":1,"ids":[0,2147483647],"source_ids":[4,1,0],"pos":[-3,5],"seg":[0,1],"doc":[0,0],"words":[1,1],)"
      R"("labels":[-100,7],"weights":[1,0.5],"mask":"causal & \"x\"","cu_seqlens":[0,2],)"
      R"("dropped":[[1,2],[3,4]],"original":[5],"id":"a\"\\b","n":1.50,"o":{"a":[1, 2]},"t":true})";
  CHECK(round_trip(full) == full + "\n");
  CHECK(round_trip(" { \"ids\" : [ 1 , 2 ] , \"x\\\"y\" : null } ") ==
        "{\"schema\":1,\"ids\":[1,2],\"x\\\"y\":null}\n");
  CHECK(round_trip(R"({"ids":[],"text":"é\n"})") ==
        "{\"schema\":1,\"ids\":[],\"text\":\"é\\n\"}\n");
}

TEST_CASE("lone surrogates are U+FFFD, in the text and in what passes through") {
  CHECK(round_trip(R"({"ids":[1],"x":"a\ud83d","y\udc00":"\ud83d\ude00"})") ==
        "{\"schema\":1,\"ids\":[1],\"x\":\"a\\ufffd\",\"y\\ufffd\":\"\\ud83d\\ude00\"}\n");
  JsonRecordReader reader;
  Record record;
  const std::string text = padded(R"({"text":"a\ud83d b"})"), plain = padded(R"({"text":"b"})");
  CHECK_FALSE(reader.read(text, record));
  CHECK(reader.text() == "a\uFFFD b");
  CHECK(reader.lone_surrogates() == 1);
  CHECK_FALSE(reader.read(plain, record));
  CHECK(reader.lone_surrogates() == 0);
}

TEST_CASE("what is wrong with a record is said") {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"[1]", "not a JSON object"},
      {"{\"ids\":[1,2}", "ids: expected"},
      {"{\"ids\":[1],\"pos\":[1,2]}", "pos: 2 values, expected 1 as in ids"},
      {"{\"ids\":[1.5]}", "ids: expected a list of whole numbers of 32 bits"},
      {"{\"ids\":[3000000000]}", "ids: expected a list of whole numbers of 32 bits"},
      {"{\"ids\":7}", "ids: expected a list of numbers"},
      {"{\"ids\":[1],\"ids\":[2]}", "ids: given twice"},
      {R"({"text":"a","text":"b"})", "text: given twice"},
      {R"({"ids":[1],"x":1,"y":2,"\u0078":3})", "x: given twice"},
      {"{\"pos\":[1]}", "no ids, expected ids or text"},
      {R"({"i\u0064s":[1],"ids":[1]})", "ids: given twice"},
      {R"({"\q":1,"ids":[1]})", "\\\\q: expected a JSON string as key"},
      {"{\"ids\":[1]} x", "not a JSON object"},
      {"{\"ids\":[1]} {\"a\":1}", "characters after the JSON object"},
      {"{\"ids\":[1],\"schema\":2}", "schema: expected 1"},
      {"{\"ids\":[1],\"mask\":[1]}", "mask: expected an expression of the mask language"},
      {"{\"ids\":[1],\"dropped\":[[1]]}", "dropped: expected a list of [position, id]"},
      {"{\"ids\":[1],\"weights\":[1,2]}", "weights: 2 values, expected 1 as in ids"}};
  for (const auto& [line, expected] : cases) {
    const auto wrong = problem(line);
    REQUIRE(wrong);
    CAPTURE(*wrong);
    CHECK(wrong->find(expected) != std::string::npos);
  }
  Record record;
  CHECK_FALSE(read_ids(" 1 22\t333 ", record));
  CHECK(record.ids == std::vector<TokenId>{1, 22, 333});
  CHECK(*read_ids("1 x", record) == "found 'x', expected an id");
  CHECK(*read_ids("1 -2", record) == "found '-2', expected an id");
  CHECK(read_ids("99999999999", record));
}

TEST_CASE("positions follow the family") {
  using Positions = std::vector<std::int32_t>;
  const auto numbered = [](const std::string& line, const PositionRule& rule) {
    JsonRecordReader reader;
    Record record;
    const std::string text = padded(line);
    CHECK_FALSE(reader.read(text, record));
    number_positions(record, rule);
    CHECK(record.hidden.empty());
    CHECK_FALSE(record.position_ids);
    return record.pos.values;
  };
  // As BERT, and as RoBERTa, whose padding is 1: by create_position_ids_from_input_ids of
  // transformers, less its offset.
  const PositionRule bert, roberta{.offset = 2, .pad = 1};
  const std::string left = R"({"input_ids":[1,1,7,8],"attention_mask":[0,0,1,1]})";
  CHECK(numbered(left, bert) == Positions{2, 3});
  CHECK(numbered(left, roberta).empty());
  // A hidden token that is no padding is counted; visible padding is not.
  const std::string mixed = R"({"input_ids":[1,5,7,1,8,1,9],"attention_mask":[0,0,1,1,1,0,1]})";
  CHECK(numbered(mixed, bert) == Positions{2, 3, 4, 6});
  CHECK(numbered(mixed, roberta) == Positions{1, -1, 2, 3});
  const std::string right = R"({"input_ids":[7,8,1],"attention_mask":[1,1,0]})";
  CHECK(numbered(right, bert).empty());
  CHECK(numbered(right, roberta).empty());
  // position_ids have the offset in them, pos has not.
  CHECK(numbered(R"({"input_ids":[7,8],"position_ids":[2,5]})", bert) == Positions{2, 5});
  CHECK(numbered(R"({"input_ids":[7,8],"position_ids":[2,5]})", roberta) == Positions{0, 3});
  CHECK(numbered(R"({"ids":[7,8],"pos":[2,5]})", roberta) == Positions{2, 5});
  // OPT counts what attention_mask shows, padding or not; its offset is not in position_ids.
  const PositionRule opt{.skips_hidden = true};
  CHECK(numbered(left, opt).empty());
  CHECK(numbered(mixed, opt).empty());
  CHECK(numbered(R"({"input_ids":[7,8],"position_ids":[2,5]})", opt) == Positions{2, 5});
}

TEST_CASE("Hugging Face's names, and padding that goes away") {
  CHECK(round_trip(R"({"input_ids":[1,2],"token_type_ids":[0,1],"position_ids":[4,5]})") ==
        "{\"schema\":1,\"ids\":[1,2],\"position_ids\":[4,5],\"seg\":[0,1]}\n");
  CHECK(round_trip(R"({"attention_mask":[1,1],"input_ids":[1,2],"labels":[-100,3]})") ==
        "{\"schema\":1,\"ids\":[1,2],\"labels\":[-100,3]}\n");
  CHECK(round_trip(R"({"input_ids":[1,2,0,0],"attention_mask":[1,1,0,0]})") ==
        "{\"schema\":1,\"ids\":[1,2]}\n");
  // Padding in front keeps the positions that the tokens had.
  CHECK(round_trip(R"({"input_ids":[0,1,2],"attention_mask":[0,1,1],"labels":[-100,-100,3]})") ==
        "{\"schema\":1,\"ids\":[1,2],\"pos\":[1,2],\"labels\":[-100,3],"
        "\"hidden_tokens\":[[0,0]]}\n");
  const std::string hidden =
      R"({"schema":1,"ids":[7,8],"pos":[1,3],"hidden_tokens":[[0,0],[2,5]]})";
  CHECK(round_trip(R"({"input_ids":[0,7,5,8,0],"attention_mask":[0,1,0,1,0]})") == hidden + "\n");
  CHECK(round_trip(hidden) == hidden + "\n");
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"ids":[1],"input_ids":[1]})", "ids and input_ids: two names of the same field"},
      {R"({"input_ids":[1],"input_ids":[1]})", "input_ids: given twice"},
      {R"({"ids":[1],"position_ids":[0],"pos":[0]})", "position_ids and pos: two names"},
      {R"({"ids":[1],"seg":[0],"token_type_ids":[0]})", "seg and token_type_ids: two names"},
      {R"({"ids":[1],"mask":"full","attention_mask":[1]})", "mask and attention_mask"},
      {R"({"ids":[1],"attention_mask":[1,1]})", "attention_mask: 2 values, expected 1 as in ids"},
      {R"({"ids":[1],"attention_mask":[2]})", "attention_mask: expected a list of 0 and 1"},
      {R"({"ids":[1],"attention_mask":[[1]]})", "attention_mask: expected a list"},
      {R"({"ids":[1],"labels":[1],"attention_mask":[0]})", "labels: token 0 has a label"},
      {R"({"ids":[1],"cu_seqlens":[0,1],"attention_mask":[0]})",
       "cu_seqlens and an attention_mask"}};
  for (const auto& [line, expected] : cases) {
    const auto wrong = problem(line);
    REQUIRE(wrong);
    CAPTURE(*wrong);
    CHECK(wrong->find(expected) != std::string::npos);
  }
}

TEST_CASE("the mask of a record opens no file") {
  CHECK(bind_record_mask("document(2,1)", 3).allows(0, 1));
  CHECK(message_of([] { parse_record_mask("document(2,1)", 4); }).find("is for 3") !=
        std::string::npos);
  for (const char* text : {"causal & nonsense", "tta_word", "unilm(1,1)", "keep(7)"}) {
    CAPTURE(text);
    CHECK(message_of([&] { bind_record_mask(text, 3); }).starts_with("mask: "));
  }
}

TEST_CASE("words of a text by the marks of its tokenizer") {
  TokenTable tokens;
  tokens.special = {1, 1};
  tokens.begins_word = {1, 1, 1, 0, 0};
  const std::vector<TokenId> ids{0, 2, 3, 4, 2, 1, 3, 3};
  CHECK(word_lengths(ids, tokens) == std::vector<Index>{1, 3, 1, 1, 2});
}

std::string many_ids(std::size_t lines) {
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) {
    for (std::size_t j = 0; j < i % 40; ++j) text += std::to_string((i * 7 + j * 13) % 1000) + " ";
    text += "\n";
  }
  return text;
}

std::string filtered(const std::string& path, const RecordFilter& request,
                     const Corruption& corruption) {
  std::string out;
  RecordFilter filter = request;
  filter.input = path;
  filter.sink = [&](std::string_view piece) { out += piece; };
  filter_records(filter, &corruption);
  return out;
}

TEST_CASE("threads, parts and shards give the bytes of the whole") {
  const TempFolder folder;
  const std::string text = many_ids(30'000);
  const std::string path = folder / "in";
  write_file(path, text);
  const auto drop = make_drop({.rate = 0.3, .seed = 3}, {});
  const std::string whole = filtered(path, {.threads = 1}, *drop);
  CHECK(filtered(path, {.threads = 2}, *drop) == whole);
  CHECK(filtered(path, {.threads = 5}, *drop) == whole);
  std::string joined;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    joined += filtered(path, {.threads = 2, .shard = Shard{i, 3}}, *drop);
  }
  CHECK(joined == whole);
  const std::size_t half = text.find('\n', text.size() / 2) + 1;
  const auto lines = static_cast<std::uint64_t>(
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(half), '\n'));
  write_file(folder / "a", text.substr(0, half));
  write_file(folder / "b", text.substr(half));
  CHECK(filtered(folder / "a", {}, *drop) +
            filtered(folder / "b", {.format = LineFormat::kIds, .first_record = lines}, *drop) ==
        whole);
}

TEST_CASE("bad records are counted, named by line, and end a strict run") {
  const TempFolder folder;
  write_file(folder / "in", "1 2\n\n3 x\n5000\n4\n");
  RecordFilter filter{.input = folder / "in"};
  filter.tokens.size = 1000;
  std::string out;
  filter.sink = [&](std::string_view piece) { out += piece; };
  const FilterResult result = filter_records(filter, nullptr);
  CHECK(result.bad == 2);
  REQUIRE(result.first_bad.size() == 2);
  CHECK(result.first_bad[0].line == 3);
  CHECK(result.first_bad[1].message == "id 5000, expected 0 to 999");
  CHECK(out == "{\"schema\":1,\"ids\":[1,2]}\n{\"schema\":1,\"ids\":[4]}\n");
  filter.strict = true;
  CHECK(message_of<InputError>([&] { filter_records(filter, nullptr); }) ==
        (folder / "in") + ": line 3: found 'x', expected an id");
  filter.format = LineFormat::kText;
  CHECK(message_of<InputError>([&] {
          filter_records(filter, nullptr);
        }).ends_with("found text: use tokenizer, or give ids or JSON"));
}

TEST_CASE("epochs follow one another, copies are equal") {
  const TempFolder folder;
  write_file(folder / "in", "1 2 3 4 5 6 7 8 9\n");
  const auto drop = make_drop({.rate = 0.5, .seed = 1}, {});
  const std::string two = filtered(folder / "in", {.epochs = 2}, *drop);
  const std::size_t end = two.find('\n') + 1;
  CHECK(two.substr(0, end) == filtered(folder / "in", {}, *drop));
  CHECK(two.substr(0, end) != two.substr(end));
  const std::string copies = filtered(folder / "in", {.copies = 2}, *drop);
  CHECK(copies == two.substr(0, end) + two.substr(0, end));
}

TEST_CASE("a record that is refused in a later epoch is neither printed nor counted") {
  class Refusing final : public Corruption {
   public:
    void apply(Record& record, Scratch&, Tally& tally) const override {
      ++tally.selected;
      if (record.epoch == 1 && record.size() == 2) throw InputError("refused");
    }
  };
  const TempFolder folder;
  write_file(folder / "in", "1 2\n3 4 5\n");
  std::string out;
  RecordFilter filter;
  filter.input = folder / "in";
  filter.epochs = 2;
  filter.sink = [&](std::string_view text) { out += text; };
  const FilterResult result = filter_records(filter, std::make_unique<Refusing>().get());
  CHECK(result.bad == 1);
  CHECK(result.tally.records == 2);
  CHECK(result.tally.tokens_in == 6);
  CHECK(result.tally.tokens_out == 6);
  CHECK(result.tally.selected == 2);
  CHECK(std::ranges::count(out, '\n') == 2);
}

TEST_CASE("binary files hold what records hold, for any number of threads") {
  const TempFolder folder;
  std::string bytes;
  for (std::uint32_t i = 0; i < 500'000; ++i) {
    const auto id = static_cast<std::uint16_t>(5 + i * 7 % 900);
    bytes.append(reinterpret_cast<const char*>(&id), 2);
  }
  write_file(folder / "in", bytes);
  TokenTable tokens;
  tokens.size = 1000;
  tokens.mask = 4;
  const auto mlm = make_mlm({}, tokens);
  const auto drop = make_drop({}, tokens);
  std::string labels;
  std::string dropped;
  for (const int threads : {1, 3}) {
    BinaryFilter filter{.input = folder / "in",
                        .output = folder / "out",
                        .length = 300,
                        .threads = threads,
                        .tokens = tokens};
    const Tally tally = filter_binary(filter, *mlm);
    CHECK(tally.tokens_in == 500'000);
    CHECK(read_file(folder / "out").size() == bytes.size());
    const std::string now = read_file(folder / "out.labels") + read_file(folder / "out");
    CHECK(now.size() == 3 * bytes.size());
    if (!labels.empty()) CHECK(now == labels);
    labels = now;
    filter.output = folder / "less";
    filter.layout = BinaryLayout::kNanogpt;
    const Tally less = filter_binary(filter, *drop);
    CHECK(read_file(folder / "less").size() == 2 * less.tokens_out);
    CHECK(read_file(folder / "less.pos").size() == 4 * less.tokens_out);
    CHECK(read_file(folder / "less.dropped").size() == 8 * less.dropped);
    CHECK(read_file(folder / "less.lengths").size() == 4 * less.records);
    const std::string all = read_file(folder / "less") + read_file(folder / "less.dropped");
    if (!dropped.empty()) CHECK(all == dropped);
    dropped = all;
  }
  // The layout of llm.c, there and back.
  BinaryFilter llmc{.input = folder / "in", .output = folder / "odd", .length = 300};
  write_file(folder / "in", bytes.substr(0, 7));
  CHECK(message_of<InputError>([&] {
          filter_binary(llmc, *drop);
        }).ends_with("ends in the middle of an id"));
  llmc.layout = BinaryLayout::kLlmc;
  CHECK(message_of<InputError>([&] { filter_binary(llmc, *drop); }).find("no header of llm.c") !=
        std::string::npos);
  CHECK_FALSE(test::names_in(folder.path()).empty());
  for (const std::string& name : test::names_in(folder.path())) CHECK(name.find("odd") != 0);
}

}  // namespace
}  // namespace masque::records
