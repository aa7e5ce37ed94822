/* What the tests of the C interface share. */

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relayout.h"

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s\nlast error: %s\n", __FILE__, __LINE__,       \
              #condition, relayout_last_error());                              \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)
#define OK(call) CHECK((call) == RELAYOUT_STATUS_OK)

static inline relayout_shape *parse(const char *text) {
  relayout_shape *shape = NULL;
  OK(relayout_shape_parse(text, &shape));
  return shape;
}

static inline unsigned char *bytes(uint64_t count) {
  unsigned char *start = malloc(count > 0 ? count : 1);
  CHECK(start != NULL);
  for (uint64_t i = 0; i < count; i++)
    start[i] = (unsigned char)((i * 0x9e3779b97f4a7c15u) >> 56);
  return start;
}

#endif
