#include "models/image_classifier.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/error.h"
#include "models/config.h"
#include "models/evaluation_mode.h"
#include "models/smoothed_nll.h"
#include "nn/dropout.h"
#include "nn/gru_kernels.h"

namespace regard::models {
namespace {

using torch::Tensor;

constexpr double kDeviation = 0.02;
constexpr double kLastShare = 0.5;  // of the loss after the last glimpse; the others share the rest

// -log p of the labels [N] at each of T steps, logits [N, T, classes]: [N, T], with a gradient.
Tensor StepLosses(const Tensor& logits, const Tensor& labels, double smoothing) {
  const Tensor log_probs = torch::log_softmax(logits, -1);
  const Tensor right = log_probs.gather(2, labels.view({-1, 1, 1}).expand({-1, logits.size(1), 1}));
  return -(1 - smoothing) * right.squeeze(-1) - smoothing * log_probs.mean(-1);
}

}  // namespace

ImageTransformerConfig ImageTransformerConfig::Read(const nlohmann::json& config) {
  const ConfigReader read(config);
  read.Choice("model", {"image_transformer"});
  ImageTransformerConfig c;
  c.rows = read.Integer("rows", 1);
  c.columns = read.Integer("columns", 1);
  c.channels = read.Integer("channels", 1, 1);
  c.classes = read.Integer("classes", 1);
  c.patch = read.Integer("patch", 1, 1);
  c.embed_dim = read.Integer("embed_dim", 1);
  c.num_heads = read.Integer("num_heads", 1);
  c.num_layers = read.Integer("num_layers", 1);
  c.ffn_dim = read.Integer("ffn_dim", 1, 4 * c.embed_dim);
  c.dropout = read.Probability("dropout", 0.0);
  c.attention = read.Choice("attention", {"soft", "hard"}, "soft") == "soft" ? nn::AttentionKind::kSoft
                                                                             : nn::AttentionKind::kHard;
  if (c.rows % c.patch != 0 || c.columns % c.patch != 0) {
    throw Error(c10::str("patches of ", c.patch, " x ", c.patch, " pixels do not tile images of ", c.rows,
                         " x ", c.columns, "; expected a divisor of both"));
  }
  if (c.attention == nn::AttentionKind::kHard) {
    c.glimpses = read.Integer("glimpses", 1);
    c.entropy = read.Probability("entropy", 0.0);
    if (c.glimpses > c.patches()) {
      throw Error(c10::str(c.glimpses, " glimpses of an image of ", c.patches(),
                           " patches; expected at most ", c.patches()));
    }
  }
  return c;
}

ImageTransformer::ImageTransformer(const nlohmann::json& config)
    : config_(ImageTransformerConfig::Read(config)) {
  const ImageTransformerConfig& c = config_;
  embedding_ = register_module("embedding", torch::nn::Linear(c.patch_values(), c.embed_dim));
  positions_ =
      register_module("positions", nn::Positions(nn::PositionKind::kLearned, c.patches(), c.embed_dim));
  {
    // As large as what a patch holds: with small ones, little tells a row from a column at first.
    torch::NoGradGuard no_grad;
    positions_->weight.normal_(0, 0.5);
  }
  torch::nn::ModuleList list;
  for (std::int64_t n = 0; n < c.num_layers; ++n) {
    layers_.push_back(nn::TransformerLayer(nn::TransformerLayerOptions{.embed_dim = c.embed_dim,
                                                                       .num_heads = c.num_heads,
                                                                       .ffn_dim = c.ffn_dim,
                                                                       .dropout = c.dropout,
                                                                       .attention_dropout = c.dropout}));
    list->push_back(layers_.back());
  }
  register_module("layers", list);
  final_norm_ = register_module("final_norm", nn::Norm(c.embed_dim));
  head_ = register_module("head", torch::nn::Linear(c.embed_dim, c.classes));
  const auto drawn = [](torch::IntArrayRef shape) { return torch::empty(shape).normal_(0, kDeviation); };
  if (c.attention == nn::AttentionKind::kSoft) {
    query_ = register_parameter("query", drawn({c.embed_dim}));
    pool_ = register_module("pool", nn::MultiHeadAttention(nn::MultiHeadOptions{.embed_dim = c.embed_dim,
                                                                                .num_heads = c.num_heads}));
  } else {
    start_ = register_parameter("start", drawn({c.embed_dim}));
    where_ = register_module("where", torch::nn::Linear(c.embed_dim, c.embed_dim));
    locations_ = register_parameter("locations", drawn({c.patches(), c.embed_dim}));
    baseline_ = register_module("baseline", torch::nn::Linear(c.embed_dim, 1));
  }
}

nlohmann::json ImageTransformer::config() const {
  const ImageTransformerConfig& c = config_;
  nlohmann::json json = {{"model", "image_transformer"},
                         {"rows", c.rows},
                         {"columns", c.columns},
                         {"channels", c.channels},
                         {"classes", c.classes},
                         {"patch", c.patch},
                         {"embed_dim", c.embed_dim},
                         {"num_heads", c.num_heads},
                         {"num_layers", c.num_layers},
                         {"ffn_dim", c.ffn_dim},
                         {"dropout", c.dropout},
                         {"attention", c.attention == nn::AttentionKind::kSoft ? "soft" : "hard"}};
  if (c.attention == nn::AttentionKind::kHard) {
    json["glimpses"] = c.glimpses;
    json["entropy"] = c.entropy;
  }
  return json;
}

Tensor ImageTransformer::Patches(const Tensor& images) const {
  const ImageTransformerConfig& c = config_;
  if (images.dim() != 4 || images.size(1) != c.rows || images.size(2) != c.columns ||
      images.size(3) != c.channels) {
    throw Error(c10::str("images have shape ", images.sizes(), "; expected [images, ", c.rows, ", ",
                         c.columns, ", ", c.channels, "]"));
  }
  const std::int64_t down = c.rows / c.patch, across = c.columns / c.patch;
  return (2 * images - 1)
      .view({images.size(0), down, c.patch, across, c.patch, c.channels})
      .permute({0, 1, 3, 2, 4, 5})
      .reshape({images.size(0), c.patches(), c.patch_values()});
}

Tensor ImageTransformer::Embed(const Tensor& patches, const Tensor& places) {
  const Tensor x = embedding_(patches);
  return places.defined() ? x + torch::embedding(positions_->weight, places) : positions_(x);
}

Tensor ImageTransformer::Layers(Tensor x, bool causal, std::uint64_t seed,
                                std::vector<nn::KeyValueCache>* caches) {
  if (is_training()) x = nn::Dropout(x, config_.dropout, nn::DeriveSeed(seed, 0));
  nn::LayerCall call;
  call.self.causal = causal;
  if (causal) call.self.corner = Corner::kBottomRight;
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    call.seed = nn::DeriveSeed(seed, n + 1);
    if (caches != nullptr) call.cache = &(*caches)[n];
    x = layers_[n](x, call).x;
  }
  return final_norm_(x);
}

