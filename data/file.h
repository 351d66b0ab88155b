// Whole files: read with a clear error, written so that the name always holds a whole one.
#ifndef REGARD_DATA_FILE_H_
#define REGARD_DATA_FILE_H_

#include <string>
#include <string_view>

namespace regard::data {

// All bytes of a file. Throws regard::Error "PATH: ..." when it is missing, a folder or cannot be read.
std::string ReadFile(const std::string& path);

// Writes pieces one after the other under a temporary name beside path, syncs, renames. The last good file
// stays when anything fails. Throws regard::Error "PATH: ...".
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();  // removes the temporary file when Commit was not reached
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void Write(std::string_view bytes);
  void Commit();

 private:
  [[noreturn]] void Fail(const char* doing) const;
  std::string path_, temporary_;
  int descriptor_ = -1;
};

// The same in one call.
void WriteFileAtomically(const std::string& path, std::string_view bytes);

}  // namespace regard::data

#endif  // REGARD_DATA_FILE_H_
