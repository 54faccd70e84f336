// Corruption of plain ids in binary files: uint16 or uint32, as llm.c and nanoGPT keep them.
#pragma once

#include <functional>
#include <string>

#include "records/binary_layout.hpp"
#include "records/corruption.hpp"

namespace masque::records {

struct BinaryFilter {
  std::string input = "-";
  std::string output;  ///< ids; sidecars stand next to it
  int bytes = 2;       ///< of an id: 2 or 4
  BinaryLayout layout = BinaryLayout::kNanogpt;
  std::size_t length = 512;  ///< ids of a record; the last one may be shorter
  int threads = 0;
  std::uint64_t first_record = 0;
  TokenTable tokens = {};
};

/// Applies a corruption to records of `length` ids. Writes OUTPUT (ids, in the same layout) and, as
/// far as the corruption makes them, OUTPUT.labels, OUTPUT.pos, OUTPUT.original (int32, one for
/// each id), OUTPUT.lengths (uint32, one for each record, if lengths changed), OUTPUT.dropped
/// (int32 pairs of position and id). They are replaced together: OUTPUT never exists beside files
/// of another run. The same bytes for any number of threads. Throws InputError for ids that do not
/// fit the vocabulary or the layout.
Tally filter_binary(const BinaryFilter& filter, const Corruption& corruption);

}  // namespace masque::records
