#include "data/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/pairs.h"
#include "data/test_files.h"

namespace regard::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kPo = R"(# A comment.
msgid ""
msgstr ""
"Project-Id-Version: test\n"
"Content-Type: text/plain; charset=UTF-8\n"

#: file.c:1
msgid "Open the \"file\"\n"
msgstr "Ouvrir le « fichier »\n"

#, fuzzy
#| msgid "before"
msgid "Unsure"
msgstr "Incertain"

msgctxt "menu"
msgid "Close"
msgstr "Fermer"

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d fichier"
msgstr[1] "%d fichiers"

msgid "A text "
"on two\tlines"
msgstr ""
"Un texte sur "
"deux lignes \303\251 \x21"

msgid "Untranslated"
msgstr ""

#~ msgid "obsolete"
#~ msgstr "obsol\303\250te"
)";

const std::vector<std::pair<std::string, std::string>> kPairs = {
    {"Open the \"file\"", "Ouvrir le « fichier »"},
    {"Close", "Fermer"},
    {"%d file", "%d fichier"},
    {"%d files", "%d fichiers"},
    {"A text on two lines", "Un texte sur deux lignes é !"}};

std::vector<std::pair<std::string, std::string>> Plain(const PairData& data) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Pair& pair : data.pairs) pairs.emplace_back(pair.source, pair.target);
  return pairs;
}

void Number(std::string& out, std::uint32_t value, bool big) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * (big ? 3 - i : i)));
}

// A .mo file of (id, translation) strings as they stand in it.
std::string Mo(const std::vector<std::pair<std::string, std::string>>& entries, bool big = false) {
  const auto count = static_cast<std::uint32_t>(entries.size());
  std::string head, ids, translations, texts;
  for (const std::uint32_t value : {0x950412deu, 0u, count, 28u, 28 + 8 * count, 0u, 0u})
    Number(head, value, big);
  const auto add = [&](std::string& table, const std::string& text) {
    Number(table, static_cast<std::uint32_t>(text.size()), big);
    Number(table, static_cast<std::uint32_t>(28 + 16 * count + texts.size()), big);
    texts += text + '\0';
  };
  for (const auto& [id, translation] : entries) add(ids, id);
  for (const auto& [id, translation] : entries) add(translations, translation);
  return head + ids + translations + texts;
}

std::string SomeMo(bool big = false) {
  using namespace std::string_literals;
  return Mo({{"", "Content-Type: text/plain; charset=ISO-8859-1\n"},
             {"%d file\0%d files"s, "%d fichier\0%d fichiers"s},
             {"menu\x04"
              "Close",
              "Fermer"},
             {"Summer", "\xC9t\xE9"},
             {"Untranslated", ""}},
            big);
}

class Catalogue : public TestFolder {};

TEST_F(Catalogue, PoText) {
  const PairData data = ReadPairs(Write("a.po", kPo));
  EXPECT_EQ(Plain(data), kPairs);
  EXPECT_THAT(data.report.Messages(),
              ElementsAre(Path("a.po") + ": 2 entries without a sure translation skipped, the first is "
                                         "entry 2"));
}

TEST_F(Catalogue, MoOfBothByteOrders) {
  for (const bool big : {false, true}) {
    const PairData data = ReadPairs(Write("a.mo", SomeMo(big)));
    EXPECT_THAT(Plain(data),
                ElementsAre(std::pair("%d file", "%d fichier"), std::pair("%d files", "%d fichiers"),
                            std::pair("Close", "Fermer"), std::pair("Summer", "Été")));
    EXPECT_EQ(data.report.untranslated.count, 1);
  }
}

TEST_F(Catalogue, MoCompiledByGettext) {
  if (std::system("command -v msgfmt >/dev/null") != 0) GTEST_SKIP() << "msgfmt (gettext) is not installed";
  Write("a.po", kPo);
  ASSERT_EQ(std::system(("msgfmt -o " + Path("a.mo") + " " + Path("a.po")).c_str()), 0);
  const auto pairs = Plain(ReadPairs(Path("a.mo")));
  EXPECT_THAT(pairs, ::testing::UnorderedElementsAreArray(kPairs));
}

