#include "probe/score/sequence.hpp"

#include "base/error.hpp"

namespace masque::probe {

void check_one_stream(const Sequence& sequence, const model::Design& design) {
  if (sequence.mask && design.streams == model::Streams::kTwo)
    throw InputError("a mask of one sequence for a model of two streams, expected none");
}

}  // namespace masque::probe
