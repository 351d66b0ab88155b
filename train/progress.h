// How far a long piece of work is: a bar on a terminal, a line now and then elsewhere.
#ifndef REGARD_TRAIN_PROGRESS_H_
#define REGARD_TRAIN_PROGRESS_H_

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

namespace regard::train {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // stream nullptr: silent. On a terminal a bar is redrawn at most ten times a second; elsewhere a line is
  // written at most every `line_seconds`.
  explicit Progress(std::FILE* stream, double line_seconds = 5);
  ~Progress();  // as Finish
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // done: 0..1, negative when unknown. text is only called when something is drawn; the time left, judged by
  // the rate since the first update, is added to it.
  void Update(double done, const std::function<std::string()>& text);
  // A line that stays, above the bar.
  void Note(const std::string& line);
  // Removes the bar; a later Update starts a new one.
  void Finish();

 private:
  void Draw(double done, const std::string& text, Clock::time_point now);

  std::FILE* stream_;
  bool terminal_ = false, drawn_ = false, started_ = false;
  Clock::duration interval_;
  Clock::time_point start_, last_;
  double start_done_ = 0;
};

// "0:42", "12:05", "1:02:03"
std::string ClockTime(double seconds);

// The bar alone, `width` columns: "[=====>    ]".
std::string Bar(double done, int width);

}  // namespace regard::train

#endif  // REGARD_TRAIN_PROGRESS_H_
