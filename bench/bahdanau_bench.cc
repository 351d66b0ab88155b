// Trains the published small translator (embedding and hidden width 32, two layers, dropout .1, batches of
// 64, 10 steps, Adam with rate .005, clipping at 1) on the first lines of a TSV of sentence pairs, and prints
// one line of JSON as bench/peers/bahdanau_eager.py does. Run by bench/bahdanau.py.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "data/pairs.h"
#include "data/tokenizer.h"
#include "engine/base/error.h"
#include "models/translation.h"
#include "train/optimizer.h"

namespace regard {
namespace {

constexpr std::int64_t kSteps = 10, kBatch = 64;
using TokenLists = std::vector<std::vector<std::int64_t>>;

struct Side {
  std::unique_ptr<data::Tokenizer> tokenizer;
  TokenLists lists;  // each ends with kEos

  std::vector<std::int64_t> Encode(const std::string& text) const {
    auto ids = tokenizer->Encode(text);
    ids.resize(std::min<std::size_t>(ids.size(), kSteps - 1));
    ids.push_back(data::kEos);
    return ids;
  }
};

Side MakeSide(const std::vector<std::string>& texts) {
  data::TokenizerOptions options;
  options.lower_case = true;
  options.splitting = data::WordSplitting::kBook;
  options.min_count = 2;
  Side side{data::BuildTokenizer(texts, options), {}};
  for (const auto& text : texts) side.lists.push_back(side.Encode(text));
  return side;
}

// Rows as one padded tensor, each after the tokens in `start`.
torch::Tensor Padded(const TokenLists& lists, const std::vector<std::int64_t>& rows,
                     const std::vector<std::int64_t>& start) {
  std::size_t width = 0;
  for (const auto row : rows) width = std::max(width, lists[row].size() + start.size());
  std::vector<std::int64_t> values;
  for (const auto row : rows) {
    values.insert(values.end(), start.begin(), start.end());
    values.insert(values.end(), lists[row].begin(), lists[row].end());
    values.resize(values.size() + width - start.size() - lists[row].size(), data::kPad);
  }
  return torch::tensor(values, torch::kInt64).view({static_cast<std::int64_t>(rows.size()), -1});
}

torch::Tensor Lengths(const TokenLists& lists, const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> lengths;
  for (const auto row : rows) lengths.push_back(static_cast<std::int64_t>(lists[row].size()));
  return torch::tensor(lengths, torch::kInt64);
}

struct Outcome {
  std::int64_t tokens = 0, steps = 0;
  double seconds = 0, loss = 0;
};

Outcome Train(models::TranslationModel& model, const Side& source, const Side& target, int epochs,
              std::uint64_t seed) {
  train::Adam adam(model, {});
  std::vector<std::int64_t> order(source.lists.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  Outcome outcome;
  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    double nats = 0;
    std::int64_t tokens = 0;
    for (std::size_t at = 0; at < order.size(); at += kBatch) {
      const std::vector<std::int64_t> rows(order.begin() + at,
                                           order.begin() + std::min(order.size(), at + kBatch));
      const models::PairBatch batch{Padded(source.lists, rows, {}), Lengths(source.lists, rows),
                                    Padded(target.lists, rows, {data::kBos}), Lengths(target.lists, rows)};
      adam.ZeroGrad();
      const auto loss = model.Loss(batch, 0, random());
      loss.sum.backward();
      adam.Step(0.005, static_cast<double>(loss.tokens), 1.0);
      nats += loss.nats.item<double>();
      tokens += loss.tokens;
      ++outcome.steps;
    }
    outcome.tokens += tokens;
    outcome.loss = nats / static_cast<double>(tokens);
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

std::vector<std::string> Translations(models::TranslationModel& model, const Side& source,
                                      const Side& target) {
  model.eval();
  TokenLists lists;
  for (const char* text : {"go .", "i lost .", "he's calm .", "i'm home ."})
    lists.push_back(source.Encode(text));
  std::vector<std::string> translations;
  for (const auto& found :
       model.Translate(Padded(lists, {0, 1, 2, 3}, {}), Lengths(lists, {0, 1, 2, 3}), {})) {
    translations.push_back(target.tokenizer->Decode(found.tokens));
  }
  return translations;
}

void Run(const std::string& path, std::map<std::string, int> options) {
  at::set_num_threads(options["--threads"]);
  torch::manual_seed(options["--seed"]);
  data::PairOptions pair_options;
  pair_options.limit = options["--lines"];
  std::vector<std::string> texts[2];
  for (const auto& pair : data::ReadPairs(path, pair_options).pairs) {
    texts[0].push_back(pair.source);
    texts[1].push_back(pair.target);
  }
  const Side source = MakeSide(texts[0]), target = MakeSide(texts[1]);
  const auto model = models::MakeTranslationModel({{"model", "bahdanau"},
                                                   {"source_vocab", source.tokenizer->size()},
                                                   {"target_vocab", target.tokenizer->size()},
                                                   {"embed_dim", 32},
                                                   {"hidden_dim", 32},
                                                   {"num_layers", 2},
                                                   {"dropout", 0.1},
                                                   {"max_source", kSteps},
                                                   {"max_target", kSteps}});
  const auto outcome = Train(*model, source, target, options["--epochs"], options["--seed"]);
  const nlohmann::json result{{"tokens_per_second", static_cast<double>(outcome.tokens) / outcome.seconds},
                              {"step_ms", 1000 * outcome.seconds / static_cast<double>(outcome.steps)},
                              {"loss", outcome.loss},
                              {"translations", Translations(*model, source, target)}};
  std::cout << result.dump() << "\n";
}

}  // namespace
}  // namespace regard

int main(int argc, char** argv) {
  std::map<std::string, int> options{{"--lines", 600}, {"--epochs", 10}, {"--seed", 0}, {"--threads", 2}};
  bool usage = argc < 2 || argc % 2 != 0;
  for (int i = 2; i + 1 < argc && !usage; i += 2) {
    usage = options.count(argv[i]) == 0;
    options[argv[i]] = std::atoi(argv[i + 1]);
  }
  if (usage) {
    std::cerr << "usage: bahdanau_bench DATA [--lines N] [--epochs N] [--seed N] [--threads N]\n";
    return 2;
  }
  try {
    regard::Run(argv[1], options);
  } catch (const regard::Error& e) {
    std::cerr << "bahdanau_bench: " << e.what() << "\n";
    return 1;
  }
  return 0;
}
