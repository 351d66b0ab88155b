// A small GPT-2 of random weights, as its reference implementation wrote it (tests/data/gpt2/make.py).
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "data/file.h"
#include "models/gpt.h"
#include "models/gpt2_layout.h"
#include "train/run_directory.h"

namespace regard::train {
namespace {

const std::string kFolder = REGARD_SOURCE_DIR "/tests/data/gpt2/";

std::map<std::string, torch::Tensor> Read(const std::string& file) {
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& [name, tensor] : ReadWeights(kFolder + file)) tensors[name] = tensor;
  return tensors;
}

std::shared_ptr<models::Gpt> Load() {
  const auto config = nlohmann::json::parse(data::ReadFile(kFolder + "config.json"));
  auto model = std::make_shared<models::Gpt>(models::FromGpt2Config(config));
  models::FromGpt2(ReadWeights(kFolder + "model.safetensors"), *model, "model.safetensors");
  model->eval();
  return model;
}

TEST(Gpt2, TheReferencesFilesGiveTheReferencesLogits) {
  const torch::NoGradGuard no_grad;
  auto expected = Read("expected.safetensors");
  const torch::Tensor logits = Load()->Logits(expected["tokens"]);
  ASSERT_EQ(logits.sizes(), expected["logits"].sizes());
  EXPECT_GT(expected["logits"].std().item<double>(), 0.5);
  EXPECT_LT((logits - expected["logits"]).abs().max().item<double>(), 2e-5);
}

TEST(Gpt2, WhatIsExportedIsWhatTheReferenceWrote) {
  auto theirs = Read("model.safetensors");
  const models::Weights ours = models::ToGpt2(*Load());
  EXPECT_EQ(ours.size(), theirs.size());
  for (const auto& [name, tensor] : ours) {
    const auto found = theirs.find("transformer." + name);
    ASSERT_NE(found, theirs.end()) << name;
    EXPECT_TRUE(torch::equal(tensor, found->second)) << name;
  }
}

}  // namespace
}  // namespace regard::train
