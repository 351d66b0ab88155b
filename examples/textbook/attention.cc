// The weights of every attention module over one short sentence, each module's as one grid of heatmaps:
// without parameters, trainable, restricted, in several heads, soft and hard. Embeddings and parameters are
// random, so the pictures show what each rule allows and shares, not what it learns.
//
//   attention FOLDER [SEED]
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "nn/choice_attention.h"
#include "nn/multi_head.h"
#include "nn/self_attention.h"
#include "view/attention_view.h"

namespace {

using torch::Tensor;
using namespace regard::nn;

const std::vector<std::string> kWords = {"the", "key", "that", "opens", "the", "red", "door"};
constexpr std::int64_t kWidth = 16;

struct Picture {
  std::string file, title;
  std::vector<std::string> rows, columns;
  std::vector<Tensor> weights;  // [1, L, L] or [1, heads, L, L]: row after row of the grid
};

Tensor SimpleWeights(const Tensor& x, regard::nn::ScoreKind score) {
  return SimpleSelfAttention(score)->forward(x, {}, true).weights;
}

Tensor SelfWeights(const Tensor& x, SelfAttentionOptions options) {
  options.input_size = kWidth, options.output_size = 8;
  return SelfAttention(options)->forward(x, {}, true).weights;
}

Tensor HeadWeights(const Tensor& x, const MultiHeadOptions& options, bool causal) {
  AttendOptions call;
  call.causal = causal;
  call.return_weights = true;
  return MultiHeadAttention(options)->SelfAttend(x, call).weights;
}

Tensor Chosen(const Tensor& x) {
  ChoiceAttention hard(AttentionKind::kHard);
  hard->eval();
  const Tensor index = hard->forward(x, x, x).index;
  return torch::one_hot(index, x.size(1)).to(torch::kFloat);
}

std::vector<Picture> Draw(const Tensor& x) {
  const std::int64_t length = x.size(1);
  SideBySideHeads side_by_side(2,
                               SelfAttentionOptions{.input_size = kWidth, .output_size = 8, .causal = true});
  return {
      {"without_parameters",
       "Attention without parameters",
       {""},
       {"average", "dot", "scaled dot", "cosine"},
       {AveragePool(x, length, {}, true).weights, SimpleWeights(x, ScoreKind::kDot),
        SimpleWeights(x, ScoreKind::kScaledDot), SimpleWeights(x, ScoreKind::kCosine)}},
      {"trainable",
       "Trainable self-attention",
       {""},
       {"matrices", "linear layers", "with biases"},
       {SelfWeights(x, {.linear = false}), SelfWeights(x, {}), SelfWeights(x, {.bias = true})}},
      {"restricted",
       "Who may see whom",
       {""},
       {"all", "causal", "local, 1 each side"},
       {SelfWeights(x, {}), SelfWeights(x, {.causal = true, .context_length = length}),
        SelfWeights(x, {.window = 1})}},
      {"side_by_side",
       "Causal heads side by side",
       {""},
       {"head 0", "head 1"},
       {side_by_side->forward(x, {}, true).weights}},
      {"multi_head",
       "Multi-head attention, a score for each head",
       {"all", "causal"},
       {"dot 0", "dot 1", "additive 0", "additive 1"},
       {HeadWeights(x,
                    {.embed_dim = kWidth,
                     .num_heads = 4,
                     .scores = {ScoreKind::kScaledDot, ScoreKind::kScaledDot, ScoreKind::kAdditive,
                                ScoreKind::kAdditive}},
                    false),
        HeadWeights(x,
                    {.embed_dim = kWidth,
                     .num_heads = 4,
                     .scores = {ScoreKind::kScaledDot, ScoreKind::kScaledDot, ScoreKind::kAdditive,
                                ScoreKind::kAdditive}},
                    true)}},
      {"soft_and_hard",
       "Soft and hard attention",
       {""},
       {"soft", "hard: the likeliest"},
       {ChoiceAttention(AttentionKind::kSoft)->forward(x, x, x, {}, true).weights, Chosen(x)}},
  };
}

void Write(const Picture& picture, const std::string& path) {
  std::vector<Tensor> flat;
  for (const Tensor& weights : picture.weights) flat.push_back(weights.to(torch::kFloat).flatten());
  const Tensor all = torch::cat(flat).contiguous();
  const auto length = static_cast<std::int64_t>(kWords.size());
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(picture.rows.size()),
                                           static_cast<std::int64_t>(picture.columns.size()), length, length};
  regard::view::AttentionDocument grid = regard::view::GridFromWeights(
      picture.title, {all.data_ptr<float>(), static_cast<std::size_t>(all.numel())},
      std::span<const std::int64_t, 4>(shape.data(), 4), {picture.rows, picture.columns, kWords, kWords});
  grid.query_axis = "query";
  grid.key_axis = "key";
  std::ofstream file(path);
  file << regard::view::SvgDocument(grid);
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: attention FOLDER [SEED]\n");
    return 2;
  }
  torch::manual_seed(count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1);
  const torch::NoGradGuard no_grad;
  try {
    // The same word has the same embedding.
    const Tensor table = torch::randn({6, kWidth}), words = torch::tensor({0, 1, 2, 3, 0, 4, 5});
    for (const Picture& picture : Draw(table.index_select(0, words).unsqueeze(0))) {
      const std::string path = std::string(arguments[1]) + "/" + picture.file + ".svg";
      Write(picture, path);
      std::printf("%s: %s\n", picture.title.c_str(), path.c_str());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