std::pair<Tensor, Tensor> ImageTransformer::Soft(const Tensor& patches, std::uint64_t seed,
                                                 bool return_weights) {
  const Tensor x = Layers(Embed(patches, {}), /*causal=*/false, seed, nullptr);
  nn::AttendOptions options;
  options.return_weights = return_weights;
  options.seed = static_cast<std::int64_t>(nn::DeriveSeed(seed, layers_.size() + 1) >> 1);
  const Tensor query = query_.view({1, 1, -1}).expand({x.size(0), 1, -1});
  const nn::Context pooled = pool_(query, x, x, options);
  const Tensor logits = head_(pooled.context.squeeze(1));
  return {logits, return_weights ? pooled.weights.mean(1).squeeze(1) : Tensor()};
}

ImageTransformer::Walk ImageTransformer::Look(const Tensor& patches, bool draw, std::uint64_t seed) {
  torch::NoGradGuard no_grad;
  const EvaluationMode mode(*this);
  const std::int64_t count = patches.size(0);
  const Tensor keys = locations_.unsqueeze(0).expand({count, -1, -1});
  Tensor unseen = torch::ones({count, 1, config_.patches()}, torch::kBool);
  std::vector<nn::KeyValueCache> caches(layers_.size());
  std::vector<Tensor> places, seen;
  Tensor x = start_.view({1, 1, -1}).expand({count, 1, -1});
  for (std::int64_t t = 0;; ++t) {
    const Tensor y = Layers(x, /*causal=*/true, 0, &caches);
    if (t == config_.glimpses) return {torch::cat(places, 1), torch::cat(seen, 1), y.squeeze(1)};
    nn::AttendOptions options;
    options.keep = unseen;
    options.normalizer = draw ? nn::NormalizerKind::kSample : nn::NormalizerKind::kArgmax;
    options.seed = static_cast<std::int64_t>(nn::DeriveSeed(seed, static_cast<std::uint64_t>(t)) >> 1);
    const nn::AttendResult choice = nn::Attend(where_(y), keys, patches, options);
    unseen.scatter_(2, choice.index.unsqueeze(-1), false);
    places.push_back(choice.index);
    seen.push_back(choice.out);
    x = Embed(choice.out, choice.index);
  }
}

