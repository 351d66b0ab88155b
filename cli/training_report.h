// What is said of a training, and what tells its data from other data.
#ifndef REGARD_CLI_TRAINING_REPORT_H_
#define REGARD_CLI_TRAINING_REPORT_H_

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/console.h"
#include "train/trainer.h"

namespace regard::cli {

// FNV-1a: the same number on every machine.
class Hash {
 public:
  Hash& Add(std::string_view text) {
    for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    value_ = (value_ ^ 0x100u) * 0x100000001b3u;  // an end that no byte has
    return *this;
  }
  std::uint64_t value() const { return value_; }
  std::string Text() const;  // 16 digits

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

// "gpt, 1,234 parameters"
void SayModel(const std::string& name, const torch::nn::Module& module, const Messages& messages);

// Steps, time, speed in `tokens` ("target tokens") and the best validation of `measure`.
void SayTrained(const train::TrainResult& result, std::string_view tokens, const std::string& measure,
                const Messages& messages);

}  // namespace regard::cli

#endif  // REGARD_CLI_TRAINING_REPORT_H_
