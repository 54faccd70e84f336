// s/PATTERN/REPLACEMENT/: what it makes of texts, and what is no substitution.
#include "cli/substitution.hpp"

#include <doctest/doctest.h>

#include "support/message.hpp"

namespace masque::cli {
namespace {

TEST_CASE("every match is replaced, groups too") {
  CHECK(Substitution("s/a/b/").apply("banana") == "bbnbnb");
  CHECK(Substitution("s|(.)/(.)|$2/$1|").apply("x a/b") == "x b/a");
  CHECK(Substitution("s/^a\\.//").apply("a.b") == "b");
  CHECK_FALSE(Substitution("s/x/y/").apply("abc").has_value());
}

TEST_CASE("a replacement names what was found") {
  CHECK(Substitution("s/b(c)?/[$&|$1|$2|$$|$`|$'|$0|$01|$x|$/").apply("abcb") ==
        "a[bc|c||$|a|b|bc|c|$x|$[b|||$|||b||$x|$");
  CHECK(Substitution("s/.*/b/").apply("ab") == "bb");
  CHECK(Substitution("s/x*/-/").apply("axb") == "-a--b-");
  CHECK(Substitution("s/^/a./").apply("") == "a.");
  CHECK(Substitution(R"(s/(\w)\.(\d+)\.(?=\w)/$1[$2]./)").apply("layer.10.bias") ==
        "layer[10].bias");
  CHECK(Substitution("s/[[:upper:]]+?/x/").apply("ABc") == "xxc");
  CHECK(Substitution("s/.$/y/").apply("a\xC3\xA9") == "a\xC3y");
}

TEST_CASE("an expression that would take for ever is given up") {
  const Substitution slow("s/(a+)+b/c/");
  CHECK(test::message_of<UsageError>([&] {
          slow.apply(std::string(40, 'a'));
        }).starts_with("'s/(a+)+b/c/': takes too long on a text of 40 bytes"));
}

TEST_CASE("a word that is one, and one that is not") {
  CHECK(Substitution::is_one("s/a/b/"));
  CHECK(Substitution::is_one("s|a|b|"));
  CHECK_FALSE(Substitution::is_one("s=t"));
  CHECK_FALSE(Substitution::is_one("s"));
}

TEST_CASE("what is wrong with it is reported") {
  const auto why = [](const std::string& word) {
    return test::message_of<UsageError>([&] { Substitution{word}; });
  };
  for (const char* word : {"s/a/b", "s/a", "s/", "s//b/", "s/a/b/g", "s|a|b/"})
    CHECK(test::contains(why(word), "expected s/PATTERN/REPLACEMENT/"));
  CHECK(test::contains(why("s/(/b/"), "'s/(/b/': "));
  CHECK(test::contains(
      test::message_of<UsageError>([] { Substitution("s/a/b/").apply(std::string(1025, 'a')); }),
      "a name of 1025 bytes"));
}

}  // namespace
}  // namespace masque::cli
