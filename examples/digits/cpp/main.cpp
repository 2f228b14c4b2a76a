// Reads pictures (PGM as text, 8 by 8, white paper) and says which digits they show.
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <limits>
#include <string>

#include "digits.h"

namespace {

// The next word of a PGM file, past comments.
std::string word(std::istream &file) {
  std::string text;
  while (file >> text && text[0] == '#') file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  return text;
}

bool read(const char *path, std::array<std::uint8_t, DIGITS_PIXELS_ELEMENTS> &pixels) {
  std::ifstream file(path);
  if (word(file) != "P2" || word(file) != "8" || word(file) != "8") return false;
  const int white = std::atoi(word(file).c_str());
  for (auto &pixel : pixels) {
    const std::string text = word(file);
    if (!file || white <= 0) return false;
    const int value = std::atoi(text.c_str());
    if (value < 0 || value > white) return false;
    // The network knows ink from 0 to 16.
    pixel = static_cast<std::uint8_t>((white - value) * 16 / white);
  }
  return true;
}

}  // namespace

int main(int count, char **arguments) {
  static vision::digits_program program;
  std::array<std::uint8_t, DIGITS_PIXELS_ELEMENTS> pixels{};
  std::array<float, DIGITS_RESULT_ELEMENTS> scores{};
  program.pixels = pixels.data();
  program.result = scores.data();
  for (int i = 1; i < count; ++i) {
    if (!read(arguments[i], pixels)) {
      std::cerr << arguments[i] << " is no picture of 8 by 8 pixels as PGM text (P2)\n";
      return 2;
    }
    if (const int status = program.run(); status != DIGITS_OK) {
      std::cerr << "digits: status " << status << "\n";
      return 1;
    }
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    std::cout << arguments[i] << " shows a " << best << "\n";
  }
}
