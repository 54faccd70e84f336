// Errors in text: what they are, how often, and that they depend on nothing but text, number, epoch
// and seed.
#include "records/noise.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/string/utf8.hpp"
#include "records/record_filter.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::records {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

std::shared_ptr<const ConfusionSets> sets(std::string_view text) {
  return std::make_shared<const ConfusionSets>(ConfusionSets::parse(text, "sets"));
}

/// Only errors of one kind, in every word that can have one.
NoiseOptions only(WordErrorKind kind) {
  NoiseOptions options{.rate = 1, .mix = {}};
  options.mix[static_cast<std::size_t>(kind)] = 1;
  return options;
}

NoisyText noisy(const Corruption& noise, std::string_view text, std::uint64_t number = 0,
                std::uint64_t epoch = 0) {
  Record record;
  record.number = number;
  record.epoch = epoch;
  record.noisy.emplace().text = text;
  Scratch scratch;
  Tally tally;
  noise.apply(record, scratch, tally);
  CHECK(tally.selected == record.noisy->errors.size());
  return *record.noisy;
}

std::vector<char32_t> letters(std::string_view text) {
  std::vector<char32_t> out;
  for (std::size_t i = 0; i < text.size();) out.push_back(text::next_char(text, i));
  return out;
}

std::string part(std::string_view text, CharSpan span) {
  std::string out;
  const std::vector<char32_t> all = letters(text);
  for (std::uint64_t i = span.begin; i < span.end; ++i) text::append_utf8(out, all.at(i));
  return out;
}

constexpr std::string_view kTexts[] = {"the reader reads  Words of a\tline.",
                                       "Großmutter läuft über die Straße",
                                       "привет мир",
                                       "这是一个 句子。",
                                       "a\u00A0b 🙂🙃 e\u0301e\u0301",
                                       "  ",
                                       "x",
                                       "aa 11 ..."};

TEST_CASE("the keys around a letter are mutual, in its case, and letters") {
  for (const auto& [name, layout] : keyboard_names()) {
    CAPTURE(name);
    const Keyboard keyboard(layout);
    std::size_t count = 0;
    for (char32_t c = 1; c < 0x600; ++c) {
      const std::u32string_view around = keyboard.neighbours(c);
      if (around.empty()) continue;
      ++count;
      REQUIRE(around.size() >= 2);
      REQUIRE(around.size() <= 6);
      const std::u32string_view small = text::lower_case(c);
      for (const char32_t n : around) {
        REQUIRE(keyboard.neighbours(n).find(c) != std::u32string_view::npos);
        // A capital's neighbours are the capitals of its small letter's.
        REQUIRE(text::lower_case(n).empty() == small.empty());
        if (!small.empty())
          REQUIRE(keyboard.neighbours(small[0]).find(text::lower_case(n)[0]) !=
                  std::u32string_view::npos);
      }
    }
    CHECK(count == (layout == KeyboardLayout::kQwertz   ? 58
                    : layout == KeyboardLayout::kJcuken ? 64
                                                        : 52));
  }
  CHECK(Keyboard(KeyboardLayout::kQwerty).neighbours('g') == U"fhtyvb");
  CHECK(Keyboard(KeyboardLayout::kQwerty).neighbours('Q') == U"WA");
  CHECK(Keyboard(KeyboardLayout::kQwertz).neighbours('z') == U"tugh");
  CHECK(Keyboard(KeyboardLayout::kAzerty).neighbours('a') == U"zq");
  CHECK(Keyboard(KeyboardLayout::kJcuken).neighbours(U'п') == U"аренми");
  CHECK(Keyboard(KeyboardLayout::kQwerty).neighbours('1').empty());
}

