#include "models/image_classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/base/error.h"

namespace regard::models {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

json Config(const char* attention) {
  json config = {{"model", "image_transformer"},
                 {"rows", 4},
                 {"columns", 6},
                 {"channels", 2},
                 {"classes", 3},
                 {"patch", 2},
                 {"embed_dim", 8},
                 {"num_heads", 2},
                 {"num_layers", 2},
                 {"dropout", 0.1},
                 {"attention", attention}};
  if (std::string(attention) == "hard") config.update({{"glimpses", 3}, {"entropy", 0.01}});
  return config;
}

// Weights large enough that every part matters.
std::shared_ptr<ClassificationModel> Random(const json& config) {
  torch::manual_seed(1);
  auto model = MakeClassificationModel(config);
  torch::NoGradGuard no_grad;
  for (auto& p : model->parameters()) p.add_(torch::randn_like(p), 0.5);
  return model;
}

Tensor Images(std::int64_t count) {
  torch::manual_seed(5);
  return torch::rand({count, 4, 6, 2});
}

class ImageTransformers : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Attention, ImageTransformers, testing::Values("soft", "hard"));

TEST_P(ImageTransformers, AnImageIsClassifiedTheSameInAnyBatch) {
  const auto model = Random(Config(GetParam()));
  const Tensor images = Images(7);
  const Classification all = model->Classify(images);
  for (std::int64_t i = 0; i < 7; ++i) {
    const Classification one = model->Classify(images.narrow(0, i, 1));
    EXPECT_LT((one.log_probs - all.log_probs.narrow(0, i, 1)).abs().max().item<double>(), 1e-5);
    if (all.glimpses.defined()) {
      EXPECT_TRUE(one.glimpses.equal(all.glimpses.narrow(0, i, 1)));
    } else {
      EXPECT_LT((one.weights - all.weights.narrow(0, i, 1)).abs().max().item<double>(), 1e-6);
    }
  }
  EXPECT_NEAR(all.log_probs.exp().sum().item<double>(), 7, 1e-5);
}

TEST_P(ImageTransformers, EveryWeightHasAGradient) {
  const auto model = Random(Config(GetParam()));
  model->train();
  model->Loss({Images(5), torch::tensor({0, 1, 2, 0, 1})}, 0.1, 3).sum.backward();
  for (const auto& item : model->named_parameters()) {
    // The bias of keys moves all scores of a softmax alike: of in_proj_bias only a part has a gradient.
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0) << item.key();
  }
}

TEST_P(ImageTransformers, TheSeedDecidesTheLossWhileTraining) {
  const auto model = Random(Config(GetParam()));
  model->train();
  const ImageBatch batch{Images(5), torch::tensor({0, 1, 2, 0, 1})};
  const auto loss = [&](std::uint64_t seed) { return model->Loss(batch, 0, seed).sum.item<double>(); };
  EXPECT_EQ(loss(3), loss(3));
  EXPECT_NE(loss(3), loss(4));
}

TEST_P(ImageTransformers, TheLossInEvaluationIsThatOfItsProbabilities) {
  const auto model = Random(Config(GetParam()));
  model->eval();
  const ImageBatch batch{Images(5), torch::tensor({0, 1, 2, 0, 1})};
  const Tensor log_probs = model->Classify(batch.images).log_probs;
  const double expected = -log_probs.gather(1, batch.labels.unsqueeze(1)).sum().item<double>();
  EXPECT_NEAR(model->Loss(batch, 0, 0).nats.item<double>(), expected, 1e-4);
}

TEST(ImageTransformer, ItsConfigurationBuildsItAgain) {
  for (const char* attention : {"soft", "hard"}) {
    const auto model = Random(Config(attention)), again = Random(model->config());
    EXPECT_TRUE(model->Classify(Images(3)).log_probs.equal(again->Classify(Images(3)).log_probs));
  }
}

TEST(ImageTransformer, SoftWeightsSumToOneOverThePatches) {
  const Tensor weights = Random(Config("soft"))->Classify(Images(4)).weights;
  ASSERT_EQ(weights.sizes(), torch::IntArrayRef({4, 6}));
  EXPECT_LT((weights.sum(1) - 1).abs().max().item<double>(), 1e-5);
}