TEST_F(Catalogue, FolderReadsAllByNameAndSkipsWhatIsNone) {
  Write("a.po", kPo);
  Write("b.mo", SomeMo());
  Write("c.mo", "not a catalogue");
  Write("d.txt", "a\tb\n");
  const PairData data = ReadPairs(folder());
  EXPECT_EQ(data.pairs.size(), kPairs.size() + 1);  // "Summer"; the others are there already
  EXPECT_EQ(data.report.files, 2);
  EXPECT_THAT(data.report.Messages(),
              ::testing::Contains(Path("c.mo") + ": not a catalogue that can be read, skipped"));
  EXPECT_EQ(ReadPairs(folder(), {.limit = 4}).pairs.size(), 4u);
}

TEST_F(Catalogue, BadOnesAreNamed) {
  const auto mo = [&](const std::string& bytes) { return ErrorOf([&] { ReadPairs(Write("a.mo", bytes)); }); };
  const auto po = [&](const std::string& text) { return ErrorOf([&] { ReadPairs(Write("a.po", text)); }); };
  EXPECT_EQ(mo(""), Path("a.mo") + ": empty; expected a gettext catalogue");
  EXPECT_THAT(mo("hello, world"), HasSubstr("a.mo: is not a .mo catalogue"));
  EXPECT_THAT(mo(SomeMo().substr(0, 100)), HasSubstr("a.mo: is cut short"));
  EXPECT_THAT(mo(SomeMo().substr(0, 200)), HasSubstr("past the end at 200"));
  std::string hostile = SomeMo();
  hostile.replace(8, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_THAT(mo(hostile), HasSubstr("tables of 4294967295 strings do not fit"));
  EXPECT_THAT(mo(Mo({{"", "charset=klingon"}, {"a", "b"}})), HasSubstr("charset \"klingon\" is not known"));
  EXPECT_THAT(mo(Mo({{"a", "b\xFF"}})), HasSubstr("entry 1: not UTF-8 at byte 1"));
  EXPECT_THAT(po("msgid \"a\"\nmsgid \"b\"\n"), HasSubstr("a.po: line 2: a second msgid"));
  EXPECT_THAT(po("msgid \"a\"\nmsgstr \"b\n"), HasSubstr("line 2: the quotes do not close"));
  EXPECT_THAT(po("msgstr \"b\"\n"), HasSubstr("line 1: msgstr without a msgid"));
  EXPECT_THAT(po("msgid \"a\"\nmsgother \"b\"\n"), HasSubstr("line 2: \"msgother\" is not a keyword"));
  EXPECT_THAT(po("msgid \"a\"\n"), HasSubstr("a msgid without a msgstr"));
  EXPECT_THAT(po("msgid \"a\"\nmsgstr \"\"\n"), HasSubstr("no sentence pair"));
}

TEST_F(Catalogue, BrokenFilesNeverCrash) {
  ReadBroken(
      SomeMo(), [](const std::string& bytes) { ParseMo(bytes, "a.mo"); }, 20000);
  ReadBroken(
      kPo, [](const std::string& bytes) { ParsePo(bytes, "a.po"); }, 20000);
}

TEST_F(Catalogue, InstalledLanguage) {
  if (!std::filesystem::is_directory("/usr/share/locale/fr/LC_MESSAGES")) {
    GTEST_SKIP() << "no French catalogues are installed";
  }
  const PairData data = ReadPairs("fr");
  EXPECT_GT(data.pairs.size(), 100u);
  EXPECT_EQ(data.report.pairs, static_cast<std::int64_t>(data.pairs.size()));
}

}  // namespace
}  // namespace regard::data
