// Reader of gettext catalogues, compiled (.mo) and as text (.po).
#ifndef REGARD_DATA_CATALOGUE_H_
#define REGARD_DATA_CATALOGUE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace regard::data {

// One entry as the catalogue has it. bytes are UTF-8 or, in a broken catalogue, anything.
struct CatalogueEntry {
  std::string id, id_plural;              // id without its context
  std::vector<std::string> translations;  // one, or one for each plural form
  bool fuzzy = false;
};

// The entries of a catalogue's bytes, the header's left out, converted from the charset that the header
// names. Throws regard::Error naming path and what is wrong (and the line of a .po file). Offsets and lengths
// in a .mo file are never trusted.
std::vector<CatalogueEntry> ParseMo(std::string_view bytes, const std::string& path);
std::vector<CatalogueEntry> ParsePo(std::string_view bytes, const std::string& path);

}  // namespace regard::data

#endif  // REGARD_DATA_CATALOGUE_H_
