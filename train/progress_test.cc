#include "train/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace regard::train {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// A file that is read back.
class Capture {
 public:
  Capture() : file_(std::tmpfile()) {}
  ~Capture() { std::fclose(file_); }
  std::FILE* file() { return file_; }
  std::string Text() {
    std::fflush(file_);
    std::rewind(file_);
    std::string text(1 << 16, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_));
    return text;
  }

 private:
  std::FILE* file_;
};

TEST(Progress, WritesLinesRarelyWhereThereIsNoTerminal) {
  Capture capture;
  Progress progress(capture.file(), 0.05);
  int calls = 0;
  for (int i = 0; i <= 100; ++i) {
    progress.Update(i / 100.0, [&] {
      ++calls;
      return std::string("working");
    });
    std::this_thread::sleep_for(milliseconds(2));
  }
  const std::string text = capture.Text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), calls);
  EXPECT_GE(calls, 2);
  EXPECT_LE(calls, 30);
  EXPECT_THAT(text, testing::MatchesRegex("(working  [0-9]+:[0-9]+ left\n)+"));
}

TEST(Progress, SilentWithoutStream) {
  Progress progress(nullptr);
  bool called = false;
  progress.Update(0, [&] { return called = true, std::string(); });
  progress.Note("x");
  EXPECT_FALSE(called);
}

TEST(Progress, DrawsABarThatFitsTheTerminalAndRemovesIt) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(master, 0);
  ASSERT_EQ(grantpt(master), 0);
  ASSERT_EQ(unlockpt(master), 0);
  std::FILE* terminal = std::fopen(ptsname(master), "w");
  ASSERT_NE(terminal, nullptr);
  winsize size{};
  size.ws_col = 50;
  size.ws_row = 10;
  ASSERT_EQ(ioctl(fileno(terminal), TIOCSWINSZ, &size), 0);
  {
    Progress progress(terminal);
    progress.Update(0, [] { return std::string("begin"); });
    std::this_thread::sleep_for(milliseconds(110));
    progress.Update(0.5, [] { return std::string("half done"); });
    progress.Update(0.5, [] { return std::string("too soon"); });
  }
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(read(master, text.data(), text.size())));
  std::fclose(terminal);
  close(master);
  EXPECT_THAT(text, HasSubstr("\r\x1b[K[=============>            ] half done  0:00 left"));
  EXPECT_THAT(text, testing::Not(HasSubstr("too soon")));
  EXPECT_THAT(text, testing::EndsWith("\r\x1b[K"));
}

TEST(Progress, ClockTimeReadsLikeAClock) {
  EXPECT_EQ(ClockTime(0.4), "0:00");
  EXPECT_EQ(ClockTime(42), "0:42");
  EXPECT_EQ(ClockTime(725), "12:05");
  EXPECT_EQ(ClockTime(3723), "1:02:03");
}

}  // namespace
}  // namespace regard::train
