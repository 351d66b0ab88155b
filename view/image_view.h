// Images with what a model looked at drawn over them, as an SVG or a page.
#ifndef REGARD_VIEW_IMAGE_VIEW_H_
#define REGARD_VIEW_IMAGE_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

namespace regard::view {

// Patches are squares of `patch` pixels a side, numbered row by row.
struct ImagePanel {
  std::string title;                                 // "7, 98 %"
  bool marked = false;                               // the title is drawn as what went wrong
  std::int64_t rows = 0, columns = 0, channels = 1;  // channels: 1 (grey) or 3 (red, green, blue)
  std::vector<float> pixels;                         // [rows, columns, channels], 0 (black) to 1
  std::int64_t patch = 1;
  std::vector<float> weights;          // one a patch, 0 or more; empty: attention was not soft
  std::vector<std::int64_t> glimpses;  // the patches looked at, in order; the others were not seen
};

struct ImageDocument {
  std::string title;
  std::vector<ImagePanel> panels;
};

// One SVG with a grid of the images. A weight above an even share is a colour over its patch, one below it a
// shade, each the stronger the farther, in one range for all panels; glimpses are outlined and numbered, and
// what was not looked at is shaded. Throws Error
// naming the panel where sizes do not fit together, or where there is no panel.
std::string ImageSvg(const ImageDocument& document);

// The same as an HTML file that needs no other.
std::string ImagePage(const ImageDocument& document);

}  // namespace regard::view

#endif  // REGARD_VIEW_IMAGE_VIEW_H_