TEST_CASE("each kind of error is what it says, and its words are where it says") {
  for (const auto& [name, kind] : word_error_names()) {
    if (kind == WordErrorKind::kConfusion) continue;
    CAPTURE(name);
    const auto noise = make_noise(only(kind));
    std::size_t errors = 0;
    for (const std::string_view text : kTexts) {
      for (std::uint64_t number = 0; number < 20; ++number) {
        const NoisyText made = noisy(*noise, text, number);
        REQUIRE(made.original == text);
        REQUIRE(valid_utf8(made.text));
        for (const WordError& error : made.errors) {
          ++errors;
          REQUIRE(error.kind == kind);
          std::vector<char32_t> a = letters(part(made.original, error.original_span));
          std::vector<char32_t> b = letters(part(made.text, error.span));
          REQUIRE(a != b);
          if (kind == WordErrorKind::kInsertion) std::swap(a, b);
          const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
          const auto left = static_cast<std::size_t>(at.first - a.begin());
          if (kind == WordErrorKind::kTyping) {
            REQUIRE(Keyboard(KeyboardLayout::kQwerty).neighbours(*at.first).find(*at.second) !=
                    std::u32string_view::npos);
            REQUIRE(std::equal(at.first + 1, a.end(), at.second + 1, b.end()));
          } else if (kind == WordErrorKind::kSwap) {
            std::swap(a[left], a[left + 1]);
            REQUIRE(a == b);
          } else {  // the longer one has one more
            a.erase(at.first);
            REQUIRE(a == b);
            REQUIRE_FALSE(b.empty());
          }
        }
      }
    }
    CHECK(errors >= 100);
  }
}

TEST_CASE("what stands between the words stays, and words that can have no error stay") {
  const auto swap = make_noise(only(WordErrorKind::kSwap));
  CHECK(noisy(*swap, " ab\t\u3000cd  aa x ").text == " ba\t\u3000dc  aa x ");
  CHECK(noisy(*swap, "日本").text == "本日");
  CHECK(noisy(*swap, "aa x").errors.empty());
  const auto typing = make_noise(only(WordErrorKind::kTyping));
  CHECK(noisy(*typing, "句子 123 ñ").text == "句子 123 ñ");
  const auto deletion = make_noise(only(WordErrorKind::kDeletion));
  CHECK(noisy(*deletion, "a 子 🙂").text == "a 子 🙂");
  const NoisyText places = noisy(*deletion, "é 子子 xx  yy");
  REQUIRE(places.errors.size() == 3);
  CHECK(places.text == "é 子 x  y");
  CHECK(places.errors[0].span == CharSpan{2, 3});
  CHECK(places.errors[0].original_span == CharSpan{2, 4});
  CHECK(places.errors[2].span == CharSpan{7, 8});
  CHECK(places.errors[2].original_span == CharSpan{9, 11});
  NoiseOptions none;
  none.rate = 0;
  CHECK(noisy(*make_noise(none), kTexts[0]).text == kTexts[0]);
}

TEST_CASE("words become others of their sets, with case and punctuation") {
  NoiseOptions options = only(WordErrorKind::kConfusion);
  options.confusion = sets("their\tthere\nit's\tits\nЕго\tего\n...\t!\n");
  const auto noise = make_noise(options);
  CHECK(noisy(*noise, "their (Their) \"there.\" it's Its THEIR them").text ==
        "there (There) \"their.\" its It's THEIR them");
  CHECK(noisy(*noise, "его ...").text == "Его !");
  options.confusion = sets("a\tb\tc\na\td\tb\n");
  const auto many = make_noise(options);
  std::array<int, 3> seen{};
  for (std::uint64_t number = 0; number < 3000; ++number) {
    const std::string text = noisy(*many, "a", number).text;
    REQUIRE(text.size() == 1);
    ++seen.at(static_cast<std::size_t>(text[0] - 'b'));
  }
  for (const int count : seen) CHECK(std::abs(count - 1000) < 100);
}

