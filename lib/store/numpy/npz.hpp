// The members of an npz file: arrays by name.
#pragma once

#include <string>
#include <vector>

#include "store/numpy/npy.hpp"
#include "store/zip/zip_stream.hpp"

namespace masque::store {

/// What zip files may be that are npz.
inline constexpr ZipRules kNpzRules{.deflate = true, .ignore_case = false};

/// The members of `file`, all of which must be called NAME.npy, in the order of the directory.
/// Otherwise as read_zip_directory; members may be deflated.
Checked<std::vector<ZipMember>> read_npz_directory(const InputFile& file);

/// NAME of `member`, which is called NAME.npy.
std::string array_name(const ZipMember& member);

/// Whether the first member of the zip file `file`, which starts with the bytes `first`, is called
/// NAME.npy, or it has none: then it is an npz, and not one of the other formats that are made of
/// zip files. Throws InputError if it cannot be read.
bool looks_like_npz(const InputFile& file, Bytes first);

/// Returns the rule "npz-rest" unless the data after `header` fill an npz's member of `size` bytes
/// to its end, as they must.
std::optional<Violation> check_npz_rest(const NpyHeader& header, std::uint64_t size);

/// `violation`, reported with its `member` and its place in the file (of a deflated member, where
/// its data begins).
Violation in_member(Violation violation, const ZipMember& member);

}  // namespace masque::store
