// A run directory: what a training leaves, and what every later command starts from.
//
// - config.json: {"format", "regard", "kind", "files": {name: checksum}, and what the kind of run needs}
// - model.safetensors: the best weights so far, under the parameters' names
// - optimizer.pt: where training goes on: last weights, optimiser, position (torch.load, weights_only=False)
// - metrics.jsonl: one JSON object a line
// - vocabulary or tokeniser files, checked against their checksum; attention/ (pictures)
//
// Each file is replaced as a whole (temporary name, flush, rename), and a new run appears under its name
// complete. An interruption at any moment therefore leaves the last good run.
#ifndef REGARD_TRAIN_RUN_DIRECTORY_H_
#define REGARD_TRAIN_RUN_DIRECTORY_H_

#include <torch/torch.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "train/optimizer.h"

namespace regard::train {

inline constexpr int kRunFormat = 1;

struct Checkpoint {
  nlohmann::json state;    // the trainer's
  NamedTensors weights;    // of the last step
  NamedTensors optimizer;  // Adam::State
};

class RunDirectory {
 public:
  // Makes a run at path: config (to which format, version, kind and checksums are added), the files that
  // add_files writes into the folder it is given, and the weights. An existing run is only replaced with
  // force, in one step; a folder that holds anything else never is. Throws regard::Error (regard::UsageError
  // for an existing one).
  static RunDirectory Create(const std::string& path, const std::string& kind, nlohmann::json config,
                             const NamedTensors& weights,
                             const std::function<void(const std::string& folder)>& add_files, bool force);

  // What Create would refuse, before any long preparation: the same errors.
  static void CheckVacant(const std::string& path, bool force);

  // Opens a run. Throws regard::Error when it is missing, no run, cut short, of another format or kind, when
  // a file differs from its checksum, or an entry of config.json that is named in `objects` is no object.
  static RunDirectory Open(const std::string& path, const std::string& kind,
                           std::initializer_list<const char*> objects = {});

  // What kind of run is there. Throws regard::Error when there is none.
  static std::string KindOf(const std::string& path);

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const nlohmann::json& config() const { return config_; }

  void SaveWeights(const NamedTensors& weights);
  // Copies model.safetensors into the module. Throws regard::Error naming what is missing, unexpected or of
  // another shape or type.
  void LoadWeights(torch::nn::Module& module) const;

  void SaveCheckpoint(const Checkpoint& checkpoint);
  Checkpoint LoadCheckpoint() const;  // throws regard::Error when it is missing or cut short

  // Appends a line to metrics.jsonl.
  void AppendMetrics(const nlohmann::json& line);
  // Drops the lines whose "step" is after `step`, and a last one that is cut short.
  void TruncateMetrics(std::int64_t step);

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
  nlohmann::json config_;
  std::ofstream metrics_;
};

// A .safetensors file of these tensors, and the tensors of one. Throw regard::Error naming the file.
void WriteWeights(const std::string& path, const NamedTensors& weights);
NamedTensors ReadWeights(const std::string& path);

// Parameters and buffers under their names, not copied.
NamedTensors WeightsOf(const torch::nn::Module& module);

// Copies weights into the module's parameters and buffers, each exactly once. Throws regard::Error that
// starts with `origin` and names what is missing, unexpected or of another shape or type.
void CopyWeights(const NamedTensors& weights, torch::nn::Module& module, const std::string& origin);

}  // namespace regard::train

#endif  // REGARD_TRAIN_RUN_DIRECTORY_H_
