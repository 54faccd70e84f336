// Word errors, n-best lists, minimal pairs.
#include "evaluate/score/nbest.hpp"

#include <cmath>
#include <tuple>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "evaluate/score/minimal_pairs.hpp"
#include "evaluate/statistics/summary.hpp"
#include "support/message.hpp"

namespace masque::evaluate {
namespace {

using test::message_of;

std::vector<std::uint64_t> edits(std::string_view reference, std::string_view hypothesis) {
  const WordErrors e = word_errors(reference, hypothesis);
  return {e.words, e.substitutions, e.deletions, e.insertions};
}

TEST_CASE("word errors of small cases") {
  using List = std::vector<std::uint64_t>;
  CHECK(edits("a b c", "a b c") == List{3, 0, 0, 0});
  CHECK(edits("a b c", "a x c") == List{3, 1, 0, 0});
  CHECK(edits("a b c", "a c") == List{3, 0, 1, 0});
  CHECK(edits("a c", "a b c") == List{2, 0, 0, 1});
  CHECK(edits("", "a b") == List{0, 0, 0, 2});
  CHECK(edits("a b", "") == List{2, 0, 2, 0});
  CHECK(edits("the cat sat on the mat", "the cat on a mat mat") == List{6, 3, 0, 0});
  CHECK(edits("a b c d e f", "a c d x f g h") == List{6, 1, 1, 2});
  CHECK(edits("  a \t b\r\n", "a b") == List{2, 0, 0, 0});
  // Three edits are enough whichever way; this is the one that is preferred.
  CHECK(edits("a b c d", "b c d e") == List{4, 0, 1, 1});
  CHECK(word_errors("a b", "x").rate() == 1.0);
  CHECK(std::isnan(word_errors("", "x").rate()));
}

Utterance list(std::vector<std::tuple<const char*, double, double>> hypotheses) {
  Utterance u{"u", "a b", {}};
  for (const auto& [text, score, language] : hypotheses)
    u.hypotheses.push_back({text, score, language, 2});
  return u;
}

TEST_CASE("the highest sum wins, the first of equal ones") {
  const Utterance u = list({{"x", -1, -8}, {"a b", -2, -4}, {"y", -2, -4}});
  CHECK(choose(u, 0, {}) == 0);
  CHECK(choose(u, 0.2, {}) == 0);
  CHECK(choose(u, 0.25, {}) == 0);  // −3 and −3: equal
  CHECK(choose(u, 0.3, {}) == 1);
  CHECK(choose(u, 0.5, {LengthNormalization::Kind::kPower, 1}) == 0);  // −3 and −3 again
  const std::vector<Utterance> all{u};
  CHECK(errors_at(all, 0, {}).errors() == 2);
  CHECK(errors_at(all, 1, {}).errors() == 0);
  CHECK(oracle_errors(all).errors() == 0);
}

TEST_CASE("length normalisation") {
  CHECK(parse_length_normalization("none").divisor(7) == 1);
  CHECK(parse_length_normalization("gnmt:1").divisor(7) == 2);
  CHECK(parse_length_normalization("power:0.5").divisor(9) == doctest::Approx(3));
  CHECK(parse_length_normalization("power:1").divisor(0) == 1);
  for (const char* bad : {"", "gnmt", "gnmt:", "gnmt:x", "power:-1", "other:1"})
    CHECK_THROWS_AS(parse_length_normalization(bad), UsageError);
}

TEST_CASE("lists are read from lines and from both kinds of JSON") {
  const auto tsv = read_nbest(
      "utterance\tscore\thypothesis\treference\nu1\t-1.5\ta b\ta c\nu1\t-2\ta c\ta c\nu2\t0\t\tx\n",
      "t");
  REQUIRE(tsv.size() == 2);
  CHECK(tsv[0].hypotheses.size() == 2);
  CHECK(tsv[0].hypotheses[1].score == -2);
  CHECK(tsv[1].reference == "x");
  const auto espnet =
      read_nbest(R"({"utts":{"u1":{"output":[{"rec_text":"▁A▁B<eos>","score":-1,"text":"A C"},)"
                 R"({"rec_text":"A<space>C <eos>","score":-3.5,"text":"A C"}],"utt2spk":"s"}}})",
                 "e");
  REQUIRE(espnet.size() == 1);
  CHECK(espnet[0].reference == "A C");
  CHECK(espnet[0].hypotheses[0].text == "A B");
  CHECK(espnet[0].hypotheses[1].text == "A C");
  CHECK(espnet[0].hypotheses[1].score == -3.5);
  const auto scoring = read_nbest(
      R"({"u1":{"ref":"a","hyp_1":{"score":-1,"text":"b"},"hyp_2":{"score":-2,"text":"a"}}})", "m");
  CHECK(scoring.at(0).hypotheses.at(1).text == "a");

  const auto problem = [](const char* text) {
    return message_of<InputError>([&] { read_nbest(text, "f"); });
  };
  CHECK(problem("u\tx\ta\tb\n") == "f: line 1: found 'x', expected a score");
  CHECK(problem("u\t1\n") ==
        "f: line 1: 2 fields, expected 3 or 4: utterance, score, hypothesis and (optional) "
        "reference");
  CHECK(problem("u\t1\ta\tb\nu\t1\ta\tc\n").starts_with("f: line 2: the reference differs"));
  CHECK(problem("u1\t-1\ta\xff\ta\n") == "f: line 1: not valid UTF-8");
  CHECK(problem("u1\t-1\ta\ta\nu\xc3\t-1\ta\ta\n") == "f: line 2: not valid UTF-8");
  CHECK(problem("u\t-1\ta\ta\nv\t-1\ta\ta\nu\t-1\tb\ta\n") ==
        "f: utterance 'u' occurs twice, expected all its hypotheses in one list");
  CHECK(problem(R"({"utts":{"u":{"output":[{"rec_text":"A","score":-1,"text":"A"},)"
                R"({"rec_text":"B","score":-2,"text":"B"}]}}})") ==
        "f: utterance 'u': hypotheses with different references (text), expected one reference per "
        "utterance");
  CHECK(problem("") == "f: no utterances, expected n-best lists");
  CHECK(problem(R"({"utts":{"u":{"output":[]}}})") ==
        "f: utterance 'u': no hypothesis, expected at least one");
  CHECK(problem(R"({"utts":{"u":{}}})") == "f: utterance 'u': no output, expected one");
}

TEST_CASE("lists of new audio have no references") {
  for (const char* text :
       {"utterance\tscore\thypothesis\nu1\t-1\ta b\nu1\t-2\ta c\nu2\t0\t\n",
        R"({"utts":{"u1":{"output":[{"rec_text":"a b","score":-1},{"rec_text":"a c","score":-2}]},)"
        R"("u2":{"output":[{"rec_text":"","score":0}]}}})",
        R"({"u1":{"hyp_1":{"score":-1,"text":"a b"},"hyp_2":{"score":-2,"text":"a c"}},)"
        R"("u2":{"hyp_1":{"score":0,"text":""}}})"}) {
    const std::vector<Utterance> lists = read_nbest(text, "f");
    CHECK_FALSE(has_references(lists));
    REQUIRE(lists.size() == 2);
    REQUIRE(lists[0].hypotheses.size() == 2);
    CHECK(lists[0].hypotheses[1].text == "a c");
    CHECK(lists[1].hypotheses.at(0).text.empty());
  }
  CHECK(has_references(read_nbest("u\t1\ta\t\n", "f")));
  const auto problem = [](const char* text) {
    return message_of<InputError>([&] { read_nbest(text, "f"); });
  };
  CHECK(problem("u\t1\ta\nv\t1\ta\tb\n") ==
        "f: utterance 'v' has a reference, expected none as for utterance 'u'");
  CHECK(problem(R"({"u":{"ref":"a","hyp_1":{"score":-1,"text":"b"}},"v":{"hyp_1":{"score":-1,)"
                R"("text":"b"}}})") ==
        "f: utterance 'v' has no reference, expected one as for utterance 'u'");
  CHECK(problem("u\t1\ta\tb\nu\t1\tb\n").starts_with("f: line 2: the reference differs"));
}

TEST_CASE("a pair is right only if the good sentence scores higher") {
  const MinimalPair blimp = parse_minimal_pair(
      R"({"sentence_good":"A.","sentence_bad":"B.","UID":"p","field":"syntax","linguistics_term":"t"})");
  CHECK(blimp.uid == "p");
  CHECK(blimp.term == "t");
  const MinimalPair small =
      parse_minimal_pair(R"({"good":"A.","bad":"B.","uid":"q","field":"syntax"})");
  PairTally tally;
  tally.add(blimp, -1, -2);
  tally.add(blimp, -2, -2);
  tally.add(small, -3, -2);
  const auto rows = tally.rows();
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].name == "p");
  CHECK(rows[0].n == 2);
  CHECK(rows[0].accuracy() == 0.5);
  CHECK(rows[1].accuracy() == 0);
  CHECK(level_name(rows[2].level) == "term");
  CHECK(rows[3].name == "syntax");
  CHECK(rows[4].n == 3);
  CHECK(rows[4].accuracy() == 1 / 3.0);
  PairTally sum;
  for (const auto& row : rows) sum.add(row);
  for (int i = 0; i < 57; ++i) sum.add(small, i < 28 ? -1 : -3, -2);
  CHECK(sum.rows()[4].accuracy() == 29 / 60.0);  // a running mean is off in the last place
  CHECK(message_of<InputError>([] { parse_minimal_pair(R"({"good":"A"})"); }) ==
        "no sentence_bad or bad, expected a sentence");
  CHECK_THROWS_AS(parse_minimal_pair("x"), InputError);
}

