// Writes text with a GPT of fresh weights (6 layers, 6 heads, width 384, 65 tokens, context 1,024), a
// sequence at a time: each token from the caches of those before it, and, for comparison, each from all
// before it read again. Prints one line of JSON, seconds a token of both. Run by bench/generation.py.
#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "data/random.h"
#include "data/sampling.h"
#include "engine/base/error.h"
#include "models/language.h"

namespace regard {
namespace {

// Seconds a token.
double Write(models::LanguageModel& model, std::int64_t tokens, bool cached) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::int64_t> text{0};
  data::Random random(1);
  auto decoder = model.Decode();
  std::size_t seen = 0;
  while (static_cast<std::int64_t>(text.size()) <= tokens) {
    if (!cached) decoder = model.Decode(), seen = 0;
    const auto count = static_cast<std::int64_t>(text.size() - seen);
    const torch::Tensor logits =
        decoder->Step(torch::from_blob(text.data() + seen, {1, count}, torch::kLong));
    seen = text.size();
    text.push_back(data::SampleToken({logits.data_ptr<float>(), static_cast<std::size_t>(logits.size(1))}, {},
                                     text, random));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(tokens);
}

void Run(std::int64_t tokens, std::int64_t runs) {
  torch::manual_seed(0);
  const auto model = models::MakeLanguageModel({{"model", "gpt"},
                                                {"vocab", 65},
                                                {"context", 1024},
                                                {"embed_dim", 384},
                                                {"num_heads", 6},
                                                {"num_layers", 6}});
  model->eval();
  Write(*model, 32, true);  // threads and memory start
  nlohmann::json cached, uncached;
  for (std::int64_t n = 0; n < runs; ++n) cached.push_back(Write(*model, tokens, true));
  uncached.push_back(Write(*model, tokens, false));
  std::cout << nlohmann::json{{"cached", cached}, {"uncached", uncached}} << "\n";
}

}  // namespace
}  // namespace regard

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: generation_bench TOKENS RUNS THREADS\n";
    return 2;
  }
  torch::set_num_threads(std::atoi(argv[3]));
  regard::Run(std::atoi(argv[1]), std::atoi(argv[2]));
  return 0;
}
