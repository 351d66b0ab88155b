// A trained image classifier: its run directory, classes and weights.
#ifndef REGARD_TRAIN_IMAGE_RUN_H_
#define REGARD_TRAIN_IMAGE_RUN_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/images.h"
#include "models/classification.h"
#include "train/run_directory.h"

namespace regard::train {

struct ImageSetup {
  nlohmann::json model;              // for models::MakeClassificationModel
  std::vector<std::string> classes;  // their names, in the order of the model's numbers
  double white = 255;                // the value of a pixel of full brightness, in CSV files
  nlohmann::json training = nlohmann::json::object();  // what the command wants to find again
  std::uint64_t seed = 0;                              // of the fresh weights
};

class ImageRun {
 public:
  static constexpr char kKind[] = "images";

  // Makes the run directory with fresh weights. Errors as RunDirectory::Create and MakeClassificationModel.
  static ImageRun Create(const std::string& path, const ImageSetup& setup, bool force);
  // Loads a run with its best weights, in evaluation mode. Throws regard::Error as RunDirectory::Open, and
  // when classes and weights do not fit together.
  static ImageRun Load(const std::string& path);

  // Images for this model: of its size, in brightness 0..1, with its classes where labelled; label as in
  // data::ImageOptions. Grey images become coloured ones where the model wants these. Throws regard::Error
  // naming the file where they do not fit.
  struct Images {
    data::ImageSet set;
    models::ImageBatch batch;
  };
  Images Read(const std::string& path, bool labelled, const std::string& label = "") const;

  RunDirectory& directory() { return directory_; }
  models::ClassificationModel& model() { return *model_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const nlohmann::json& training() const { return directory_.config().at("training"); }

 private:
  explicit ImageRun(RunDirectory directory) : directory_(std::move(directory)) {}

  RunDirectory directory_;
  std::shared_ptr<models::ClassificationModel> model_;
  std::vector<std::string> classes_;
  double white_ = 255;
};

}  // namespace regard::train

#endif  // REGARD_TRAIN_IMAGE_RUN_H_