TEST_CASE("rates and weights are those that were asked for") {
  NoiseOptions options{.rate = 0.3, .mix = {4, 3, 2, 1, 0}};
  const auto noise = make_noise(options);
  Tally tally;
  Scratch scratch;
  for (std::uint64_t number = 0; number < 2000; ++number) {
    Record record;
    record.number = number;
    record.noisy.emplace().text = "every word here has typing neighbours and letters that differ";
    noise->apply(record, scratch, tally);
  }
  const auto check = [](std::uint64_t found, double of, double p) {
    CHECK(std::abs(static_cast<double>(found) - of * p) <= 3 * std::sqrt(of * p * (1 - p)));
  };
  CHECK(tally.ordinary == 20000);
  check(tally.selected, 20000, 0.3);
  for (std::size_t kind = 0; kind < 4; ++kind)
    check(tally.errors[kind], static_cast<double>(tally.selected), options.mix[kind] / 10);
  CHECK(tally.errors[4] == 0);
  Tally twice = tally;
  twice.add(tally);
  CHECK(twice.errors[0] == 2 * tally.errors[0]);
}

TEST_CASE("seed, number and epoch decide, nothing else") {
  NoiseOptions options{.rate = 0.5};
  const auto noise = make_noise(options);
  const std::string_view text = kTexts[0];
  CHECK(noisy(*noise, text, 7).text == noisy(*noise, text, 7).text);
  CHECK(noisy(*noise, text, 7).text != noisy(*noise, text, 8).text);
  CHECK(noisy(*noise, text, 7).text != noisy(*noise, text, 7, 1).text);
  options.seed = 1;
  CHECK(noisy(*noise, text, 7).text != noisy(*make_noise(options), text, 7).text);
}

TEST_CASE("a stream of text is the same for any threads and parts") {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format("line {} of \xFF some words\r\n", i);
  write_file(folder / "text", text);
  const auto noise = make_noise({.rate = 0.3, .pairs = true});
  const auto run = [&](int threads, std::optional<Shard> shard) {
    std::string out;
    RecordFilter filter{.input = folder / "text", .text = true, .threads = threads};
    filter.shard = shard;
    filter.epochs = 2;
    filter.copies = 2;
    filter.sink = [&](std::string_view piece) { out += piece; };
    filter.print = append_pair;
    CHECK(filter_records(filter, noise.get()).bad == 0);
    return out;
  };
  const std::string whole = run(1, {});
  CHECK(std::ranges::count(whole, '\n') == 20000);
  CHECK(contains(whole, "\tline 4999 of \uFFFD some words\n"));
  CHECK(run(3, {}) == whole);
  CHECK(run(2, Shard{1, 2}) + run(2, Shard{2, 2}) == whole);
}

