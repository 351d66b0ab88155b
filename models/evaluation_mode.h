// A model as it is used, not trained, for a while.
#ifndef REGARD_MODELS_EVALUATION_MODE_H_
#define REGARD_MODELS_EVALUATION_MODE_H_

#include <torch/nn/module.h>

namespace regard::models {

// While it lives, the module is in evaluation mode; then again in the mode that it was in, also after an
// exception.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& module) : module_(module), training_(module.is_training()) {
    if (training_) module_.eval();
  }
  ~EvaluationMode() {
    if (training_) module_.train();
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& module_;
  bool training_;
};

}  // namespace regard::models

#endif  // REGARD_MODELS_EVALUATION_MODE_H_
