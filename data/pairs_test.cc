#include "data/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "data/test_files.h"
#include "engine/base/error.h"

namespace regard::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Lines(const std::string& text, Utf8Policy utf8 = Utf8Policy::kError) {
  std::istringstream in(text);
  return ReadLines(in, "test", utf8);
}

class Pairs : public TestFolder {};

// Text case 10.
TEST_F(Pairs, FirstTwoColumnsAndTheRestIgnored) {
  const PairData data = ReadTsv(Write("a.tsv", "Go.\tVa !\tCC-BY 2.0\tmore\nHi.\tSalut.\n"));
  ASSERT_EQ(data.pairs.size(), 2u);
  EXPECT_EQ(data.pairs[0].source, "Go.");
  EXPECT_EQ(data.pairs[0].target, "Va !");
  EXPECT_EQ(data.pairs[1].target, "Salut.");
  EXPECT_THAT(data.report.Messages(), IsEmpty());
}

// Text case 5.
TEST_F(Pairs, LimitIsTheNumberOfPairs) {
  std::string text = "one column\n\n";
  for (int i = 0; i < 1000; ++i) text += "source " + std::to_string(i) + "\ttarget\n";
  const PairData data = ReadTsv(Write("a.tsv", text), {.limit = 600});
  EXPECT_EQ(data.pairs.size(), 600u);
  EXPECT_EQ(data.report.pairs, 600);
  EXPECT_EQ(data.pairs.back().source, "source 599");
}

// Text case 9.
TEST_F(Pairs, OnlyLineFeedEndsALine) {
  const PairData data = ReadTsv(Write("a.tsv",
                                      "\xEF\xBB\xBF"
                                      "a\xE2\x80\xA8"
                                      "b\tc\xC2\x85"
                                      "d\x0C"
                                      "e\r\nf\rg\th\r\n"));
  ASSERT_EQ(data.pairs.size(), 2u);
  EXPECT_EQ(data.pairs[0].source,
            "a\xE2\x80\xA8"
            "b");
  EXPECT_EQ(data.pairs[0].target,
            "c\xC2\x85"
            "d\x0C"
            "e");
  EXPECT_EQ(data.pairs[1].source, "f g");
  EXPECT_EQ(data.pairs[1].target, "h");
}

// Text case 10.
TEST_F(Pairs, SkippedLinesAreCountedAndTheFirstIsNamed) {
  const std::string path = Write("a.tsv", "a\tb\nalone\nc\td\n\tno source\nno target\t \nalone\n");
  const PairData data = ReadTsv(path);
  EXPECT_EQ(data.pairs.size(), 2u);
  EXPECT_EQ(data.report.lines, 6);
  EXPECT_THAT(data.report.Messages(),
              ElementsAre(path + ": 2 lines with one column skipped, the first is line 2",
                          path + ": 2 lines with an empty side skipped, the first is line 4"));
}

// Text case 11.
TEST_F(Pairs, NotUtf8IsAnErrorWithLineAndByte) {
  const std::string path = Write("a.tsv",
                                 "\xEF\xBB\xBF"
                                 "a\tb\r\nc\xC3\td\n");
  EXPECT_EQ(ErrorOf([&] { ReadTsv(path); }), path + ": line 2: not UTF-8 at byte 9 of the file (0xC3)");
  const PairData data = ReadTsv(path, {.utf8 = Utf8Policy::kReplace});
  EXPECT_EQ(data.pairs[1].source, "c\xEF\xBF\xBD");
  EXPECT_THAT(data.report.Messages(),
              ElementsAre(path + ": 1 line with bytes that are not UTF-8 replaced: line 2"));
}

TEST_F(Pairs, ReverseSwapsTheSides) {
  const PairData data = ReadTsv(Write("a.tsv", "a\tb\n"), {.reverse = true});
  EXPECT_EQ(data.pairs[0].source, "b");
  EXPECT_EQ(data.pairs[0].target, "a");
}

TEST_F(Pairs, UnusableFilesAreOneClearError) {
  EXPECT_THAT(ErrorOf([&] { ReadPairs(Path("none.tsv")); }),
              AllOf(HasSubstr("none.tsv"), HasSubstr("No such file")));
  EXPECT_THAT(ErrorOf([&] { ReadPairs(Write("empty.tsv", "")); }),
              HasSubstr("empty.tsv: empty; expected lines"));
  EXPECT_THAT(ErrorOf([&] { ReadTsv(Path("")); }), HasSubstr("a folder; expected a file"));
  EXPECT_THAT(ErrorOf([&] { ReadPairs(Path("")); }), HasSubstr("no .mo or .po file"));
  EXPECT_THAT(ErrorOf([&] { ReadPairs(Write("one.tsv", "alone\nalone\n")); }),
              AllOf(HasSubstr("no sentence pair"), HasSubstr("2 lines with one column skipped")));
  EXPECT_THAT(ErrorOf([&] { ReadPairs("xx"); }), HasSubstr("xx: neither a file nor an installed language"));
  EXPECT_THROW(ReadTsv(Write("b.tsv", "a\tb\n"), {.limit = -1}), UsageError);
  if (::geteuid() != 0) {
    const std::string secret = Write("secret.tsv", "a\tb\n");
    ::chmod(secret.c_str(), 0);
    EXPECT_THAT(ErrorOf([&] { ReadTsv(secret); }), HasSubstr("Permission denied"));
  }
}

TEST_F(Pairs, ParallelFilesAreReadLineByLine) {
  const PairData data = ReadParallel(Write("a.en", "a\n\nc\n"), Write("a.fr", "x\ny\nz"));
  ASSERT_EQ(data.pairs.size(), 2u);
  EXPECT_EQ(data.pairs[1].source, "c");
  EXPECT_EQ(data.pairs[1].target, "z");
  EXPECT_EQ(data.report.empty_side.count, 1);
  EXPECT_EQ(data.report.empty_side.first_line, 2);
  EXPECT_EQ(ErrorOf([&] { ReadParallel(Write("a.en", "a\nb\nc\n"), Write("a.fr", "x\n")); }),
            Path("a.fr") + " has 1 lines and " + Path("a.en") + " has 3; expected as many");
}

// Text cases 8, 9 and 11.
TEST(Lines, AsManyOutAsIn) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += i % 3 == 0 ? "\n" : i % 3 == 1 ? "   \r\n" : "word\xE2\x80\xA9\n";
  EXPECT_EQ(Lines(text).size(), 3000u);
  EXPECT_THAT(Lines(""), IsEmpty());
  EXPECT_THAT(Lines("\xEF\xBB\xBF"), IsEmpty());
  EXPECT_THAT(Lines("\n"), ElementsAre(""));
  EXPECT_THAT(Lines("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(Lines("a\r"), ElementsAre("a "));
  EXPECT_THAT(Lines("a\xFF"
                    "b\xE2\x82",
                    Utf8Policy::kReplace),
              ElementsAre("a\xEF\xBF\xBD"
                          "b\xEF\xBF\xBD"));
}

TEST_F(Pairs, SharedSentencesAreAllRead) {
  const std::string path = SharedFile("data/fra-eng.tsv");
  if (path.empty()) GTEST_SKIP() << kNoSharedData;
  const PairData all = ReadPairs(path), first = ReadPairs(path, {.limit = 600});
  EXPECT_EQ(all.pairs.size(), 76037u);
  ASSERT_EQ(first.pairs.size(), 600u);
  EXPECT_EQ(first.pairs[599].source, all.pairs[599].source);
}

}  // namespace
}  // namespace regard::data
