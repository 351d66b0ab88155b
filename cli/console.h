// Where the command writes: results to standard output or a file, messages to standard error.
#ifndef REGARD_CLI_CONSOLE_H_
#define REGARD_CLI_CONSOLE_H_

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace regard::cli {

// How the command was called ("build/regard"), for command lines that people can copy. Set once, by main.
void SetProgram(const std::string& name);
const std::string& Program();

bool IsTerminal(std::FILE* stream);

// Colour is for a terminal, and not when NO_COLOR is set (no-color.org) or TERM is "dumb".
bool UseColor(std::FILE* stream);

// Columns of the terminal behind `stream`; 80 when there is none.
int TerminalWidth(std::FILE* stream);

enum class Style { kBold, kDim, kGreen, kYellow, kRed, kCyan };

// `text` in a style when the stream shows colour, else as it is.
std::string Paint(Style style, std::string_view text, std::FILE* stream);

// Messages on standard error. A quiet one keeps warnings only.
class Messages {
 public:
  explicit Messages(bool quiet) : quiet_(quiet) {}

  template <typename... Args>
  void Say(fmt::format_string<Args...> format, Args&&... args) const {
    if (!quiet_) WriteLine(fmt::format(format, std::forward<Args>(args)...));
  }
  // "label     text", the label dimmed and padded so that consecutive lines align.
  void Fact(std::string_view label, std::string_view text) const;
  void Warn(std::string_view text) const;
  bool quiet() const { return quiet_; }

 private:
  static void WriteLine(std::string_view text);
  bool quiet_;
};

// Results: standard output ("-") or a file. What cannot be written (a full disk) throws regard::Error.
class Output {
 public:
  explicit Output(const std::string& path);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void Write(std::string_view text);
  template <typename... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    Write(fmt::format(format, std::forward<Args>(args)...));
  }
  void Flush();
  // Flushes and closes; needed for the last error to be seen.
  void Close();
  std::FILE* stream() const { return file_; }

 private:
  [[noreturn]] void Fail() const;
  std::string name_;
  std::FILE* file_ = nullptr;
};

}  // namespace regard::cli

#endif  // REGARD_CLI_CONSOLE_H_