// What hard attention did not look at has no effect: not even a NaN.
TEST(ImageTransformer, PatchesNotLookedAtChangeNothing) {
  const auto model = Random(Config("hard"));
  const Tensor images = Images(20);
  const Classification before = model->Classify(images);
  ASSERT_EQ(before.glimpses.sizes(), torch::IntArrayRef({20, 3}));
  const Tensor seen = torch::zeros({20, 6}, torch::kBool).scatter_(1, before.glimpses, true);
  EXPECT_TRUE(seen.sum(1).eq(3).all().item<bool>());  // never one twice
  // Patch j is the pixels of rows 2 (j / 3), .. + 1 and columns 2 (j % 3), .. + 1.
  const Tensor mask = seen.view({20, 2, 3, 1}).repeat_interleave(2, 1).repeat_interleave(2, 2);
  const Tensor changed = torch::where(mask, images, std::numeric_limits<float>::quiet_NaN());
  const Classification after = model->Classify(changed);
  EXPECT_TRUE(after.glimpses.equal(before.glimpses));
  EXPECT_TRUE(after.log_probs.equal(before.log_probs));
  // What it did look at has one.
  const Tensor other = model->Classify(torch::where(mask, 1 - images, images)).log_probs;
  EXPECT_TRUE((other - before.log_probs).abs().amax(1).gt(1e-3).all().item<bool>());
}

// Images of 2 x 2 pixels, each a patch. The first tells in which of the next two the class is.
ImageBatch Signposts(std::int64_t count) {
  const Tensor images = torch::rand({count, 4}).round();
  const Tensor where = images.select(1, 0).to(torch::kLong) + 1;
  return {images.view({count, 2, 2, 1}), images.gather(1, where.unsqueeze(1)).squeeze(1).to(torch::kLong)};
}

TEST(ImageTransformer, HardAttentionLearnsToLookWhereWhatItSawPoints) {
  torch::manual_seed(2);
  const auto model = MakeClassificationModel({{"model", "image_transformer"},
                                              {"rows", 2},
                                              {"columns", 2},
                                              {"classes", 2},
                                              {"embed_dim", 16},
                                              {"num_layers", 1},
                                              {"num_heads", 2},
                                              {"attention", "hard"},
                                              {"glimpses", 2},
                                              {"entropy", 0.2}});
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.005));
  model->train();
  for (std::uint64_t step = 0; step < 400; ++step) {
    adam.zero_grad();
    const LossSum loss = model->Loss(Signposts(64), 0, step);
    (loss.sum / 64).backward();
    adam.step();
  }
  const ImageBatch test = Signposts(200);
  const Classification result = model->Classify(test.images);
  EXPECT_TRUE(result.log_probs.argmax(1).equal(test.labels));
  const Tensor first = test.images.view({200, 4}).select(1, 0).to(torch::kLong);
  EXPECT_TRUE(result.glimpses.select(1, 0).eq(0).all().item<bool>());
  EXPECT_TRUE(result.glimpses.select(1, 1).equal(first + 1));
}

TEST(ImageTransformer, SizesThatDoNotFitAreNamed) {
  const auto make = [](const char* attention, const json& change) {
    json config = Config(attention);
    config.update(change);
    return [config] { MakeClassificationModel(config); };
  };
  EXPECT_THAT(make("soft", {{"patch", 4}}),
              ThrowsMessage<regard::Error>(HasSubstr("4 x 4 pixels do not tile")));
  EXPECT_THAT(make("hard", {{"glimpses", 7}}), ThrowsMessage<regard::Error>(HasSubstr("at most 6")));
  EXPECT_THAT(make("soft", {{"attention", "none"}}),
              ThrowsMessage<regard::Error>(HasSubstr("expected \"soft\" or \"hard\"")));
  const auto model = Random(Config("soft"));
  EXPECT_THAT(
      [&] {
        model->Classify(torch::zeros({2, 4, 5, 2}));
      },
      ThrowsMessage<regard::Error>(HasSubstr("expected [images, 4, 6, 2]")));
}

}  // namespace
}  // namespace regard::models
