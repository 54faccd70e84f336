// Frequencies of scaled rotary positions against those of transformers 5.23 (LlamaRotaryEmbedding:
// hidden size 32, 2 heads, 64 positions, rope_theta 500).
#include "model/rotary_config.hpp"

#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/message.hpp"
#include "support/near.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

using Numbers = std::vector<double>;

FamilyConfig config_of(const std::string& text) {
  const test::TempFolder folder;
  test::write_file(folder / "config.json", text);
  return FamilyConfig(store::ModelConfig::read(folder / "config.json"));
}

RotaryDesign read(const std::string& parameters, const std::string& name = "rope_scaling") {
  std::vector<std::string> notes;
  const std::string text = R"({"rope_theta":500.0,")" + name + "\":" + parameters + "}";
  return read_rotary(config_of(text), {}, 16, 64, notes);
}

void check(const RotaryDesign& rotary, double factor, const Numbers& wanted) {
  CHECK(rotary.factor == doctest::Approx(factor).epsilon(1e-9));
  CHECK(test::far_off(rotary.frequencies, wanted, 0, 3e-7) == "");
  // They are floats, as in transformers.
  for (const double f : rotary.frequencies) CHECK(f == static_cast<double>(static_cast<float>(f)));
}

const Numbers kPlain{1.0,
                     0.4598632752895355,
                     0.2114742398262024,
                     0.09724924713373184,
                     0.04472136124968529,
                     0.020565712824463844,
                     0.009457415901124477,
                     0.004349118564277887};

TEST_CASE("frequencies without scaling, wherever theta stands") {
  check(read("null"), 1, kPlain);
  check(read(R"({"type":"default"})"), 1, kPlain);
  check(read(R"({"rope_type":"default","rope_theta":500})", "rope_parameters"), 1, kPlain);
  check(read(R"({"rope_type":"dynamic","factor":2})"), 1, kPlain);
}

TEST_CASE("the base of frequencies that were made in float") {
  for (const double theta : {10000.0, 160000.0, 500000.0, 1000000.0}) {
    for (const Index size : {32, 64, 96, 128}) {
      std::vector<std::string> notes;
      const auto config = config_of(fmt::format(R"({{"rope_theta":{}}})", theta));
      const RotaryDesign rotary = read_rotary(config, {}, size, 64, notes);
      CHECK(rotary_base(rotary.frequencies, 1e-6) == theta);
    }
  }
}

TEST_CASE("linear and llama3") {
  check(read(R"({"rope_type":"linear","factor":3.0})"), 1,
        {0.3333333432674408, 0.15328775346279144, 0.07049141079187393, 0.032416414469480515,
         0.01490712072700262, 0.006855237763375044, 0.0031524719670414925, 0.0014497061492875218});
  check(read(R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,
                 "original_max_position_embeddings":40})"),
        1,
        {1.0, 0.3160230815410614, 0.04779324308037758, 0.01215615589171648, 0.005590170156210661,
         0.0025707141030579805, 0.0011821769876405597, 0.0005436398205347359});
}

TEST_CASE("yarn, with its own factor, scales, and bounds") {
  check(read(R"({"rope_type":"yarn","factor":4,"original_max_position_embeddings":16})"),
        1.138629436111989,
        {1.0, 0.28741455078125, 0.0528685599565506, 0.02431231178343296, 0.011180340312421322,
         0.005141428206115961, 0.0023643539752811193, 0.0010872796410694718});
  check(read(R"({"rope_type":"yarn","factor":4,"original_max_position_embeddings":16,
                 "beta_fast":4,"beta_slow":0.5,"truncate":false,"mscale":0.7,
                 "mscale_all_dim":0.3})"),
        1.0532376815143234,
        {1.0, 0.2952757477760315, 0.060098692774772644, 0.02431231178343296, 0.011180340312421322,
         0.005141428206115961, 0.0023643539752811193, 0.0010872796410694718});
  check(read(R"({"rope_type":"yarn","factor":4,"original_max_position_embeddings":32,
                 "attention_factor":1.25})"),
        1.25,
        {1.0, 0.34489744901657104, 0.1057371199131012, 0.02431231178343296, 0.011180340312421322,
         0.005141428206115961, 0.0023643539752811193, 0.0010872796410694718});
}

TEST_CASE("what is wrong with rope parameters is named") {
  using test::contains;
  using test::message_of;
  CHECK(contains(message_of([] { read(R"({"rope_type":"su"})"); }), "rope_type is \"su\""));
  CHECK(contains(message_of([] { read(R"({"type":"linear","factor":0})"); }), "factor is 0"));
  CHECK(contains(message_of([] { read("7"); }), "rope_scaling (byte"));
  CHECK(contains(message_of([] { read(R"({"rope_type":"llama3","high_freq_factor":0.5})"); }),
                 "high_freq_factor is 0.5, expected more than low_freq_factor"));
  CHECK(contains(message_of([] { read(R"({"rope_type":"yarn","factor":2,"rope_theta":1})"); }),
                 "rope_theta is 1, expected more than 1 with yarn"));
  CHECK(contains(message_of([] { read(R"({"rope_theta":1e200})"); }),
                 "rope_theta is 1e200, expected 1e-30 to 1e30"));
}

}  // namespace
}  // namespace masque::model
