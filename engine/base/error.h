// The exceptions of the rooms above the engine. The command turns them into one line and an exit code.
#ifndef REGARD_ENGINE_BASE_ERROR_H_
#define REGARD_ENGINE_BASE_ERROR_H_

#include <stdexcept>

namespace regard {

// A run that failed: the message names the thing, its value and what was expected. Exit code 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A command used wrongly. Exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace regard

#endif  // REGARD_ENGINE_BASE_ERROR_H_
