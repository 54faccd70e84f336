#include "probe/score/sequence.hpp"

#include "base/error.hpp"

namespace masque::probe {

void check_one_stream(const Sequence& sequence, const model::Design& design) {
  if (sequence.mask && design.streams == model::Streams::kTwo)
    throw InputError("the sequence has its own mask, expected none for a model of two streams");
}

}  // namespace masque::probe
