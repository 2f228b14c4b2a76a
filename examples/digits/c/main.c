// Reads a picture (PGM as text, 8 by 8, white paper) and says which digit it shows. Everything that the program needs is here:
// no allocation, no library but C's for the file.
#include <stdio.h>
#include <string.h>

#include "digits.h"

static _Alignas(DIGITS_ARENA_ALIGNMENT) unsigned char arena[DIGITS_ARENA_SIZE];
static uint8_t pixels[DIGITS_PIXELS_ELEMENTS];
static float scores[DIGITS_RESULT_ELEMENTS];

// The next number of a PGM file; -1 at its end. Comments run from # to the end of a line.
static int number(FILE *file) {
  int value, c;
  while (fscanf(file, "%d", &value) != 1) {
    if ((c = fgetc(file)) == EOF) return -1;
    if (c == '#')
      while ((c = fgetc(file)) != '\n')
        if (c == EOF) return -1;
  }
  return value;
}

static int read_picture(const char *path) {
  char magic[3] = {0};
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  int fine = fscanf(file, "%2s", magic) == 1 && strcmp(magic, "P2") == 0;
  fine = fine && number(file) == 8 && number(file) == 8;
  int white = fine ? number(file) : 0;
  for (int i = 0; i < DIGITS_PIXELS_ELEMENTS && white > 0; ++i) {
    int value = number(file);
    if (value < 0 || value > white) white = 0;
    // The network knows ink from 0 to 16.
    else pixels[i] = (uint8_t)((white - value) * 16 / white);
  }
  fclose(file);
  return white > 0;
}

int main(int count, char **arguments) {
  for (int i = 1; i < count; ++i) {
    if (!read_picture(arguments[i])) {
      fprintf(stderr, "%s is no picture of 8 by 8 pixels as PGM text (P2)\n", arguments[i]);
      return 2;
    }
    digits_call call = {0};
    call.abi = DIGITS_ABI;
    call.arena = arena;
    call.arena_size = sizeof arena;
    call.pixels = pixels;
    call.result = scores;
    int status = digits(&call);
    if (status != DIGITS_OK) {
      fprintf(stderr, "digits: status %d\n", status);
      return 1;
    }
    int best = 0;
    for (int digit = 1; digit < DIGITS_RESULT_ELEMENTS; ++digit)
      if (scores[digit] > scores[best]) best = digit;
    printf("%s shows a %d\n", arguments[i], best);
  }
  return 0;
}
