#include "evaluate/score/sequence.hpp"

#include "base/error.hpp"
#include "mask/builtin.hpp"

namespace masque::evaluate {

void check_one_stream(const Sequence& sequence, const model::Design& design) {
  if (sequence.mask && design.streams == model::Streams::kTwo)
    throw InputError("the sequence has its own mask, expected none for a model of two streams");
}

mask::Mask hiding(Index length, const std::vector<Index>& hidden, bool self) {
  const mask::Lengths lengths{length, length};
  std::vector<bool> seen(static_cast<std::size_t>(length), true);
  for (const Index t : hidden) seen[static_cast<std::size_t>(t)] = false;
  const mask::Mask others = mask::columns(lengths, seen);
  return self ? others | mask::band(lengths, 0, 0) : others;
}

}  // namespace masque::evaluate
