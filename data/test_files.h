// A folder for each test, and the shared data.
#ifndef REGARD_DATA_TEST_FILES_H_
#define REGARD_DATA_TEST_FILES_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace regard::data {

// A temporary folder, removed at the end.
class TestFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "regard_data_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, std::string_view bytes) const {
    std::filesystem::remove(Path(name));  // some file systems sync a file that is cut and written again
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  std::string Read(const std::string& name) const {
    std::ostringstream bytes;
    bytes << std::ifstream(Path(name), std::ios::binary).rdbuf();
    return bytes.str();
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

// The message of the regard::Error that run throws; "no error" when it throws none.
inline std::string ErrorOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Runs read on every beginning of good bytes and on many copies with bytes changed: it may throw
// regard::Error, nothing else, and must not crash.
inline void ReadBroken(const std::string& good, const std::function<void(const std::string&)>& read,
                       int changes = 2000) {
  const auto attempt = [&](const std::string& bytes) {
    try {
      read(bytes);
    } catch (const Error&) {
    }
  };
  for (std::size_t length = 0; length < good.size();
       length += 1 + 2 * good.size() / static_cast<std::size_t>(changes)) {
    attempt(good.substr(0, length));
  }
  std::uint32_t random = 1;
  const auto next = [&random] { return random = random * 1664525u + 1013904223u; };
  for (int i = 0; i < changes; ++i) {
    std::string bytes = good;
    for (std::uint32_t j = 0, n = 1 + (next() >> 30); j < n; ++j) {
      const std::uint32_t value = next() >> 24;
      bytes[(next() >> 4) % bytes.size()] = static_cast<char>(i % 4 == 0 ? 0xFF : value);
    }
    attempt(bytes);
  }
}

inline constexpr const char* kNoSharedData =
    "skipped because the shared data (" REGARD_SHARED_DIR ") is absent";

// Path of a shared file; empty when the shared data is absent, which fails the test where CI=true.
inline std::string SharedFile(const std::string& name) {
  std::string path = std::string(REGARD_SHARED_DIR) + "/" + name;
  if (std::filesystem::exists(path)) return path;
  const char* ci = std::getenv("CI");
  if (ci != nullptr && std::string_view(ci) == "true") ADD_FAILURE() << kNoSharedData;
  return "";
}

}  // namespace regard::data

#endif  // REGARD_DATA_TEST_FILES_H_
