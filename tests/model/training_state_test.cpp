#include "model/checkpoint/training_state.hpp"

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "store/checkpoint_writer.hpp"
#include "support/temp_folder.hpp"

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

}  // namespace
}  // namespace masque::model
