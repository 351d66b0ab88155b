#include "data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/base/error.h"

namespace regard::data {
namespace {

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace

std::string ReadFile(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0) throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  struct stat status {};
  if (::fstat(file.value, &status) == 0 && S_ISDIR(status.st_mode)) {
    throw Error(fmt::format("{}: a folder; expected a file", path));
  }
  std::string bytes;
  // A size read from a regular file is a hint only: pipes have none, and the file may grow.
  std::size_t block = S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) + 1 : 65536;
  for (;;) {
    const std::size_t old = bytes.size();
    bytes.resize(old + block);
    const ssize_t got = ::read(file.value, bytes.data() + old, block);
    bytes.resize(old + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && errno != EINTR) {
      throw Error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    }
    if (got == 0) return bytes;
    block = 65536;
  }
}

AtomicFile::AtomicFile(const std::string& path)
    : path_(path), temporary_(fmt::format("{}.tmp{}", path, ::getpid())) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) Fail("cannot be written");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::Fail(const char* doing) const {
  throw Error(fmt::format("{}: {}: {}", path_, doing, std::strerror(errno)));
}

void AtomicFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) Fail("cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
}

void AtomicFile::Commit() {
  if (::fsync(descriptor_) != 0) Fail("cannot be written");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) Fail("cannot be renamed");
  ::close(descriptor_);
  descriptor_ = -1;
  // The new name lasts only once its folder is synced; file systems that cannot sync a folder keep it anyway.
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  const Descriptor parent{::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (parent.value >= 0) ::fsync(parent.value);
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.Write(bytes);
  file.Commit();
}

}  // namespace regard::data