TEST_CASE("records with text come out with both texts, the errors and what else they have") {
  const TempFolder folder;
  const auto run = [&](const std::string& line, bool pairs = false) {
    write_file(folder / "in", line + "\n");
    NoiseOptions options = only(WordErrorKind::kSwap);
    options.pairs = pairs;
    std::string out;
    RecordFilter filter{.input = folder / "in", .text = true, .threads = 1};
    filter.sink = [&](std::string_view piece) { out += piece; };
    if (pairs) filter.print = append_pair;
    const FilterResult result = filter_records(filter, make_noise(options).get());
    return result.bad == 0 ? out : result.first_bad.at(0).message;
  };
  CHECK(run(R"({"id": 1.50, "text": "ab\n\u00e9x", "y": [1, 2]})") ==
        "{\"schema\":1,\"text\":\"ba\\nxé\",\"original_text\":\"ab\\néx\",\"errors\":["
        "{\"kind\":\"swap\",\"span\":[0,2],\"original_span\":[0,2]},"
        "{\"kind\":\"swap\",\"span\":[3,5],\"original_span\":[3,5]}],"
        "\"id\":1.50,\"y\":[1, 2]}\n");
  CHECK(run(R"({"text":"ab"})", true) == "ba\tab\n");
  CHECK(run("123 x") ==
        "{\"schema\":1,\"text\":\"213 x\",\"original_text\":\"123 x\",\"errors\":["
        "{\"kind\":\"swap\",\"span\":[0,3],\"original_span\":[0,3]}]}\n");
  CHECK(run("a\tb", true) == "a tab or a line break in the text, which pairs cannot contain");
  CHECK(run(R"({"text":"a\nb"})", true) ==
        "a tab or a line break in the text, which pairs cannot contain");
  CHECK(run(R"({"ids":[1],"text":"a"})") == "found ids, expected text");
  CHECK(run(R"({"n":1})") == "no field 'text'");
  CHECK(run(R"({"text":"a","original_te\u0078t":"b"})") == "record already has original_text");
  CHECK(run(R"({"te\u0078t":"a"})").starts_with(R"({"schema":1,"text":"a","original_text":"a",)"));
  CHECK(run(R"({"te\u0078t":"a"})").find(R"(te\u0078t)") == std::string::npos);
  CHECK(run(R"({"text":"a","mask":"causal"})") == "record has fields of ids, expected text only");
  CHECK(run(R"({"text":"a","original":[]})") == "record has fields of ids, expected text only");
  CHECK(run(R"({"text":"a","labels":[1]})") == "labels: 1 values, expected 0 as in ids");
  CHECK(run(R"({"text":"a","original_text":"b"})") == "record already has original_text");
  CHECK(run(R"({"text":"a","errors":[]})") == "record already has errors");
}

TEST_CASE("confusion sets in files") {
  const ConfusionSets read = ConfusionSets::parse("a\tb\r\n\nc\ta\td\n", "f");
  CHECK(read.others("a") == std::vector<std::string_view>{"b", "c", "d"});
  CHECK(read.others("d") == std::vector<std::string_view>{"c", "a"});
  CHECK(read.others("x").empty());
  CHECK(read.words().at("a") == std::vector<std::uint32_t>{0, 1});
  const auto problem = [](std::string_view text) {
    return message_of([&] { ConfusionSets::parse(text, "f"); });
  };
  CHECK(problem("") == "f: no set, expected lines of words separated by tabs");
  CHECK(problem("a\tb\na\n") ==
        "f: line 2: found 'a', expected at least two words separated by tabs");
  CHECK(problem("a\t") == "f: line 1: found '', expected words without white space");
  CHECK(problem("a\tb c") == "f: line 1: found 'b c', expected words without white space");
  CHECK(problem("a\tb\u00A0") == "f: line 1: found 'b\u00A0', expected words without white space");
  CHECK(problem("a\tb\ta") == "f: line 1: 'a' occurs twice, expected different words");
  CHECK(problem("a\t\xFF") == "f: line 1: not UTF-8, expected words separated by tabs");
  const TempFolder folder;
  write_file(folder / "sets", "a\tb\n");
  CHECK(ConfusionSets::read(folder / "sets").others("b").size() == 1);
}

TEST_CASE("options that do not go together") {
  const auto problem = [](const NoiseOptions& options) {
    return message_of<UsageError>([&] { make_noise(options); });
  };
  CHECK(problem({.rate = 1.5}) == "rate: found 1.5, expected 0 to 1");
  CHECK(problem({.mix = {}}) == "mix: found 0:0:0:0:0, expected weights of at least 0, not all 0");
  CHECK(problem({.mix = {1, -1, 1, 1, 0}}) ==
        "mix: found 1:-1:1:1:0, expected weights of at least 0, not all 0");
  CHECK(problem({.mix = {1, 1, 1, 1, 1}}) ==
        "mix: the weight of confusion has no effect without confusion");
  CHECK(problem({.confusion = sets("a\tb")}) ==
        "confusion has no effect: the weight of confusion in mix is 0");
}

}  // namespace
}  // namespace masque::records
