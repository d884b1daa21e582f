#include "text.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace cobble::program {

std::string group_digits(std::int64_t number) {
  std::string text = fmt::format("{}", number);
  const std::size_t first_digit = number < 0 ? 1 : 0;
  for (std::size_t end = text.size(); end > first_digit + 3; end -= 3) text.insert(end - 3, ",");
  return text;
}

namespace {

/// Three significant digits, never in exponent form; for 0 <= value < 10000.
std::string three_digits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

}  // namespace

std::string format_bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{} {}", three_digits(bytes), kUnits[unit]);
}

std::string format_milliseconds(double milliseconds) {
  if (milliseconds < 0.9995) return three_digits(milliseconds * 1e3) + " us";
  if (milliseconds < 999.5) return three_digits(milliseconds) + " ms";
  return milliseconds < 1e7 ? three_digits(milliseconds * 1e-3) + " s" : fmt::format("{:.0f} s", milliseconds * 1e-3);
}

std::string format_percent(double share) {
  if (share <= 0) return "0 %";
  const double percent = share * 100;
  return percent < 0.00995 ? fmt::format("{:.2g} %", percent) : three_digits(percent) + " %";
}

std::string format_quantity(double quantity) {
  if (std::isinf(quantity)) return quantity > 0 ? "infinite" : "-infinite";
  const double magnitude = std::abs(quantity);
  if (magnitude >= 1e12 || std::isnan(quantity)) return fmt::format("{:.3g}", quantity);
  if (magnitude >= 1000) return group_digits(std::llround(quantity));
  return fmt::format("{:.3g}", quantity);
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char character : text) {
    const bool blank = character == '\n' || character == '\r' || character == '\t' || character == ' ';
    if (!blank) line += character;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string shorten(std::string_view text, std::size_t length) {
  if (text.size() <= length) return std::string(text);
  if (length <= 3) return std::string(text.substr(0, length));
  const std::size_t kept = length - 3;
  const std::size_t tail = kept / 3;
  return std::string(text.substr(0, kept - tail)) + "..." + std::string(text.substr(text.size() - tail));
}

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char character : text) {
    switch (character) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default:
        // XML knows no control characters, and anything beyond ASCII may be broken UTF-8.
        escaped += character >= ' ' && character <= '~' ? character : '?';
    }
  }
  return escaped;
}

}  // namespace cobble::program
