// The result of a call that can be given wrong arguments.
#ifndef REGARD_STATUS_H_
#define REGARD_STATUS_H_

#include <string>
#include <utility>

namespace regard {

// Success, or a sentence that names the argument at fault, its value and what was expected.
// The engine returns it and never throws, prints or aborts.
class [[nodiscard]] Status {
 public:
  Status() = default;  // success

  static Status InvalidArgument(std::string message) {
    Status status;
    status.failed_ = true;
    status.message_ = std::move(message);
    return status;
  }

  bool ok() const { return !failed_; }
  const std::string& message() const { return message_; }

 private:
  bool failed_ = false;
  std::string message_;
};

}  // namespace regard

#endif  // REGARD_STATUS_H_
