// Settings of a run that goes on, compared with those it began with.
#include "train/run/settings.hpp"

#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"

namespace masque::train {
namespace {

TEST_CASE("a config.json is settings by their places") {
  const Settings settings = config_settings(
      R"({"a": 1, "b": {"c": "x", "d": [true, {"e": null}]}, "f": [], "g": {}})", "config.json");
  CHECK(settings == Settings{{"a", "1"},
                             {"b.c", "x"},
                             {"b.d[0]", "true"},
                             {"b.d[1].e", "null"},
                             {"f", "[]"},
                             {"g", "{}"}});
  CHECK(test::contains(test::message_of<InputError>([] { config_settings("{", "c/config.json"); }),
                       "c/config.json: byte "));
}

TEST_CASE("differences are named in both directions") {
  const Settings before{{"a", "1"}, {"b", "2"}};
  CHECK_FALSE(changed_settings(before, before).has_value());
  CHECK_FALSE(changed_settings({{"b", "2"}, {"a", "1"}}, before).has_value());
  const std::string rest =
      "; " + field("resume") + " cannot change settings: repeat the options of the run";
  CHECK(changed_settings({{"a", "1"}, {"b", "3"}}, before) == "the run used b 2 (now 3)" + rest);
  CHECK(changed_settings({{"a", "1"}}, before) == "the run used b 2 (now absent)" + rest);
  CHECK(changed_settings({{"a", "1"}, {"b", "2"}, {"c", "0"}}, before) ==
        "the run used c absent (now 0)" + rest);
  const std::string mask(1000, 'f');
  CHECK(changed_settings({{"a", mask}, {"b", "2"}}, before) ==
        "the run used a 1 (now " + std::string(80, 'f') + "…)" + rest);
}

}  // namespace
}  // namespace masque::train
