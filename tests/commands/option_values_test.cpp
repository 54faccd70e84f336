// What several commands read from the values of options.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "commands/number_list.hpp"
#include "commands/selection_options.hpp"
#include "commands/sequences.hpp"
#include "commands/training_options.hpp"
#include "support/message.hpp"

namespace masque::commands {
namespace {

using test::message_of;

template <class Call>
std::string refusal(Call&& call) {
  return message_of<UsageError>(std::forward<Call>(call));
}

TEST_CASE("a list of numbers has both ends of its range, and each once if it says so") {
  CHECK(parse_numbers("rates", "0.15,0,1", 0, 1) == std::vector<double>{0.15, 0, 1});
  CHECK(parse_numbers("rates", "0.5,0.50", 0, 1) == std::vector<double>{0.5, 0.5});
  CHECK(refusal([] { parse_numbers("rates", "0.4,0.1,0.40", 0, 1, Repeats::kRefused); }) ==
        "rates: found 0.4 twice, expected different numbers");
  CHECK(refusal([] { parse_numbers("rates", "0.4,1.5", 0, 1); }) ==
        "rates: found '1.5', expected numbers from 0 to 1, separated by commas");
  for (const char* bad : {"", "0.1,", ",0.1", "0.1 0.2", "nan", "-0.1", "x", "1e-3x"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_numbers("rates", bad, 0, 1), UsageError);
  }
}

TEST_CASE("records from a terminal are refused before the model is opened") {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(master >= 0);
  REQUIRE(::grantpt(master) == 0);
  REQUIRE(::unlockpt(master) == 0);
  const int terminal = ::open(::ptsname(master), O_RDONLY | O_NOCTTY);
  REQUIRE(terminal >= 0);
  const int own = ::dup(STDIN_FILENO);
  REQUIRE(::dup2(terminal, STDIN_FILENO) == STDIN_FILENO);
  const cli::Command command("stats", "measures");
  SequenceOptions options;
  const auto message = [&] { return refusal([&] { check_sequences(options, command); }); };
  const std::string of_text = message();
  options.records = "-";
  const std::string of_records = message();
  options.records = "records.jsonl";
  CHECK_NOTHROW(check_sequences(options, command));
  ::dup2(own, STDIN_FILENO);
  for (const int fd : {own, terminal, master}) ::close(fd);
  CHECK(of_text.find("standard input is a terminal") != std::string::npos);
  CHECK(of_records == of_text);
}

TEST_CASE("shares stand between colons, as many as are wanted") {
  CHECK(parse_shares("split", "0.8:0.1:0.1", 3, 3) == std::vector<double>{0.8, 0.1, 0.1});
  CHECK(parse_shares("rate", "0.2", 1, 2) == std::vector<double>{0.2});
  CHECK(parse_shares("rate", "0.2:0.4:", 1, 2) == std::vector<double>{0.2, 0.4});
  CHECK(refusal([] { parse_shares("split", "1:2", 3, 3); }) ==
        "split: found 2 numbers, expected 3");
  CHECK(refusal([] { parse_shares("rate", "1:2:3", 1, 2); }) ==
        "rate: found 3 numbers, expected from 1 to 2");
  for (const char* bad : {"", ":", "0.1::0.2", "-0.1", "nan", "0.1,0.2"}) {
    CAPTURE(bad);
    CHECK(refusal([&] { parse_shares("rate", bad, 1, 2); }) ==
          "rate: found '" + std::string(bad) + "', expected numbers from 0, separated by colons");
  }
}

TEST_CASE("a time is a number with a unit or without") {
  CHECK(parse_seconds("90") == 90);
  CHECK(parse_seconds("120s") == 120);
  CHECK(parse_seconds("1.5m") == 90);
  CHECK(parse_seconds("2h") == 7200);
  CHECK(parse_seconds("1e9") == 1e9);
  for (const char* bad : {"", "s", "0", "0m", "-1s", "5 m", "5min", "1d", "nan", "1e6h", "2e9"}) {
    CAPTURE(bad);
    CHECK(!find_seconds(bad));
    CHECK(refusal([&] { parse_seconds(bad); }) ==
          "budget: found '" + std::string(bad) + "', expected a time: 120s, 5m or 2h");
  }
}

TEST_CASE("a selection has one rate or two, and the seed") {
  SelectionChoice choice;
  choice.selection.unit = records::Unit::kWord;
  const records::SelectionOptions usual = selection_of(choice, 7);
  CHECK(usual.rate == 0.15);
  CHECK(usual.rate_high < 0);
  CHECK(usual.seed == 7);
  CHECK(usual.unit == records::Unit::kWord);
  choice.rate = "0.2:0.4";
  const records::SelectionOptions drawn = selection_of(choice, 0);
  CHECK(drawn.rate == 0.2);
  CHECK(drawn.rate_high == 0.4);
  choice.rate = "0.2:0.4:0.6";
  CHECK_THROWS_AS(selection_of(choice, 0), UsageError);
}

TEST_CASE("corruptions are what their options say") {
  const records::MlmOptions mlm = mlm_of({.split = "0.5:0.3:0.2", .draws = 4}, 9);
  CHECK(std::array{mlm.mask, mlm.keep, mlm.random} == std::array{0.5, 0.3, 0.2});
  CHECK(mlm.draws == 4);
  CHECK(mlm.selection.seed == 9);
  const records::PrefixOptions prefix = prefix_of({.source = "0.3", .mix = "1:2:3:4"});
  CHECK(prefix.low == 0.3);
  CHECK(prefix.high == 0.3);
  CHECK(prefix.mix == std::array<double, 4>{1, 2, 3, 4});
  CHECK(!similar_file_of("mask"));
  CHECK(similar_file_of("similar:a:b") == "a:b");
  CHECK(refusal([] { similar_file_of("maks"); }) == "replace: expected mask or similar:FILE");
}

TEST_CASE("what belongs to DropToken has no effect without it") {
  const records::DropOptions none = drop_of({});
  CHECK(none.rate == 0);
  CHECK(none.min_keep == 1);
  CHECK(drop_of({.rate = 0.5, .min_keep = 3, .renumber = true}).min_keep == 3);
  CHECK_NOTHROW(check_drop({.rate = 0.0, .min_keep = 3, .renumber = true}, false));
  CHECK_NOTHROW(check_drop({.min_keep = 3}, true));
  CHECK(refusal([] { check_drop({.min_keep = 3}, false); }) ==
        "min_keep has no effect without drop");
  CHECK(refusal([] { check_drop({.min_keep = 3, .renumber = true}, true); }) ==
        "renumber has no effect without drop");
}

TEST_CASE("an option that nothing reads is refused if it was given") {
  cli::Command command("tool", "");
  double rate = 0.5;
  bool deep = false;
  command.option("--rate", "R", rate, {0, 1}, "").flag("--deep-layers", deep, "");
  command.action([](cli::Session&) { return cli::ExitCode::kDone; });
  std::string text;
  command.parse({"--rate", "0.25"}, text);
  CHECK(rate == 0.25);
  CHECK_NOTHROW(refuse_unread(command, {"deep-layers"}, "without a reason"));
  CHECK(refusal([&] {
          refuse_unread(command, {"deep-layers", "rate"}, "with nothing");
        }) == "rate has no effect with nothing; remove it");
}

}  // namespace
}  // namespace masque::commands
