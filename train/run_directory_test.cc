#include "train/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/error.h"
#include "train/scratch_folder.h"
#include "train/toy_task.h"

namespace regard::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectory Create(const std::string& path, bool force = false, const std::string& vocabulary = "a b c") {
    return RunDirectory::Create(
        path, "toy", {{"model", {{"size", 16}}}}, WeightsOf(task_.module()),
        [&](const std::string& folder) { WriteAll(folder + "/words.txt", vocabulary); }, force);
  }
  void ExpectOpenFails(const std::string& path, const std::string& part) {
    EXPECT_THAT([&] { RunDirectory::Open(path, "toy"); }, ThrowsMessage<Error>(HasSubstr(part)));
  }

  const ScratchFolder folder_;
  const std::string run_ = folder_ / "run";
  ToyTask task_{16};
};

TEST_F(RunDirectoryTest, OpensWhatWasCreated) {
  Create(folder_ / "deep/in/run/");
  const RunDirectory run = RunDirectory::Open(folder_ / "deep/in/run", "toy");
  EXPECT_EQ(run.config().at("model").at("size"), 16);
  EXPECT_EQ(ReadAll(run.File("words.txt")), "a b c");
  ToyTask other(16);
  torch::NoGradGuard no_grad;
  other.model->first->weight.zero_();
  other.model->scale.zero_();
  run.LoadWeights(other.module());
  const NamedTensors expected = WeightsOf(task_.module()), actual = WeightsOf(other.module());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(torch::equal(expected[i].second, actual[i].second)) << expected[i].first;
  }
  // Nothing else is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "deep/in"), fs::directory_iterator()), 1);
}

TEST_F(RunDirectoryTest, AnExistingRunIsOnlyReplacedWithForce) {
  Create(run_);
  EXPECT_THAT(
      [&] { Create(run_); },
      ThrowsMessage<UsageError>(run_ + " already holds a run: continue it with --resume, replace it with "
                                       "--force, or name another directory"));
  EXPECT_EQ(ReadAll(run_ + "/words.txt"), "a b c");
  Create(run_, true, "d e f");
  EXPECT_EQ(ReadAll(RunDirectory::Open(run_, "toy").File("words.txt")), "d e f");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / ""), fs::directory_iterator()), 1);
}

TEST_F(RunDirectoryTest, AFailedReplacementLeavesTheOldRun) {
  Create(run_);
  EXPECT_THROW(RunDirectory::Create(
                   run_, "toy", {}, WeightsOf(task_.module()),
                   [](const std::string&) { throw Error("the vocabulary cannot be written"); }, true),
               Error);
  EXPECT_EQ(ReadAll(RunDirectory::Open(run_, "toy").File("words.txt")), "a b c");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / ""), fs::directory_iterator()), 1);
}

TEST_F(RunDirectoryTest, AFolderOfOtherThingsIsNeverReplaced) {
  fs::create_directory(run_);
  EXPECT_NO_THROW(RunDirectory::CheckVacant(run_, false));
  WriteAll(run_ + "/thesis.tex", "years of work");
  EXPECT_THAT([&] { Create(run_, true); },
              ThrowsMessage<UsageError>(run_ + " exists and is not a run directory: name another one"));
  // Nor are weights of another program.
  WriteAll(run_ + "/config.json", "{\"model_type\": \"bert\"}");
  WriteAll(run_ + "/model.safetensors", "");
  EXPECT_THROW(RunDirectory::CheckVacant(run_, true), UsageError);
  EXPECT_EQ(ReadAll(run_ + "/thesis.tex"), "years of work");
}

TEST_F(RunDirectoryTest, UnwritablePlacesAreNamed) {
  WriteAll(folder_ / "file", "");
  EXPECT_THAT([&] { Create(folder_ / "file/run"); }, ThrowsMessage<Error>(HasSubstr(folder_ / "file")));
  EXPECT_THAT([&] { Create("/proc/run"); },
              ThrowsMessage<Error>(HasSubstr("cannot create run directory /proc/run: ")));
  EXPECT_THAT([&] { Create(""); }, ThrowsMessage<UsageError>("the run directory has an empty name"));
}

TEST_F(RunDirectoryTest, WhatIsNoRunIsNamed) {
  ExpectOpenFails(run_, run_ + ": there is no such run directory");
  fs::create_directory(run_);
  ExpectOpenFails(run_, run_ + " is not a run directory: it has no config.json");
  WriteAll(folder_ / "file", "");
  ExpectOpenFails(folder_ / "file", "is a file, expected a run directory");
}

