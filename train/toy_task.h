// A small task for tests of the loop: fit y = tanh(x W1 + b1) W2 + b2 by least squares, with dropout.
#ifndef REGARD_TRAIN_TOY_TASK_H_
#define REGARD_TRAIN_TOY_TASK_H_

#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "train/task.h"

namespace regard::train {

struct ToyModel : torch::nn::Module {
  ToyModel() {
    first = register_module("first", torch::nn::Linear(5, 16));
    second = register_module("second", torch::nn::Linear(16, 2));
    scale = register_buffer("scale", torch::ones({1}));
  }
  torch::Tensor forward(const torch::Tensor& x, double dropout) {
    return second->forward(torch::dropout(first->forward(x).tanh(), dropout, is_training())) * scale;
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::Tensor scale;
};

class ToyTask : public TrainingTask {
 public:
  explicit ToyTask(std::int64_t batch_size, double dropout = 0, std::int64_t examples = 64)
      : batch_size_(batch_size), dropout_(dropout) {
    const torch::Tensor t = torch::arange(examples * 5, torch::kFloat).view({examples, 5});
    x_ = (t * 1.7).sin();
    y_ = torch::stack({x_.select(1, 0) * x_.select(1, 1), x_.sum(1).cos()}, 1);
    torch::manual_seed(7);
    model = std::make_shared<ToyModel>();
  }
  torch::nn::Module& module() override { return *model; }
  std::int64_t StartEpoch(std::int64_t epoch, std::uint64_t seed) override {
    order_.resize(static_cast<std::size_t>(x_.size(0)));
    std::iota(order_.begin(), order_.end(), 0);
    std::mt19937_64 generator(seed * 1000 + static_cast<std::uint64_t>(epoch));
    if (shuffle) std::shuffle(order_.begin(), order_.end(), generator);
    return (x_.size(0) + batch_size_ - 1) / batch_size_;
  }
  LossSum Loss(std::int64_t batch, const Share& share, std::uint64_t seed) override {
    if (share.count == 1) {
      ++losses;
      if (before_loss) before_loss(losses);
      seeds.push_back(seed);
    }
    const std::int64_t begin = batch * batch_size_, end = std::min(begin + batch_size_, x_.size(0));
    const auto own = share.Of(std::vector<std::int64_t>(order_.begin() + begin, order_.begin() + end));
    if (own.empty()) return {};
    const torch::Tensor rows = torch::tensor(own);
    const torch::Tensor error = model->forward(x_.index_select(0, rows), dropout_) - y_.index_select(0, rows);
    torch::Tensor sum = error.square().sum() * factor;
    // Adds 0, whose gradient is not a number: the slope of a root at 0.
    if (poison) sum = sum + (model->second->bias.sum() * 0).sqrt();
    return {sum, sum.detach(), std::ssize(own)};
  }
  Measures Validate(const std::function<bool()>&) override {
    ++validations;
    if (validation) return validation(validations);
    return {{"loss", (model->forward(x_, 0) - y_).square().mean().item<double>()}};
  }

  std::shared_ptr<ToyModel> model;
  bool shuffle = true;
  double factor = 1;
  bool poison = false;
  std::int64_t losses = 0, validations = 0;
  std::vector<std::uint64_t> seeds;
  std::function<void(std::int64_t)> before_loss;
  std::function<Measures(std::int64_t)> validation;

 private:
  std::int64_t batch_size_;
  double dropout_;
  torch::Tensor x_, y_;
  std::vector<std::int64_t> order_;
};

}  // namespace regard::train

#endif  // REGARD_TRAIN_TOY_TASK_H_
