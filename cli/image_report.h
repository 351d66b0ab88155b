// What is told of classified images: tables, and pictures of where the model looked.
#ifndef REGARD_CLI_IMAGE_REPORT_H_
#define REGARD_CLI_IMAGE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/console.h"
#include "train/image_run.h"
#include "view/image_view.h"

namespace regard::cli {

struct EvaluateImagesOptions {
  std::string run, data, label;
  std::int64_t limit = 0, last = 0;  // only the first, or the last images; 0: all
  bool json = false, confusion = false;
};

// regard evaluate of a classifier: prints accuracy, loss and, on request, which classes were taken for which.
void EvaluateImages(const EvaluateImagesOptions& options);

// The first `limit`, or the last `last` images (0: all). Throws regard::UsageError where there are fewer.
train::ImageRun::Images ChooseImages(train::ImageRun::Images images, std::int64_t limit, std::int64_t last);

// These images with what the model looked at.
view::ImageDocument PictureOf(const train::ImageRun::Images& images,
                              const models::Classification& classification,
                              const std::vector<std::string>& classes,
                              const std::vector<std::int64_t>& indices, std::int64_t patch);

}  // namespace regard::cli

#endif  // REGARD_CLI_IMAGE_REPORT_H_
