#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "engine/base/error.h"
#include "view/attention_view.h"

namespace regard::view {
namespace {

using testing::HasSubstr;
using testing::Not;

// The text between the data element's tags.
std::string DataOf(const std::string& html) {
  const std::string open = "id=\"data\">";
  const std::size_t start = html.find(open) + open.size();
  return html.substr(start, html.find("</script>", start) - start);
}

TEST(PageHtml, NothingOfTheDataCanBeTakenForMarkup) {
  const std::string hostile = "</script><!--<script>alert(1)</script>\u2028\u2029";
  const std::string html = PageHtml({hostile, hostile, hostile, {{hostile, {hostile}, {hostile}, {1}, {}}}});
  const std::string data = DataOf(html);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_THAT(data, Not(HasSubstr("\u2028")));
  EXPECT_THAT(data, Not(HasSubstr("\u2029")));
  const auto json = nlohmann::json::parse(data);
  EXPECT_EQ(json["title"], hostile);
  EXPECT_EQ(json["panels"][0]["keys"][0]["verbatim"], hostile);
  EXPECT_THAT(html, HasSubstr("<title>&lt;/script&gt;&lt;!--"));
}

TEST(PageHtml, AMarkerOfTheTemplateInATitleStays) {
  const std::string html = PageHtml({"@@DATA@@ @@TITLE@@", "q", "k", {{"", {"a"}, {"b"}, {1}, {}}}});
  EXPECT_THAT(html, HasSubstr("<title>@@DATA@@ @@TITLE@@</title>"));
  EXPECT_EQ(nlohmann::json::parse(DataOf(html))["title"], "@@DATA@@ @@TITLE@@");
}

TEST(PageHtml, WeightsAndMaskKeepTheirBits) {
  const AttentionPanel panel{"", {"q"}, {"a", "b", "c"}, {0.5F, NAN, 0.1F}, {0, 0, 1}};
  const auto json = nlohmann::json::parse(DataOf(PageHtml({"", "q", "k", {panel}})));
  // 0.5: 00 00 00 3f; NaN: 00 00 c0 7f; 0.1: cd cc cc 3d
  EXPECT_EQ(json["panels"][0]["weights"], "AAAAPwAAwH/NzMw9");
  EXPECT_EQ(json["panels"][0]["masked"], "BA==");
  EXPECT_EQ(json["range"], (nlohmann::json{0.0, 0.5}));
}

TEST(PageHtml, TokensThatAreNotUtf8MakeAPageAllTheSame) {
  const std::string html = PageHtml({"\xFF", "q", "k", {{"\xC3", {"\xF0"}, {"a"}, {1}, {}}}});
  const auto json = nlohmann::json::parse(DataOf(html));
  EXPECT_EQ(json["title"], "<0xFF>");
  EXPECT_EQ(json["panels"][0]["queries"][0]["verbatim"], "<0xF0>");
}

TEST(PageHtml, TheSameDocumentGivesTheSameBytes) {
  const AttentionDocument document{"t", "q", "k", {{"", {"a"}, {"b"}, {1}, {}}}};
  EXPECT_EQ(PageHtml(document), PageHtml(document));
}

TEST(WritePage, WritesThePage) {
  const AttentionDocument document{"t", "q", "k", {{"", {"a"}, {"b"}, {1}, {}}}};
  const auto path = std::filesystem::temp_directory_path() / "regard_page_test.html";
  WritePage(document, path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), PageHtml(document));
  std::filesystem::remove(path);
}

TEST(WritePage, NamesThePathThatCannotBeWritten) {
  const AttentionDocument document{"t", "q", "k", {{"", {"a"}, {"b"}, {1}, {}}}};
  try {
    WritePage(document, "/no/such/folder/page.html");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "cannot write the attention page /no/such/folder/page.html: No such file or directory");
  }
}

}  // namespace
}  // namespace regard::view
