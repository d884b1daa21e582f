#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Numbers and messages as people read them.

namespace cobble::program {

/// 1234567 as "1,234,567".
std::string group_digits(std::int64_t number);

/// "512 B", "3.2 KiB", "1.5 GiB".
std::string format_bytes(double bytes);

/// A duration with three significant digits and its unit: "12.3 us", "4.56 ms", "7.89 s".
std::string format_milliseconds(double milliseconds);

/// A share of 1 in percent with three significant digits: "3.46 %"; "0 %" only for nothing.
std::string format_percent(double share);

/// A large or small quantity with three significant digits: "131,072", "1.23e+12".
std::string format_quantity(double quantity);

/// Line breaks replaced by blanks, outer blanks removed.
std::string one_line(std::string_view text);

/// At most `length` characters, the middle replaced by "..." when there are more.
std::string shorten(std::string_view text, std::size_t length);

/// For the content and the attributes of XML elements; characters beyond printable ASCII become question marks.
std::string escape_xml(std::string_view text);

}  // namespace cobble::program