// Shapes: N images, T glimpses, y [N, T + 1, width] the state before each glimpse and after the last.
LossSum ImageTransformer::HardLoss(const Tensor& patches, const Tensor& labels, double smoothing,
                                   std::uint64_t seed) {
  const std::int64_t steps = config_.glimpses, count = patches.size(0);
  const Walk walk = Look(patches, /*draw=*/true, nn::DeriveSeed(seed, 0));
  const Tensor start = start_.view({1, 1, -1}).expand({count, 1, -1});
  const Tensor x = torch::cat({start, Embed(walk.patches, walk.places)}, 1);
  const Tensor y = Layers(x, /*causal=*/true, nn::DeriveSeed(seed, 1), nullptr);
  const Tensor before = y.narrow(1, 0, steps);

  const Tensor losses = StepLosses(head_(y.narrow(1, 1, steps)), labels, smoothing);  // [N, T]
  Tensor shares = torch::full({steps}, (1 - kLastShare) / static_cast<double>(steps));
  shares[steps - 1] += kLastShare;
  const Tensor weighted = losses * shares;

  // The choices again, with gradients: place t was drawn from those not drawn before.
  const Tensor taken = torch::one_hot(walk.places, config_.patches());
  const Tensor earlier = (taken.cumsum(1) - taken).to(torch::kBool);
  const double scale = 1 / std::sqrt(static_cast<double>(config_.embed_dim));
  const Tensor scores = torch::matmul(where_(before), locations_.t()) * scale;
  const Tensor log_probs =
      torch::log_softmax(scores.masked_fill(earlier, -std::numeric_limits<double>::infinity()), -1)
          .masked_fill(earlier, 0);
  const Tensor entropy = -(log_probs.exp() * log_probs).masked_fill(earlier, 0).sum(-1);
  const Tensor chosen = log_probs.gather(2, walk.places.unsqueeze(-1)).squeeze(-1);

  // What follows each choice, and the baseline's guess of it.
  const Tensor following = weighted.detach().flip(1).cumsum(1).flip(1);
  const Tensor guess = baseline_(before.detach()).squeeze(-1);
  nn::Choice choice;
  choice.log_prob = chosen.flatten().unsqueeze(1);
  choice.entropy = entropy.flatten().unsqueeze(1);
  const Tensor score_function = nn::ScoreFunctionLoss(following.flatten(), choice, guess.detach().flatten(),
                                                      config_.entropy / static_cast<double>(steps)) *
                                static_cast<double>(count * steps);
  const Tensor misfit = (guess - following).square().sum() / static_cast<double>(steps);
  const Tensor nats = StepLosses(head_(y.narrow(1, steps, 1)).detach(), labels, 0).sum();
  return {weighted.sum() + score_function + misfit, nats, count};
}

LossSum ImageTransformer::Loss(const ImageBatch& batch, double label_smoothing, std::uint64_t seed) {
  const Tensor patches = Patches(batch.images);
  if (config_.attention == nn::AttentionKind::kHard && is_training())
    return HardLoss(patches, batch.labels, label_smoothing, seed);
  const Tensor logits = config_.attention == nn::AttentionKind::kSoft
                            ? Soft(patches, seed, /*return_weights=*/false).first
                            : head_(Look(patches, /*draw=*/false, 0).state);
  const auto [sum, nats] = SmoothedNll(logits, batch.labels, label_smoothing);
  return {sum, nats, batch.labels.size(0)};
}

Classification ImageTransformer::Classify(const Tensor& images) {
  torch::NoGradGuard no_grad;
  const EvaluationMode mode(*this);
  Classification result;
  const Tensor patches = Patches(images);
  Tensor logits;
  if (config_.attention == nn::AttentionKind::kSoft) {
    std::tie(logits, result.weights) = Soft(patches, 0, /*return_weights=*/true);
  } else {
    const Walk walk = Look(patches, /*draw=*/false, 0);
    logits = head_(walk.state);
    result.glimpses = walk.places;
  }
  result.log_probs = torch::log_softmax(logits, -1);
  return result;
}

}  // namespace regard::models
