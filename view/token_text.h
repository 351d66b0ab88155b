// What a token looks like when nothing of it may stay invisible, and how wide it is.
#ifndef REGARD_VIEW_TOKEN_TEXT_H_
#define REGARD_VIEW_TOKEN_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace regard::view {

// A piece of a shown token: text of the token itself, or a symbol that stands for what cannot be seen.
struct TextRun {
  std::string text;
  bool symbol = false;
};

// Any bytes, as runs of UTF-8 that can be printed anywhere: "·" for a space at either end, "↵" and "⇥" for a
// new line and a tab (their own pictures, "␤" and "␉", are in few fonts), "<U+200B>" for what else cannot be
// seen, "<0xF0>" for a byte that is not UTF-8, "◌" before a combining mark that opens the token, "∅" for the
// empty token.
std::vector<TextRun> ShownToken(std::string_view token);

// The runs of ShownToken as one string.
std::string ShownText(std::string_view token);

// The same bytes where they are UTF-8, "<0xF0>" where they are not.
std::string ValidUtf8(std::string_view text);

// A user-perceived character and the columns that a terminal gives it (0, 1 or 2).
struct Grapheme {
  std::string text;
  int width = 0;
};
std::vector<Grapheme> Graphemes(const std::string& utf8);
int DisplayWidth(const std::string& utf8);

// At most `width` columns of the text; "…" ends one that was cut.
std::string Shorten(const std::string& utf8, int width);

}  // namespace regard::view

#endif  // REGARD_VIEW_TOKEN_TEXT_H_
