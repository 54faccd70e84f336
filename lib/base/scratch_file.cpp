#include "base/scratch_file.hpp"

#include <cerrno>

#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "base/os.hpp"
#include "base/output_file.hpp"
#include "base/roll_back.hpp"

namespace masque {

ScratchFile::ScratchFile(const std::string& path) : path_(path) {
  const Descriptor folder = open_folder(folder_of(path));
  // For a moment it has a name. A run that is killed just then leaves it to the next one.
  const std::string name = staging_name(base_name(path) + ".scratch");
  fd_ = open_staging(folder.get(), name, false, path_);
  if (os::unlink_at(folder.get(), name.c_str()) != 0) throw system_error(path_, "writing", errno);
  if (os::truncate(fd_.get(), 0) != 0) throw system_error(path_, "writing", errno);
}

void ScratchFile::append(std::string_view text) {
  const InterruptsPutOff whole;
  write_at(fd_.get(), size_, as_bytes(text), path_);
  size_ += text.size();
}

void ScratchFile::read(std::uint64_t offset, MutableBytes out) const {
  MASQUE_CHECK(offset <= size_ && out.size() <= size_ - offset);
  throw_if_interrupted();
  if (const int error = read_quietly(fd_.get(), offset, out))
    throw system_error(path_, "reading", error);
}

}  // namespace masque
