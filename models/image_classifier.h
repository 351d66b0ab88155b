// An image as a sequence of patches, with soft or hard attention (Dosovitskiy et al. 2021, "An image is worth
// 16x16 words"; Mnih et al. 2014, "Recurrent models of visual attention").
#ifndef REGARD_MODELS_IMAGE_CLASSIFIER_H_
#define REGARD_MODELS_IMAGE_CLASSIFIER_H_

#include <torch/torch.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/classification.h"
#include "nn/choice_attention.h"
#include "nn/multi_head.h"
#include "nn/positions.h"
#include "nn/transformer_layers.h"

namespace regard::models {

// The entries of the configuration.
struct ImageTransformerConfig {
  std::int64_t rows = 0, columns = 0, channels = 1;  // of an image
  std::int64_t classes = 0;
  std::int64_t patch = 1;  // pixels a side, a divisor of rows and columns; 1: pixels
  std::int64_t embed_dim = 0, num_heads = 1, num_layers = 1;
  std::int64_t ffn_dim = 0;  // absent: 4 embed_dim
  double dropout = 0;        // of the embeddings, the attention weights and what each part adds
  nn::AttentionKind attention = nn::AttentionKind::kSoft;  // "soft" (the default) or "hard"
  std::int64_t glimpses = 0;                               // T <= patches: what hard attention looks at
  double entropy = 0;                                      // how much openness of the choice is worth in nats

  std::int64_t patches() const { return (rows / patch) * (columns / patch); }
  std::int64_t patch_values() const { return patch * patch * channels; }
  // Throws regard::Error naming a missing or a wrong entry.
  static ImageTransformerConfig Read(const nlohmann::json& config);
};

// With c_j the pixels of patch j, 2 x - 1 of each, and e_j = embedding(c_j) + position_j:
//
// soft: x = layer(e), for each of the layers, all patches at once: pre-norm
//       class ~ softmax(head · pool(query, final_norm(x)))     pool: multi-head attention of one learned
//       query
//
// hard: a causal sequence of what was seen: x_0 = start, x_t = e_{j_t}; y = final_norm(layers(x))
//       j_{t+1} ~ softmax_j(W y_t · location_j / sqrt(width)) over the patches not seen yet (evaluation: the
//       likeliest)
//       class ~ softmax(head · y_T)
// Nothing of an image but the T chosen patches is ever computed with. Training tells the class after each
// glimpse; with l_t its loss, weighted so that the last counts as much as the mean of all, the choices learn
// by the score-function estimator from the losses that follow them, each less a baseline that the state
// before it predicts (learned by least squares, without a gradient to the rest).
//
// Weights: embedding (weight [width, patch²·channels], bias), positions.weight [P, width], layers.N. and
// those of nn::TransformerLayer, final_norm, head; soft: query [width], pool (nn::MultiHeadAttention); hard:
// start [width], where (W), locations [P, width], baseline.
class ImageTransformer : public ClassificationModel {
 public:
  explicit ImageTransformer(const nlohmann::json& config);

  nlohmann::json config() const override;
  LossSum Loss(const ImageBatch& batch, double label_smoothing, std::uint64_t seed) override;
  Classification Classify(const torch::Tensor& images) override;

 private:
  // Patches [N, P, patch² channels] of images.
  torch::Tensor Patches(const torch::Tensor& images) const;
  // [N, L, values] at the places [N, L] (undefined: 0 .. P - 1) -> [N, L, width].
  torch::Tensor Embed(const torch::Tensor& patches, const torch::Tensor& places);
  torch::Tensor Layers(torch::Tensor x, bool causal, std::uint64_t seed,
                       std::vector<nn::KeyValueCache>* caches);
  // Logits [N, classes], and weights [N, P] where asked for.
  std::pair<torch::Tensor, torch::Tensor> Soft(const torch::Tensor& patches, std::uint64_t seed,
                                               bool return_weights);

  // What was looked at, and the state [N, width] after it.
  struct Walk {
    torch::Tensor places;   // int64 [N, T]
    torch::Tensor patches;  // [N, T, values]
    torch::Tensor state;
  };
  // Drawn with the seed, or the likeliest. Without gradients and without dropout.
  Walk Look(const torch::Tensor& patches, bool draw, std::uint64_t seed);
  LossSum HardLoss(const torch::Tensor& patches, const torch::Tensor& labels, double smoothing,
                   std::uint64_t seed);

  ImageTransformerConfig config_;
  torch::nn::Linear embedding_{nullptr}, head_{nullptr}, where_{nullptr}, baseline_{nullptr};
  nn::Positions positions_{nullptr};
  std::vector<nn::TransformerLayer> layers_;
  nn::Norm final_norm_{nullptr};
  nn::MultiHeadAttention pool_{nullptr};
  torch::Tensor query_, start_, locations_;
};

}  // namespace regard::models

#endif  // REGARD_MODELS_IMAGE_CLASSIFIER_H_
