// What the readers of images have in common.
#ifndef REGARD_DATA_IMAGE_READERS_H_
#define REGARD_DATA_IMAGE_READERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "data/images.h"

namespace regard::data {

// Numbers of count images of rows x columns x channels; throws regard::Error naming path where a size is
// below 1 or all together exceed options.max_values.
std::int64_t CheckedValues(const std::string& path, std::int64_t count, std::int64_t rows,
                           std::int64_t columns, std::int64_t channels, const ImageOptions& options);

// Sets classes and labels from the name of each image's class. unit: what an image is called ("line").
void AssignClasses(const std::string& path, const char* unit, const std::vector<std::string>& names,
                   const ImageOptions& options, ImageSet& images);

}  // namespace regard::data

#endif  // REGARD_DATA_IMAGE_READERS_H_
