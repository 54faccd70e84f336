// PyTorch's zip files: the rules are in store/torch/torch_zip.hpp.
#include "store/torch/torch_zip.hpp"
#include "store/zip/zip_checksums.hpp"
#include "store/zip/zip_stream.hpp"

namespace masque::store {

namespace {

std::vector<Patch> in_place(const PatchedFile& file) {
  return zip_checksums(file, {.deflate = true});
}

const FileFormat kFormat{.name = "torch",
                         .writer = "torch",
                         .recognise = is_torch_zip,
                         .read = read_torch_zip,
                         .check_sums = check_zip_sums,
                         .in_place = in_place};
const FormatRegistration kRegistration{kFormat};

}  // namespace

}  // namespace masque::store
