// Ctrl-C: the first one asks to stop, the second one ends the program at once.
#ifndef REGARD_TRAIN_INTERRUPT_H_
#define REGARD_TRAIN_INTERRUPT_H_

#include <csignal>

namespace regard::train {

// While it lives, the first SIGINT or SIGTERM only sets Requested(); the next one has its usual effect. The
// previous handlers come back at the end. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool Requested();

 private:
  struct sigaction previous_interrupt_, previous_terminate_;
};

}  // namespace regard::train

#endif  // REGARD_TRAIN_INTERRUPT_H_