TEST_F(RunDirectoryTest, AnotherVersionOrKindIsNamed) {
  Create(run_);
  const std::string config = ReadAll(run_ + "/config.json");
  nlohmann::json other = nlohmann::json::parse(config);
  other["format"] = 2;
  other["regard"] = "9.9";
  WriteAll(run_ + "/config.json", other.dump());
  EXPECT_THAT([&] { RunDirectory::Open(run_, "toy"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("the run has format 2, written by regard \"9.9\""),
                                         HasSubstr("reads format 1"))));
  WriteAll(run_ + "/config.json", config);
  EXPECT_THAT([&] { RunDirectory::Open(run_, "translation"); },
              ThrowsMessage<Error>(run_ + ": a run of kind \"toy\", expected \"translation\""));
}

TEST_F(RunDirectoryTest, CutOrForeignFilesAreNamed) {
  Create(run_);
  const std::string config = ReadAll(run_ + "/config.json");
  WriteAll(run_ + "/config.json", config.substr(0, config.size() / 2));
  ExpectOpenFails(run_, run_ + "/config.json is cut short or damaged");
  WriteAll(run_ + "/config.json", config);
  WriteAll(run_ + "/words.txt", "a b d");
  ExpectOpenFails(run_, run_ + "/words.txt does not belong to this run or is cut short");
  fs::remove(run_ + "/words.txt");
  ExpectOpenFails(run_, run_ + "/words.txt");
  WriteAll(run_ + "/words.txt", "a b c");
  const std::string weights = ReadAll(run_ + "/model.safetensors");
  WriteAll(run_ + "/model.safetensors", weights.substr(0, weights.size() - 1));
  const RunDirectory run = RunDirectory::Open(run_, "toy");
  EXPECT_THAT([&] { run.LoadWeights(task_.module()); },
              ThrowsMessage<Error>(HasSubstr(run_ + "/model.safetensors")));
  fs::remove(run_ + "/model.safetensors");
  ExpectOpenFails(run_, run_ + ": the run is cut short, it has no model.safetensors");
}

TEST_F(RunDirectoryTest, WeightsThatDoNotFitAreNamed) {
  RunDirectory run = Create(run_);
  const std::string file = run_ + "/model.safetensors";
  const NamedTensors good = WeightsOf(task_.module());
  NamedTensors weights = good;
  weights[0].second = torch::zeros({17, 5});
  run.SaveWeights(weights);
  const torch::Tensor before = task_.model->second->weight.detach().clone();
  EXPECT_THAT(
      [&] { run.LoadWeights(task_.module()); },
      ThrowsMessage<Error>(file + ": the weight \"first.weight\" is Float [17, 5], the model expects Float "
                                  "[16, 5]"));
  weights = good;
  weights.erase(weights.begin());
  run.SaveWeights(weights);
  EXPECT_THAT([&] { run.LoadWeights(task_.module()); },
              ThrowsMessage<Error>(file + ": the weight \"first.weight\" is missing"));
  weights = good;
  weights.emplace_back("third.weight", torch::zeros({1}));
  run.SaveWeights(weights);
  EXPECT_THAT([&] { run.LoadWeights(task_.module()); },
              ThrowsMessage<Error>(file + ": unexpected weight \"third.weight\""));
  EXPECT_TRUE(torch::equal(before, task_.model->second->weight));
}

TEST_F(RunDirectoryTest, FilesAreReadableFromPython) {
  const std::string python = REGARD_SOURCE_DIR "/.venv/bin/python";
  if (!fs::exists(python)) GTEST_SKIP() << "no .venv in the source directory: the Python check is left out";
  RunDirectory run = Create(run_);
  run.SaveCheckpoint({{{"step", 3}}, WeightsOf(task_.module()), {{"a.mean", torch::ones({2})}}});
  WriteAll(folder_ / "check.py",
           "import json, struct, sys, torch\n"
           "run = sys.argv[1]\n"
           "c = torch.load(run + '/optimizer.pt', weights_only=False)\n"
           "assert c['format'] == 1 and json.loads(c['state']) == {'step': 3}, c\n"
           "assert c['optimizer']['a.mean'].tolist() == [1, 1]\n"
           "raw = open(run + '/model.safetensors', 'rb').read()\n"
           "n, = struct.unpack('<Q', raw[:8])\n"
           "header = json.loads(raw[8:8 + n])\n"
           "w = header['first.weight']\n"
           "assert w['dtype'] == 'F32' and w['shape'] == [16, 5]\n"
           "b, e = w['data_offsets']\n"
           "t = torch.frombuffer(bytearray(raw[8 + n + b:8 + n + e]), dtype=torch.float32).view(16, 5)\n"
           "assert torch.equal(t, c['weights']['first.weight'])\n");
  const std::string command = python + " " + (folder_ / "check.py") + " " + run_;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace regard::train
