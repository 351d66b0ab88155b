# cmake -DINPUT=FILE -DOUTPUT=FILE.cc -P EmbedFile.cmake: the bytes of a file as regard::view::kPageTemplate.
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n"
       bytes "${bytes}")
file(WRITE "${OUTPUT}"
"#include <cstddef>
namespace regard::view {
extern const unsigned char kPageTemplate[];
extern const std::size_t kPageTemplateSize;
const unsigned char kPageTemplate[] = {
${bytes}
};
const std::size_t kPageTemplateSize = sizeof(kPageTemplate);
}  // namespace regard::view
")
