#include "cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "engine/base/error.h"

namespace regard::cli {
namespace {

using ::testing::HasSubstr;

struct Values {
  std::int64_t beam = 4;
  double dropout = 0.1;
  std::string schedule = "constant";
  std::string run;
};

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() : app_("Translates", "regard") {
    app_.formatter(std::make_shared<HelpFormatter>());
    AddText(app_, "RUN", "", values_.run, "Folder of the model")->required();
    AddInteger(app_, "-b,--beam", "N", values_.beam, 1, "Hypotheses kept", 100);
    AddReal(app_, "--dropout", "P", values_.dropout, {.min = 0, .max = 1, .below = true}, "Dropout");
    AddChoice(app_, "--schedule", values_.schedule, {"constant", "cosine"}, "How the rate changes");
  }

  void Parse(const std::string& line) { app_.parse(line, false); }

  std::string WhyNot(const std::string& line) {
    try {
      Parse(line);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  Values values_;
  CLI::App app_;
};

TEST_F(OptionsTest, ReadsValues) {
  Parse("here -b 7 --dropout=.25 --schedule cosine");
  EXPECT_EQ(values_.run, "here");
  EXPECT_EQ(values_.beam, 7);
  EXPECT_EQ(values_.dropout, 0.25);
  EXPECT_EQ(values_.schedule, "cosine");
}

TEST_F(OptionsTest, WrongValueNamesOptionValueAndWhatWasExpected) {
  EXPECT_EQ(WhyNot("here --beam two"), "--beam two: expected a whole number from 1 to 100");
  EXPECT_EQ(WhyNot("here --beam 0"), "--beam 0: expected a whole number from 1 to 100");
  EXPECT_EQ(WhyNot("here --beam 1.5"), "--beam 1.5: expected a whole number from 1 to 100");
  EXPECT_EQ(WhyNot("here --dropout 1"), "--dropout 1: expected a number, at least 0 and less than 1");
  EXPECT_EQ(WhyNot("here --dropout nan"), "--dropout nan: expected a number, at least 0 and less than 1");
  EXPECT_EQ(WhyNot("here --schedule cosin"),
            "--schedule cosin: expected constant or cosine (did you mean cosine?)");
}

TEST_F(OptionsTest, PresetYieldsToWhatWasGiven) {
  Parse("here --beam 7");
  ApplyPreset(app_, {{"--beam", "2"}, {"--dropout", "0.5"}});
  EXPECT_EQ(values_.beam, 7);
  EXPECT_EQ(values_.dropout, 0.5);
}

TEST_F(OptionsTest, HelpShowsEveryOptionWithItsDefault) {
  const std::string help = app_.help();
  EXPECT_THAT(help, HasSubstr("Usage: regard RUN [OPTION]..."));
  EXPECT_THAT(help, HasSubstr("  -b, --beam N                Hypotheses kept [4]\n"));
  EXPECT_THAT(help, HasSubstr("[constant]\n"));
}

}  // namespace
}  // namespace regard::cli
