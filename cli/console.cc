#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/text.h"
#include "engine/base/error.h"

namespace regard::cli {

namespace {

std::string& ProgramName() {
  static std::string name = "regard";
  return name;
}

}  // namespace

void SetProgram(const std::string& name) { ProgramName() = name; }
const std::string& Program() { return ProgramName(); }

bool IsTerminal(std::FILE* stream) { return isatty(fileno(stream)) != 0; }

bool UseColor(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return IsTerminal(stream) && (no_color == nullptr || *no_color == '\0') && term != nullptr &&
         std::strcmp(term, "dumb") != 0;
}

int TerminalWidth(std::FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string Paint(Style style, std::string_view text, std::FILE* stream) {
  if (!UseColor(stream)) return std::string(text);
  constexpr int kCodes[] = {1, 2, 32, 33, 31, 36};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<int>(style)], text);
}

void Messages::Fact(std::string_view label, std::string_view text) const {
  if (!quiet_) WriteLine(Paint(Style::kDim, Pad(label, 12), stderr) + std::string(text));
}

void Messages::Warn(std::string_view text) const {
  WriteLine(Paint(Style::kYellow, "warning: ", stderr) + std::string(text));
}

void Messages::WriteLine(std::string_view text) {
  const std::string line = std::string(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Output::Output(const std::string& path) : name_(path == "-" ? "standard output" : path) {
  file_ = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  if (file_ == nullptr) Fail();
}

Output::~Output() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

void Output::Write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) Fail();
}

void Output::Flush() {
  if (std::fflush(file_) != 0) Fail();
}

void Output::Close() {
  Flush();
  if (file_ != stdout && std::fclose(std::exchange(file_, nullptr)) != 0) Fail();
}

void Output::Fail() const { throw Error(fmt::format("cannot write to {}: {}", name_, std::strerror(errno))); }

}  // namespace regard::cli
