// Numbers as a person reads them. Pure functions; none of this is read back by a program.
#pragma once

#include <cstdint>
#include <string>

namespace kumo {

// "0 B", "1023 B", "12.3 MiB".
std::string HumanBytes(uint64_t bytes);
// A count or a rate with a decimal prefix: "12", "12.3 k", "4.56 M"; "-" when it is not finite.
std::string HumanCount(double count);
// "850 ms", "12.3 s", "3 min 20 s", "1 h 02 min", "3 d 04 h"; "-" when negative or not finite.
std::string HumanDuration(double seconds);

}  // namespace kumo
