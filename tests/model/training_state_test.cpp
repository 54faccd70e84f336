#include "model/checkpoint/training_state.hpp"

#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "store/checkpoint_writer.hpp"
#include "support/temp_folder.hpp"
#include "tensor/convert.hpp"

namespace masque::model {
namespace {

TEST_CASE("a note of a run that was ended before its first step") {
  const test::TempFolder folder;
  const auto note_of = [&](const store::Metadata& metadata) {
    store::OutputWeights state;
    state.name = kTrainingStateName;
    state.metadata = metadata;
    store::write_checkpoint_file(folder / kTrainingStateName, state, {});
    return not_begun_note(folder.path());
  };
  CHECK_FALSE(not_begun_note(folder.path()));
  CHECK(note_of({{"masque.step", "0"}, {"masque.steps", "50"}}) ==
        "training had not begun (step 0 of 50)");
  CHECK_FALSE(note_of({{"masque.step", "1"}, {"masque.steps", "50"}}));
  CHECK_FALSE(note_of({{"masque.step", "0"}, {"masque.steps", "0"}}));  // it is finished
  CHECK_FALSE(note_of({{"masque.objective", "mlm"}}));                  // of ckpt-grow
  test::write_file(folder / kTrainingStateName, "no safetensors");
  CHECK_FALSE(not_begun_note(folder.path()));
}

TEST_CASE("values of a state: the same or rounded as a whole, and every flipped bit counts") {
  const std::vector<float> before{0.1F, -3.25F, 0, 1e-3F, 117, -0.7F};
  CHECK(are_values_of_state(before, before));
  const std::vector<double> numbers(before.begin(), before.end());
  for (const DType dtype :
       {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3, DType::kF8E5M2}) {
    CAPTURE(dtype_name(dtype));
    std::vector<std::byte> codes(*byte_count(dtype, {before.size()}));
    from_double(dtype, numbers, codes);
    std::vector<float> now(before.size());
    to_float(dtype, codes, now);
    CHECK(are_values_of_state(before, now));
    for (std::size_t i = 0; i < codes.size() * 8; ++i) {
      CAPTURE(i);
      std::vector<std::byte> flipped = codes;
      flipped[i / 8] ^= std::byte{1} << static_cast<int>(i % 8);
      to_float(dtype, flipped, now);
      REQUIRE_FALSE(are_values_of_state(before, now));
    }
  }
  std::vector<float> other = before;
  std::swap(other[0], other[5]);
  CHECK_FALSE(are_values_of_state(before, other));
}

}  // namespace
}  // namespace masque::model
