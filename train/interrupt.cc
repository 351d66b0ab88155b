#include "train/interrupt.h"

namespace regard::train {
namespace {

volatile std::sig_atomic_t requested = 0;

void Request(int) { requested = 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  requested = 0;
  struct sigaction action {};
  action.sa_handler = Request;
  // SA_RESETHAND: the second signal finds the default action.
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_interrupt_);
  sigaction(SIGTERM, &action, &previous_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_interrupt_, nullptr);
  sigaction(SIGTERM, &previous_terminate_, nullptr);
}

bool InterruptGuard::Requested() { return requested != 0; }

}  // namespace regard::train
