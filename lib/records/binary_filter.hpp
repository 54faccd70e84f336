// Corruption of plain ids in binary files: uint16 or uint32, as llm.c and nanoGPT keep them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "records/binary_layout.hpp"
#include "records/corruption.hpp"

namespace masque::records {

/// What filter_binary reads and writes.
struct BinaryFilter {
  std::string input = "-";                       ///< a path; "-": standard input
  std::string output;                            ///< ids; sidecars stand next to it
  int bytes = 2;                                 ///< of an id: 2 or 4
  BinaryLayout layout = BinaryLayout::kNanogpt;  ///< of input and output
  std::size_t length = 512;                      ///< ids of a record; the last one may be shorter
  int threads = 0;                               ///< 0: all processors
  std::uint64_t first_record = 0;                ///< number of the first record
  TokenTable tokens = {};                        ///< a known size bounds the ids
};

/// The endings of the sidecars of OUTPUT, each with a dot.
std::vector<std::string> binary_sidecars();

/// Applies `corruption` to records of `filter.length` ids. Writes OUTPUT (ids, in the same layout)
/// and, as far as the corruption makes them, OUTPUT.labels, OUTPUT.pos, OUTPUT.original (int32, one
/// for each id), OUTPUT.lengths (uint32, one for each record, if lengths changed), OUTPUT.dropped
/// (int32 pairs of position and id). They are replaced together: OUTPUT never exists beside files
/// of another run. The same bytes for any number of threads. Throws InputError for ids that do not
/// fit the vocabulary or the layout, for a sidecar of another run that would stay, and for what
/// reading, writing and the corruption meet; UsageError for a length of 0, and for a vocabulary
/// that does not fit the bytes of an id. Memory: some pieces of 2^17 ids for each thread.
Tally filter_binary(const BinaryFilter& filter, const Corruption& corruption);

}  // namespace masque::records
