// Training a classifier on images, and measuring it.
#ifndef REGARD_TRAIN_IMAGE_TASK_H_
#define REGARD_TRAIN_IMAGE_TASK_H_

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "data/images.h"
#include "models/classification.h"
#include "train/task.h"

namespace regard::train {

// [N, rows, columns, channels] with pixels / white, and the labels where there are some.
models::ImageBatch MakeImageBatch(const data::ImageSet& images, double white);

// How far an image may differ from what was read each time it is trained on; each drawn evenly.
struct Augmentation {
  double shift = 0;   // pixels, each way, along rows and columns
  double rotate = 0;  // degrees, each way
  double scale = 0;   // sizes 1 / (1 + scale) .. 1 + scale, evenly in their logarithm
  bool any() const { return shift > 0 || rotate > 0 || scale > 0; }
};

// The images [N, rows, columns, channels] moved so, each on its own, around their middle; bilinear, and what
// comes in from outside is as the nearest pixel of the edge. The same seed moves them the same way.
torch::Tensor Augment(const torch::Tensor& images, const Augmentation& augmentation, std::uint64_t seed);

struct ImageMeasures {
  std::int64_t images = 0, correct = 0;
  double nats = 0;                        // -log of the right class's probability, summed
  torch::Tensor confusion;                // int64 [classes, classes]: true class, told class
  models::Classification classification;  // of all of them
};

// Classifies all images, in batches. Gives up when stop() turns true; images is then 0.
ImageMeasures MeasureImages(
    models::ClassificationModel& model, const models::ImageBatch& images, std::int64_t batch_size = 256,
    const std::function<bool()>& stop = [] { return false; });

// The same without labels: only what the classes are.
models::Classification ClassifyImages(models::ClassificationModel& model, const torch::Tensor& images,
                                      std::int64_t batch_size = 256);

struct ImageTaskOptions {
  std::int64_t batch_size = 64;
  double label_smoothing = 0;
  Augmentation augmentation{};
};

// An epoch is every image once, in a new order. Validation: "loss", nats an image, and "accuracy", 0..1.
class ImageTask : public TrainingTask {
 public:
  // The model has to outlive the task; validation may have no images. Throws regard::Error where there is
  // nothing to train on.
  ImageTask(models::ClassificationModel& model, models::ImageBatch training, models::ImageBatch validation,
            const ImageTaskOptions& options);

  torch::nn::Module& module() override { return model_; }
  std::int64_t StartEpoch(std::int64_t epoch, std::uint64_t seed) override;
  LossSum Loss(std::int64_t batch, const Share& share, std::uint64_t seed) override;
  Measures Validate(const std::function<bool()>& stop) override;

 private:
  models::ClassificationModel& model_;
  models::ImageBatch training_, validation_;
  ImageTaskOptions options_;
  torch::Tensor order_;  // int64 [N]: the images of this epoch
};

}  // namespace regard::train

#endif  // REGARD_TRAIN_IMAGE_TASK_H_
