// What every image classifier can do: give its loss on images, and tell their classes and where it looked.
#ifndef REGARD_MODELS_CLASSIFICATION_H_
#define REGARD_MODELS_CLASSIFICATION_H_

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "models/translation.h"

namespace regard::models {

// N images and the numbers of their classes.
struct ImageBatch {
  torch::Tensor images;  // float [N, rows, columns, channels], full brightness is 1
  torch::Tensor labels;  // int64 [N]; undefined where they are not known
};

// P patches of an image are numbered row by row. What a model does not have is undefined.
struct Classification {
  torch::Tensor log_probs;  // [N, classes]
  torch::Tensor weights;    // [N, P]: soft attention to the patches, each row of sum 1
  torch::Tensor glimpses;   // int64 [N, T]: the patches that hard attention looked at, in order
};

class ClassificationModel : public torch::nn::Module {
 public:
  // Everything needed to build the model again: {"model": name, "rows": pixels, "classes": number, ...}.
  virtual nlohmann::json config() const = 0;
  // seed: of this step's dropout and choices; the same seed gives the same ones. Only used in training mode.
  virtual LossSum Loss(const ImageBatch& batch, double label_smoothing, std::uint64_t seed) = 0;
  // In evaluation mode, of images [N, rows, columns, channels]; a row does not depend on the others.
  virtual Classification Classify(const torch::Tensor& images) = 0;
};

// Builds the model that config["model"] names ("image_transformer"), with fresh weights from torch's
// generator. Throws regard::Error naming an unknown model, a missing or a wrong entry.
std::shared_ptr<ClassificationModel> MakeClassificationModel(const nlohmann::json& config);

}  // namespace regard::models

#endif  // REGARD_MODELS_CLASSIFICATION_H_
