// Mixers against scripts/goldens/mixers.py.
#include <cmath>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "nn/mixer_example.hpp"
#include "support/near.hpp"
#include "support/table.hpp"

namespace masque::test {
namespace {

void fill(int array, Matrix<double>& x) {
  double k = 0;
  for (double& element : x.span()) {
    element = 0.7 * std::sin(0.37 * k * k + 1.3 * k + 0.9 * array);
    ++k;
  }
}

TEST_CASE("every mixer computes what a second implementation does") {
  nn::MixerShape shape = small_shape();
  shape.tokens = 7;
  shape.kernel_size = 4;
  std::set<std::string> seen;
  for (const Row& row : read_table(MASQUE_TEST_DATA "/nn/mixers.tsv", 5)) {
    CAPTURE(row[0]);
    CAPTURE(row[2]);
    CAPTURE(row[3]);
    seen.insert(row[0]);
    const Index tokens = std::stoll(row[3]);
    MixerExample<double> example(mixer(row[0]), shape, tokens);
    std::string listed;
    int array = 0;
    fill(array, example.x);
    for (const nn::MixerParameter& parameter : example.mixer.parameters(shape)) {
      if (!listed.empty()) listed += ',';
      listed += fmt::format("{}:{}:{}", parameter.name, parameter.rows, parameter.columns);
      fill(array + 1, example.parameters[static_cast<std::size_t>(array)]);
      ++array;
    }
    CHECK((listed.empty() ? "-" : listed) == row[1]);
    std::vector<double> expected;
    for (const std::string& number : split(row[4], ' ')) expected.push_back(std::stod(number));
    const MaskOf mask(row[2], tokens);
    CHECK(far_off(example.forward(mask.blocks()).span(), expected, 1e-11, 1e-11) == "");
  }
  CHECK(seen.size() == nn::mixers().size());
}

}  // namespace
}  // namespace masque::test
