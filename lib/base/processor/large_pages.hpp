// Memory that is read again and again in whole: in large pages where the system has them.
#pragma once

#include <cstddef>
#include <memory>

namespace masque {

/// `bytes` bytes of zeros, aligned to 64, for data that stays: pieces share regions of 32 MB (or of
/// their own size, if that is more) that begin on a boundary of 2 MB and ask for large pages (Linux
/// `madvise`; a hint). A processor then finds weights that lie outside its caches in fewer steps. A
/// region goes back to the system with its last piece; memory that nobody touches costs nothing.
/// Thread-safe. Throws std::bad_alloc.
std::shared_ptr<std::byte> large_pages(std::size_t bytes);

}  // namespace masque