TEST_CASE("the sign test is the exact binomial one") {
  // Sums of binomial coefficients as fractions.
  CHECK(sign_test(24, 0) == 1.1920928955078125e-07);
  CHECK(sign_test(10, 14) == doctest::Approx(0.5412561893463135).epsilon(1e-13));
  CHECK(sign_test(420, 300) == doctest::Approx(8.807756168615078e-06).epsilon(1e-13));
  CHECK(sign_test(940, 1100) == doctest::Approx(0.0004283670554023973).epsilon(1e-10));
  CHECK(sign_test(7, 7) == 1);
  CHECK(sign_test(0, 0) == 1);
}

TEST_CASE("two models on the same pairs are counted where they disagree") {
  const MinimalPair pair = parse_minimal_pair(R"({"good":"A.","bad":"B.","uid":"q"})");
  const MinimalPair other = parse_minimal_pair(R"({"good":"A.","bad":"B.","uid":"r"})");
  PairComparison comparison;
  comparison.add(pair, true, false);
  comparison.add(pair, true, true);
  comparison.add(pair, false, true);
  comparison.add(other, true, false);
  const auto rows = comparison.rows();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].name == "q");
  CHECK(rows[0].only_first == 1);
  CHECK(rows[0].only_second == 1);
  CHECK(rows[2].n == 4);
  CHECK(rows[2].first == 3);
  CHECK(rows[2].second == 2);
  CHECK(rows[2].only_first == 2);
  CHECK(rows[2].p() == sign_test(2, 1));
}

}  // namespace
}  // namespace masque::evaluate
