// Descriptors 0, 1 and 2, which a program takes for granted.
#pragma once

namespace kumo {

// Opens /dev/null as each of them that is closed. Otherwise the first file or socket that is opened
// would get its number, and be written to by whoever prints. Call it first in main.
void OpenStandardStreams();

}  // namespace kumo
