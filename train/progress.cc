#include "train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace regard::train {
namespace {

int Columns(std::FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// Back to the start of the line, and erase it (ECMA-48).
constexpr char kEraseLine[] = "\r\x1b[K";

}  // namespace

std::string ClockTime(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 3.6e8)));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string Bar(double done, int width) {
  const int inner = std::max(width - 2, 0);
  const int filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * inner);
  std::string bar(static_cast<std::size_t>(filled), '=');
  if (filled < inner) bar += '>';
  bar.resize(static_cast<std::size_t>(inner), ' ');
  return "[" + bar + "]";
}

Progress::Progress(std::FILE* stream, double line_seconds) : stream_(stream) {
  terminal_ = stream_ != nullptr && isatty(fileno(stream_)) != 0;
  interval_ = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(terminal_ ? 0.1 : line_seconds));
}

Progress::~Progress() { Finish(); }

void Progress::Update(double done, const std::function<std::string()>& text) {
  if (stream_ == nullptr) return;
  const Clock::time_point now = Clock::now();
  if (!started_) {
    started_ = true;
    start_ = last_ = now;
    start_done_ = done;
    return;
  }
  if (now - last_ < interval_) return;
  last_ = now;
  Draw(done, text(), now);
}

void Progress::Draw(double done, const std::string& text, Clock::time_point now) {
  std::string line = text;
  if (done > start_done_ && done >= 0) {
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    line += "  " + ClockTime(elapsed * (1 - done) / (done - start_done_)) + " left";
  }
  if (!terminal_) {
    fmt::print(stream_, "{}\n", line);
    std::fflush(stream_);
    return;
  }
  const int room = Columns(stream_) - 1;  // the last column would wrap on some terminals
  const int left = room - static_cast<int>(line.size()) - 1;
  if (done >= 0 && left >= 8) line = Bar(done, std::min(left, 30)) + " " + line;
  if (static_cast<int>(line.size()) > room) line.resize(static_cast<std::size_t>(std::max(room, 0)));
  fmt::print(stream_, "{}{}", kEraseLine, line);
  std::fflush(stream_);
  drawn_ = true;
}

void Progress::Note(const std::string& line) {
  if (stream_ == nullptr) return;
  fmt::print(stream_, "{}{}\n", drawn_ ? kEraseLine : "", line);
  std::fflush(stream_);
  drawn_ = false;
}

void Progress::Finish() {
  if (drawn_) {
    fmt::print(stream_, "{}", kEraseLine);
    std::fflush(stream_);
  }
  drawn_ = started_ = false;
}

}  // namespace regard::train
