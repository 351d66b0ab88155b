// Kernel regression on the textbook's function (Zhang et al., "Dive into deep learning", section 10.2):
//   y = 2 sin x + x^0.8 + noise of deviation 0.5, at 50 points of [0, 5]
// by the average, with a fixed width and with a learned one. Prints what five steps of SGD make of the
// learned width, and draws truth, data and prediction beside the weights.
//
//   kernel_regression [SEED] [PICTURE.svg]
#include "nn/kernel_regression.h"

#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "view/attention_view.h"
#include "view/plot.h"

namespace {

using regard::nn::KernelRegression;
using regard::nn::KernelRegressionOptions;
using regard::nn::KernelWidth;
using torch::Tensor;

Tensor Truth(const Tensor& x) { return 2 * torch::sin(x) + x.pow(0.8); }

std::vector<double> Numbers(const Tensor& x) {
  const Tensor all = x.detach().to(torch::kDouble).contiguous();
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

std::vector<std::string> Labels(const Tensor& x) {
  std::vector<std::string> labels;
  for (const double value : Numbers(x)) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f", value);
    labels.emplace_back(text);
  }
  return labels;
}

struct Points {
  Tensor x, y;
};

double SquaredErrors(KernelRegression& model, const Points& data) {
  const torch::NoGradGuard no_grad;
  return (model->forward(data.x, data.x, data.y, true).prediction - data.y).square().sum().item<double>();
}

// Every point is predicted from all others.
void Train(KernelRegression& model, const Points& data) {
  torch::optim::SGD sgd(model->parameters(), 0.5);
  for (int step = 1; step <= 5; ++step) {
    sgd.zero_grad();
    const Tensor error = model->forward(data.x, data.x, data.y, true).prediction - data.y;
    const Tensor loss = error.square().sum();
    std::printf("step %d  sum of squared errors %.2f\n", step, loss.item<double>());
    loss.backward();
    sgd.step();
  }
  std::printf("after step 5: %.2f, width %.4f\n", SquaredErrors(model, data),
              1 / std::abs(model->precision.item<double>()));
}

void Draw(KernelRegression& model, const std::string& title, const Points& data,
          std::vector<std::string>* pictures) {
  const torch::NoGradGuard no_grad;
  const Tensor x = torch::arange(0, 5, 0.1);
  const regard::nn::Regression fit = model->forward(x, data.x, data.y, false, true);
  pictures->push_back(regard::view::PlotSvg({.title = title,
                                             .x_axis = "x",
                                             .y_axis = "y",
                                             .series = {{"truth", Numbers(x), Numbers(Truth(x)), false, true},
                                                        {"prediction", Numbers(x), Numbers(fit.prediction)},
                                                        {"data", Numbers(data.x), Numbers(data.y), true}}}));
  const Tensor weights = fit.weights.to(torch::kFloat).contiguous();
  regard::view::AttentionDocument map{"Weights", "query x", "key x", {}};
  map.panels.push_back({"",
                        Labels(x),
                        Labels(data.x),
                        {weights.data_ptr<float>(), weights.data_ptr<float>() + weights.numel()},
                        {}});
  pictures->push_back(regard::view::SvgDocument(map));
}

}  // namespace

int main(int count, char** arguments) {
  torch::manual_seed(count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1);
  Points data;
  data.x = std::get<0>((torch::rand({50}) * 5).sort());
  data.y = Truth(data.x) + 0.5 * torch::randn({50});

  KernelRegression average(KernelRegressionOptions{.width = KernelWidth::kAverage});
  KernelRegression fixed(KernelRegressionOptions{.widths = {1}});
  KernelRegression learned(KernelRegressionOptions{.width = KernelWidth::kLearned, .widths = {}});
  std::printf("average: %.2f\nwidth 1: %.2f\n", SquaredErrors(average, data), SquaredErrors(fixed, data));
  Train(learned, data);
  if (count <= 2) return 0;

  std::vector<std::string> pictures;
  Draw(average, "Average", data, &pictures);
  Draw(fixed, "Width 1", data, &pictures);
  Draw(learned, "Learned width", data, &pictures);
  std::ofstream file(arguments[2]);
  file << regard::view::Arrange(pictures, 2);
  file.close();
  if (!file) {
    std::fprintf(stderr, "cannot write %s\n", arguments[2]);
    return 1;
  }
  std::printf("picture: %s\n", arguments[2]);
  return 0;
}
