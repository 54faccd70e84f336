// Text, pairs and records to sequences.
#include "train/data/corpus.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "records/binary_layout.hpp"
#include "records/token_folder_writer.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "text/tokenizer.hpp"

namespace masque::train {
namespace {

using test::contains;
using test::message_of;
using Ids = std::vector<TokenId>;

/// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, a 5, b 6, c 7, d 8; `bare`: <unk> 0, </s> 1, a 2 …
class Files {
 public:
  Files() {
    test::write_file(folder_ / "words", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\n");
    test::write_file(folder_ / "bare", "<unk>\n</s>\na\nb\nc\nd\n");
    test::write_file(folder_ / "none", "<unk>\na\nb\n");
  }
  text::Tokenizer open(const std::string& name) const {
    return text::Tokenizer::open("whitespace:" + (folder_ / name));
  }
  Corpus read(std::string_view text, const CorpusOptions& options,
              const std::string& tokenizer = "words") const {
    test::write_file(folder_ / "text", text);
    return read_corpus(folder_ / "text", open(tokenizer), options);
  }

 private:
  test::TempFolder folder_;
};

std::vector<Ids> all(const Corpus& corpus) {
  std::vector<Ids> out;
  for (Index i = 0; i < corpus.size(); ++i) {
    const CorpusItem item = corpus.item(i);
    CHECK(item.number == static_cast<std::uint64_t>(i));
    out.emplace_back(item.ids.begin(), item.ids.end());
  }
  return out;
}

CorpusOptions of(CorpusFormat format, Index length, int threads = 2) {
  CorpusOptions options;
  options.format = format;
  options.length = length;
  options.threads = threads;
  return options;
}

TEST_CASE("what only a later sequence has, all sequences before it get") {
  Corpus corpus;
  corpus.add(Ids{5, 6});
  corpus.add(Ids{7});
  CorpusItem item;
  const Ids ids{5, 6, 7};
  const std::vector<std::uint8_t> segments{0, 1, 1};
  const std::vector<std::int32_t> positions{4, 5, 9};
  item.ids = ids;
  item.segments = segments;
  item.positions = positions;
  corpus.add(item);
  using Positions = std::vector<std::int32_t>;
  const std::vector<Positions> expected{{0, 1}, {0}, {4, 5, 9}};
  for (Index i = 0; i < 3; ++i) {
    const CorpusItem found = corpus.item(i);
    REQUIRE(found.positions.size() == found.ids.size());
    CHECK(Positions(found.positions.begin(), found.positions.end()) ==
          expected[static_cast<std::size_t>(i)]);
    CHECK(found.segments.size() == found.ids.size());
  }
  CHECK(corpus.item(2).segments[1] == 1);
}

TEST_CASE("lines: template, cut ends, empty ones, carriage returns, bad bytes") {
  const Files files;
  const Corpus corpus = files.read("a b\n\n  \na b c d\r\nc \xFF\nd", of(CorpusFormat::kLines, 5));
  CHECK(all(corpus) == std::vector<Ids>{{2, 5, 6, 3}, {2, 5, 6, 7, 3}, {2, 7, 1, 3}, {2, 8, 3}});
  CHECK(corpus.longest() == 5);
  CHECK(corpus.tokens() == 16);
  CHECK_FALSE(corpus.pairs());
}

TEST_CASE("what is beyond the length is counted") {
  const Files files;
  // Two tokens of the template leave room for two of text.
  const auto cut = [&](CorpusFormat format, std::string_view text) {
    const CutText found = files.read(text, of(format, 4)).cut_text();
    return std::vector<Index>{found.sequences, found.left_out, found.tokens};
  };
  using Counts = std::vector<Index>;
  CHECK(cut(CorpusFormat::kLines, "a b c\na b\n\na b c d\na\n") == Counts{2, 3, 10});
  CHECK(cut(CorpusFormat::kLines, "a b\nc\n") == Counts{0, 0, 3});
  CHECK(cut(CorpusFormat::kBlocks, "a b c\na b\na b c d\na\n") == Counts{0, 0, 0});
  const auto pairs = [&](std::string_view text, bool corrections) {
    CorpusOptions options = of(CorpusFormat::kPairs, corrections ? 4 : 5);
    options.corrections = corrections;
    const CutText found = files.read(text, options).cut_text();
    return std::vector<Index>{found.sequences, found.left_out, found.tokens};
  };
  CHECK(pairs("a b\tc d\na\tb\n", false) == Counts{1, 2, 6});
  CHECK(pairs("a b c\ta b d\na\tb\n", true) == Counts{1, 1, 4});
}

TEST_CASE("JSON is no text unless it is said to be") {
  const Files files;
  const std::string json = "{\"text\":\"a b\"}\n\n{\"text\":\"c\\ud83d\"}\n";
  CorpusOptions options = of(CorpusFormat::kLines, 5);
  options.json_advice = "do this";
  CHECK(contains(message_of([&] { files.read(json, options); }),
                 "JSON lines, expected a text: do this"));
  options.format = CorpusFormat::kBlocks;
  CHECK(contains(message_of([&] { files.read(json, options); }), "JSON lines"));
  options.json_is_text = true;
  options.format = CorpusFormat::kLines;
  CHECK(files.read(json, options).size() == 2);
  options.json_is_text = false;
  options.field = "text";
  const Corpus corpus = files.read(json, options);
  CHECK(all(corpus) == std::vector<Ids>{{2, 5, 6, 3}, {2, 1, 3}});
  CHECK(corpus.surrogates().sequences == 1);
  CHECK(corpus.item(1).line == 3);
  CHECK(contains(message_of([&] { files.read("{\"text\":\"a\"}\nb\n", options); }),
                 "line 2: byte 0: not valid JSON"));
  CHECK(contains(message_of([&] { files.read("{\"body\":\"a\"}\n", options); }),
                 "line 1: no field 'text'"));
  options.format = CorpusFormat::kPairs;
  CHECK(contains(message_of<UsageError>([&] { files.read(json, options); }), "field"));
}

TEST_CASE("lines without a template: what a causal model needs around them") {
  const Files files;
  CorpusOptions options = of(CorpusFormat::kLines, 4);
  CHECK(all(files.read("a b c d a\n", options, "bare")) == std::vector<Ids>{{2, 3, 4, 5}});
  options.begin = 1;
  options.end = 1;
  CHECK(all(files.read("a b c d a\n", options, "bare")) == std::vector<Ids>{{1, 2, 3, 1}});
  CHECK(all(files.read("a b c d a\n", options)) == std::vector<Ids>{{2, 5, 6, 3}});
}

TEST_CASE("blocks: lines joined, exact lengths, the rest dropped") {
  const Files files;
  // a b [SEP] c [SEP] d a b
  CHECK(all(files.read("a b\nc\n\nd a b\n", of(CorpusFormat::kBlocks, 5))) ==
        std::vector<Ids>{{2, 5, 6, 3, 3}, {2, 7, 3, 8, 3}});
  // a b </s> c </s> d a b
  CHECK(all(files.read("a b\nc\n\nd a b\n", of(CorpusFormat::kBlocks, 4), "bare")) ==
        std::vector<Ids>{{2, 3, 1, 4}, {1, 5, 2, 3}});
  CHECK(all(files.read("a b\na b", of(CorpusFormat::kBlocks, 3), "none")) ==
        std::vector<Ids>{{1, 2, 1}});
  CHECK(contains(message_of([&] { files.read("a b\nc\n", of(CorpusFormat::kBlocks, 7)); }),
                 "4 tokens of text, expected at least 5 for one sequence of 7"));
}

TEST_CASE("nothing to train on, and no room") {
  const Files files;
  CHECK(contains(message_of([&] { files.read("", of(CorpusFormat::kLines, 5)); }), "no tokens"));
  CHECK(
      contains(message_of([&] { files.read(" \n\n", of(CorpusFormat::kLines, 5)); }), "no tokens"));
  CHECK(contains(message_of([&] { files.read("", of(CorpusFormat::kBlocks, 5)); }), "0 tokens"));
  CHECK(contains(message_of([&] { files.read("", of(CorpusFormat::kPairs, 9)); }), "no pair"));
  CHECK(contains(message_of([&] { files.read("", of(CorpusFormat::kRecords, 9)); }), "no record"));
  CHECK(contains(message_of<UsageError>([&] { files.read("a", of(CorpusFormat::kLines, 2)); }),
                 "sequences of 2 tokens, expected at least 3: 2 special tokens and 1 of text"));
}

TEST_CASE("pairs: segments, longest first, and lines that are none") {
  const Files files;
  const Corpus corpus =
      files.read("a b\tc\n\na\td d d d d\n\ta\nb\t\n", of(CorpusFormat::kPairs, 8));
  CHECK(all(corpus) == std::vector<Ids>{{2, 5, 6, 3, 7, 3}, {2, 5, 3, 8, 8, 8, 8, 3}});
  REQUIRE(corpus.pairs());
  const CorpusItem item = corpus.item(0);
  CHECK(std::vector<std::uint8_t>(item.segments.begin(), item.segments.end()) ==
        std::vector<std::uint8_t>{0, 0, 0, 0, 1, 1});
  CHECK(all(files.read("a b c d\td c b a\n", of(CorpusFormat::kPairs, 8))) ==
        std::vector<Ids>{{2, 5, 6, 3, 8, 7, 6, 3}});
  CHECK(all(files.read("a\tb\n", of(CorpusFormat::kPairs, 8), "bare")) ==
        std::vector<Ids>{{2, 1, 3, 1}});
  CHECK(contains(message_of([&] { files.read("a\tb\nc\n", of(CorpusFormat::kPairs, 8)); }),
                 "line 2: expected a source and a target"));
  CHECK(contains(message_of([&] { files.read("a\tb\tc\n", of(CorpusFormat::kPairs, 8)); }),
                 "line 1: expected a source and a target"));
  CHECK(contains(
      message_of<UsageError>([&] { files.read("a\tb\n", of(CorpusFormat::kPairs, 8), "none"); }),
      "puts nothing between two texts"));
}

TEST_CASE("corrections: labels in the places of a text's tokens, pairs that have others left out") {
  const Files files;
  CorpusOptions options = of(CorpusFormat::kPairs, 5);
  options.corrections = true;
  // The second pair has other numbers of tokens, the third an unknown word where it should be b.
  const Corpus corpus =
      files.read("a b\ta c\na b\ta\nb zz\tb b\nb a\tb zz\na b c d\td c b a\n", options);
  CHECK(all(corpus) == std::vector<Ids>{{2, 5, 6, 3}, {2, 6, 1, 3}, {2, 6, 5, 3}, {2, 5, 6, 7, 3}});
  CHECK(corpus.left_out() == 1);
  CHECK(corpus.labels() == LabelKind::kTokens);
  CHECK_FALSE(corpus.pairs());
  const std::int32_t none = records::kNoLabel;
  const std::vector<std::vector<std::int32_t>> labels{
      {none, 5, 7, none}, {none, 6, 6, none}, {none, 6, none, none}, {none, 8, 7, 6, none}};
  for (Index i = 0; i < corpus.size(); ++i) {
    const CorpusItem item = corpus.item(i);
    CHECK(std::vector<std::int32_t>(item.labels.begin(), item.labels.end()) ==
          labels[static_cast<std::size_t>(i)]);
  }
  CHECK(corpus.item(1).line == 3);
  CHECK(contains(message_of([&] { files.read("a b\ta\na\tb c\n", options); }),
                 "all 2 pairs have texts with different numbers of tokens"));
}

std::string problem_of(const Files& files, const std::string& line, bool labels) {
  CorpusOptions options = of(CorpusFormat::kRecords, 6);
  options.labels = labels;
  const std::string first = labels ? "{\"ids\":[5],\"labels\":[5]}\n" : "{\"ids\":[5]}\n";
  return message_of([&] { files.read(first + line + "\n", options); });
}

TEST_CASE("records with labels: everything that droptoken writes") {
  const Files files;
  CorpusOptions options = of(CorpusFormat::kRecords, 6);
  options.labels = true;
  const Corpus corpus = files.read(
      "{\"ids\":[5,4,7],\"labels\":[-100,6,-100],\"weights\":[1,0.5,1],\"pos\":[0,1,1],"
      "\"mask\":\"visible(2,1@0)\"}\n{\"ids\":[8],\"labels\":[8]}\n"
      "{\"input_ids\":[5,6,0],\"attention_mask\":[1,1,0],\"labels\":[7,-100,-100]}\n",
      options);
  CHECK(corpus.labels() == LabelKind::kTokens);
  CHECK(corpus.has_masks());
  CHECK(all(corpus) == std::vector<Ids>{{5, 4, 7}, {8}, {5, 6}});
  const CorpusItem first = corpus.item(0);
  CHECK(Ids(first.labels.begin(), first.labels.end()) == Ids{-100, 6, -100});
  CHECK(Ids(first.positions.begin(), first.positions.end()) == Ids{0, 1, 1});
  CHECK(std::vector<double>(first.weights.begin(), first.weights.end()) ==
        std::vector<double>{1, 0.5, 1});
  CHECK(first.mask == "visible(2,1@0)");
  CHECK(corpus.item(1).mask.empty());
  CHECK(corpus.item(1).weights[0] == 1);
  CHECK(corpus.item(2).positions[1] == 1);
  CHECK(corpus.position_end() == 2);
}

TEST_CASE("records of bart and electra") {
  const Files files;
  CorpusOptions options = of(CorpusFormat::kRecords, 6);
  options.labels = true;
  const Corpus bart = files.read("{\"ids\":[2,4,3],\"original\":[2,5,6,3]}\n", options);
  CHECK(all(bart) == std::vector<Ids>{{2, 4, 3, 5, 6, 3}});
  const CorpusItem item = bart.item(0);
  CHECK(Ids(item.labels.begin(), item.labels.end()) == Ids{-100, -100, 5, 6, 3, -100});
  CHECK(item.segments[2] == 0);
  CHECK(item.segments[3] == 1);
  CHECK(item.mask == "unilm(3,3)");
  const Corpus electra =
      files.read("{\"ids\":[5,6],\"labels\":[0,1],\"original\":[5,7]}\n", options);
  CHECK(electra.labels() == LabelKind::kReplaced);
}

TEST_CASE("records whose labels do not fit are named by their line") {
  const Files files;
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"({"ids":[5]})", "line 2: no labels"},
      {R"({"ids":[5,6],"labels":[6]})", "line 2: labels: 1 values, expected 2 as in ids"},
      {R"({"ids":[5],"labels":[9]})",
       "line 2: labels: 9 at token 0, expected from 0 to 8, or -100"},
      {R"({"ids":[5],"labels":[-1]})", "line 2: labels: -1 at token 0"},
      {R"({"ids":[5],"labels":[0],"original":[5]})", "line 2: labels with original"},
      {R"({"ids":[5],"labels":[5],"weights":[-1]})", "line 2: weights: -1, expected at least 0"},
      {R"({"ids":[5],"labels":[5],"pos":[6]})", "line 2: pos 6, expected from 0 to 5"},
      {R"~({"ids":[5],"labels":[5],"mask":"document(2)"})~",
       "line 2: mask: 'document(2)' for a sequence of 1 tokens: the mask is for 2 × 2"},
      {R"({"ids":[5],"labels":[5],"mask":"nonsense"})", "line 2: mask: "},
      {R"({"ids":[5],"original":[9]})", "line 2: original: id 9"},
      {R"({"ids":[5,5,5,5],"original":[5,5,5]})", "line 2: 7 tokens, expected at most 6"},
      {R"({"ids":[5],"labels":[5],"input_ids":[5]})", "line 2: ids and input_ids: two names of"},
  };
  for (const auto& [line, expected] : cases) {
    CAPTURE(line);
    const std::string found = problem_of(files, line, true);
    CAPTURE(found);
    CHECK(contains(found, expected));
  }
  CHECK(contains(problem_of(files, R"({"ids":[5],"labels":[6]})", false),
                 "line 2: labels in a record, which only objective records can use"));
  CHECK(contains(problem_of(files, R"({"ids":[5],"weights":[1]})", false), "line 2: weights"));
  CHECK(contains(problem_of(files, R"({"ids":[5],"original":[1]})", false), "line 2: original"));
  CorpusOptions options = of(CorpusFormat::kRecords, 6);
  options.labels = true;
  CHECK(contains(message_of([&] { files.read("{\"ids\":[5],\"labels\":[-100]}\n", options); }),
                 "no record has labels"));
}

TEST_CASE("records: ids as they are, what objectives make themselves refused") {
  const Files files;
  const Corpus corpus =
      files.read("{\"ids\":[2,5,3]}\n{\"ids\":[5,6],\"seg\":[0,1]}\n{\"text\":\"a\"}\n",
                 of(CorpusFormat::kRecords, 3));
  CHECK(all(corpus) == std::vector<Ids>{{2, 5, 3}, {5, 6}, {2, 5, 3}});
  CHECK(corpus.item(0).segments[2] == 0);
  CHECK(corpus.item(1).segments[1] == 1);
  CHECK(corpus.item(2).segments[2] == 0);
  const auto problem = [&](const std::string& line) {
    return message_of([&] { files.read("{\"ids\":[5]}\n" + line, of(CorpusFormat::kRecords, 3)); });
  };
  CHECK(contains(problem("{\"ids\":[5],\"labels\":[6]}\n"),
                 "line 2: labels in a record, which only"));
  CHECK(contains(problem("{\"ids\":[5,5,5,5]}\n"), "line 2: 4 tokens, expected at most 3"));
  CHECK(contains(problem("{\"ids\":[9]}\n"), "line 2: id 9, expected 0 to 8"));
  CHECK(contains(problem("{\"ids\":[5],\"seg\":[2]}\n"), "line 2: seg 2, expected 0 or 1"));
}

TEST_CASE("any number of threads reads the same, and digests differ") {
  const Files files;
  std::string text;
  for (int i = 0; i < 60000; ++i) text += i % 7 == 0 ? "a b c\n" : i % 3 == 0 ? "d\n" : "b a d a\n";
  REQUIRE(text.size() > std::size_t{256} << 10);  // more than one piece
  for (const CorpusFormat format : {CorpusFormat::kLines, CorpusFormat::kBlocks}) {
    const Corpus one = files.read(text, of(format, 16, 1));
    const Corpus three = files.read(text, of(format, 16, 3));
    CHECK(one.digest() == three.digest());
    if (format == CorpusFormat::kLines) CHECK(one.size() == 60000);
    CHECK(files.read(text + "a b c d a b c d a b c d a b c d\n", of(format, 16)).digest() !=
          one.digest());
  }
  // Blocks over the borders of pieces: tokens of all lines, separators between them.
  Index tokens = 0;
  for (int i = 0; i < 60000; ++i) tokens += (i % 7 == 0 ? 3 : i % 3 == 0 ? 1 : 4) + 1;
  CHECK(files.read(text, of(CorpusFormat::kBlocks, 16)).size() == (tokens - 1) / 14);

  CHECK(text::tokenizer_digest(files.open("words")) == text::tokenizer_digest(files.open("words")));
  CHECK(text::tokenizer_digest(files.open("words")) != text::tokenizer_digest(files.open("bare")));
}

TEST_CASE(
    "a token folder of a text is the same corpus, and other tokenizers and formats are refused") {
  const Files files;
  const test::TempFolder folder;
  const std::string path = folder / "tokens";
  const text::Tokenizer words = files.open("words");
  {
    records::TokenFolderWriter writer(path, static_cast<Index>(words.size()),
                                      text::tokenizer_digest(words),
                                      records::TokenFolderStart::kNew);
    for (const Ids& ids : std::vector<Ids>{{5, 6, 7, 8}, {7}, {8, 5, 6}}) writer.add(ids);
    writer.commit(4);
  }
  for (const CorpusFormat format : {CorpusFormat::kLines, CorpusFormat::kBlocks}) {
    const Corpus text = files.read("a b c d\nc\n\nd a b\n", of(format, 5));
    const Corpus stored = read_corpus(path, words, of(format, 5));
    CHECK(all(stored) == all(text));
    CHECK(stored.digest() == text.digest());
    CHECK(stored.tokens() == text.tokens());
  }
  CHECK(contains(
      message_of([&] { read_corpus(path, files.open("bare"), of(CorpusFormat::kLines, 5)); }),
      "made with another tokenizer than"));
  CHECK(contains(
      message_of<UsageError>([&] { read_corpus(path, words, of(CorpusFormat::kPairs, 9)); }),
      "holds tokens, expected lines or blocks"));
  // Ids alone: blocks, without separators.
  std::string ids;
  records::append_binary(Ids{5, 6, 7, 8, 7, 8, 5, 6}, 2, ids);
  test::write_file(folder / "ids.bin", ids);
  CHECK(all(read_corpus(folder / "ids.bin", words, of(CorpusFormat::kBlocks, 5))) ==
        std::vector<Ids>{{2, 5, 6, 7, 3}, {2, 8, 7, 8, 3}});
  CHECK(contains(
      message_of([&] { read_corpus(folder / "ids.bin", words, of(CorpusFormat::kLines, 5)); }),
      "expected format blocks"));
}

TEST_CASE("lines and pairs are what the tokenizer itself makes of them") {
  const std::vector<std::string> texts{"the cat", "Hello, world!  naïve été", "a",
                                       "中文 and more words here",
                                       "unbelievable tokenization of <mask> and [MASK] things"};
  const test::TempFolder folder;
  for (const std::string name : {"bert", "roberta", "gpt2"}) {
    const auto tokenizer =
        text::Tokenizer::open(std::string(MASQUE_TEST_DATA "/text/tokenizers/") + name + ".json");
    for (const Index length : {Index{8}, Index{9}, Index{200}}) {
      CAPTURE(name);
      CAPTURE(length);
      text::EncodeOptions options;
      options.special = true;
      options.truncation = text::Truncation{.max_length = static_cast<std::size_t>(length)};
      std::string lines;
      std::string pairs;
      std::vector<Ids> expected;
      std::vector<Ids> expected_pairs;
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::string& other = texts[(i + 3) % texts.size()];
        lines += texts[i] + "\n";
        pairs += texts[i] + "\t" + other + "\n";
        expected.push_back(tokenizer.encode(texts[i], options).ids);
        expected_pairs.push_back(tokenizer.encode_pair(texts[i], other, options).ids);
      }
      test::write_file(folder / "lines", lines);
      test::write_file(folder / "pairs", pairs);
      CHECK(all(read_corpus(folder / "lines", tokenizer, of(CorpusFormat::kLines, length))) ==
            expected);
      if (name == "gpt2") continue;  // without a template of its own
      CHECK(all(read_corpus(folder / "pairs", tokenizer, of(CorpusFormat::kPairs, length))) ==
            expected_pairs);
    }
  }
}

TEST_CASE("what corruptions know of a tokenizer") {
  const Files files;
  const records::TokenTable table = token_table(files.open("words"));
  CHECK(table.size == 9);
  CHECK(table.mask == 4);
  CHECK(table.is_special(2));
  CHECK_FALSE(table.is_special(5));
}

}  // namespace
}  // namespace masque::train
