/* Absurd input of the C interface: a status, a message that names the value, handles that
 * stay null, destinations as they were. docs/testing.md has the table of all bad input.
 * examples/c/Makefile builds and runs it under AddressSanitizer. */

#include "check.h"

/* A call that is refused with this status, and a message that holds this. */
#define REFUSED(call, why, part)                                               \
  do {                                                                         \
    CHECK((call) == RELAYOUT_STATUS_##why);                                    \
    CHECK(strstr(relayout_last_error(), part) != NULL);                        \
  } while (0)

static void null_pointers(void) {
  relayout_shape *shape = NULL;
  relayout_plan *plan = NULL;
  char *text = NULL;
  REFUSED(relayout_shape_parse(NULL, &shape), INVALID_ARGUMENT, "text");
  REFUSED(relayout_shape_parse("f32[3]", NULL), INVALID_ARGUMENT, "no place for the result");
  REFUSED(relayout_shape_text(NULL, &text), INVALID_ARGUMENT, "shape");
  REFUSED(relayout_plan_pack(NULL, NULL, &plan), INVALID_ARGUMENT, "shape");
  REFUSED(relayout_plan_pack(NULL, NULL, NULL), INVALID_ARGUMENT, "null");
  REFUSED(relayout_plan_explain(NULL, &text), INVALID_ARGUMENT, "plan");
  CHECK(shape == NULL && plan == NULL && text == NULL);

  shape = parse("f32[8,128]{1,0:T(8,128)}");
  OK(relayout_plan_pack(shape, NULL, &plan));
  unsigned char *a = bytes(4096), *b = bytes(4096);
  REFUSED(relayout_plan_run(NULL, a, 4096, b, 4096), INVALID_ARGUMENT, "plan");
  REFUSED(relayout_plan_run(plan, NULL, 4096, b, 4096), INVALID_ARGUMENT, "source");
  REFUSED(relayout_plan_run(plan, a, 4096, NULL, 4096), INVALID_ARGUMENT, "destination");
  REFUSED(relayout_plan_run(plan, NULL, 0, NULL, 0), BUFFER, "4096");
  REFUSED(relayout_chunk_run(NULL, a, 4096, b, 512), INVALID_ARGUMENT, "chunk");
  size_t pool = 0;
  REFUSED(relayout_plan_run_with(plan, 2, NULL, &pool, a, 4096, b, 4096), INVALID_ARGUMENT,
          "parallel_for");
  CHECK(memcmp(a, b, 4096) == 0);
  free(a), free(b);
  relayout_plan_free(plan);
  relayout_shape_free(shape);

  /* Nothing comes of nothing. */
  relayout_shape_free(NULL);
  relayout_plan_free(NULL);
  relayout_chunks_free(NULL);
  relayout_chunk_free(NULL);
  relayout_string_free(NULL);
  CHECK(relayout_plan_source_bytes(NULL) == 0);
  CHECK(relayout_plan_destination_bytes(NULL) == 0);
  CHECK(relayout_chunks_count(NULL) == 0);
  CHECK(relayout_chunks_get(NULL, 0) == NULL);
  CHECK(relayout_chunk_ranges(NULL).source_end == 0);
}

/* A shape from arrays, of one tile. */
static relayout_status tiled(const char *type, const int64_t *bounds, size_t rank,
                             const int64_t *order, const int64_t *tile, size_t entries,
                             uint32_t bits, relayout_shape **shape) {
  return relayout_shape_tiled(type, bounds, rank, order, rank, tile, &entries, entries > 0, bits,
                              shape);
}

static void absurd_bounds(void) {
  relayout_shape *shape = NULL;
  REFUSED(relayout_shape_parse("u8[9223372036854775808]", &shape), PARSE, "9223372036854775808");
  REFUSED(relayout_shape_parse("u8[4294967296,4294967296]", &shape), PARSE, "2^63 elements");
  int64_t ones[65], order[65];
  for (int64_t i = 0; i < 65; i++)
    ones[i] = 1, order[i] = 64 - i;
  REFUSED(tiled("u8", ones, 65, order, NULL, 0, 0, &shape), SHAPE, "65 dimensions");
  const int64_t negative[] = {-5}, huge[] = {INT64_MAX, INT64_MAX}, least[] = {INT64_MIN};
  REFUSED(tiled("u8", negative, 1, order + 64, NULL, 0, 0, &shape), INVALID_ARGUMENT, "-5");
  REFUSED(tiled("u8", least, 1, order + 64, NULL, 0, 0, &shape), INVALID_ARGUMENT,
          "-9223372036854775808");
  REFUSED(tiled("u8", huge, 2, order + 63, NULL, 0, 0, &shape), SHAPE, "2^63 elements");
  REFUSED(tiled("u8", ones, 1, huge, NULL, 0, 0, &shape), SHAPE, "9223372036854775807");
  REFUSED(tiled("u8", ones, 1, order + 64, NULL, 0, 3, &shape), SHAPE, "3");
  REFUSED(tiled("f33", ones, 1, order + 64, NULL, 0, 0, &shape), PARSE, "f33");
  CHECK(shape == NULL);

  /* Shapes that can be said, and plans that nobody has memory for. */
  relayout_plan *plan = NULL;
  OK(tiled("u8", huge, 1, order + 64, NULL, 0, 0, &shape));
  REFUSED(relayout_plan_pack(shape, NULL, &plan), SHAPE, "9223372036854775807 elements");
  CHECK(plan == NULL);
  relayout_shape_free(shape);
  shape = parse("u8[1099511627776]{0}");
  OK(relayout_plan_pack(shape, NULL, &plan));
  unsigned char byte = 7;
  REFUSED(relayout_plan_run(plan, &byte, 1, NULL, 0), BUFFER, "1099511627776");
  CHECK(byte == 7);
  /* More chunks than anybody lists. */
  relayout_chunks *chunks = NULL;
  REFUSED(relayout_plan_chunks(plan, 1, &chunks), CHUNK, "65536");
  CHECK(chunks == NULL);
  relayout_plan_free(plan);
  relayout_shape_free(shape);
}

static void absurd_tiles(void) {
  relayout_shape *shape = NULL;
  const int64_t bounds[] = {3, 3}, order[] = {1, 0};
  const int64_t zero[] = {0, 2}, negative[] = {2, -7}, combine[] = {2, INT64_MIN};
  const int64_t huge[] = {INT64_MAX, INT64_MAX};
  REFUSED(tiled("f32", bounds, 2, order, zero, 2, 0, &shape), SHAPE, "entry 0 of the tile is 0");
  REFUSED(tiled("f32", bounds, 2, order, negative, 2, 0, &shape), INVALID_ARGUMENT, "-7");
  REFUSED(tiled("f32", bounds, 2, order, combine, 2, 0, &shape), SHAPE, "`*`");
  REFUSED(tiled("f32", bounds, 2, order, huge, 2, 0, &shape), SHAPE, "tile 0");
  int64_t ones[100];
  size_t sizes[100];
  for (size_t i = 0; i < 100; i++)
    ones[i] = 1, sizes[i] = 1;
  REFUSED(tiled("f32", bounds, 2, order, ones, 100, 0, &shape), SHAPE, "100 entries");
  REFUSED(relayout_shape_tiled("f32", bounds, 2, order, 2, ones, sizes, 100, 0, &shape), SHAPE,
          "100 tiles");
  CHECK(shape == NULL);
}

static void absurd_strides_and_windows(void) {
  relayout_shape *shape = parse("f32[3,5]{1,0:T(8,128)}");
  relayout_plan *plan = NULL;
  static const struct {
    int64_t strides[2];
    const char *part;
  } far[] = {{{INT64_MAX, 4}, "dimension 0"},
             {{INT64_MIN, 4}, "dimension 0"},
             {{20, INT64_MIN}, "dimension 1"},
             {{-20, 4}, "byte -40"}};
  for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
    relayout_options how = {
        .size = sizeof how, .byte_strides = far[i].strides, .num_byte_strides = 2};
    REFUSED(relayout_plan_pack(shape, &how, &plan), HOST, far[i].part);
    REFUSED(relayout_plan_unpack(shape, &how, &plan), HOST, far[i].part);
  }
  const int64_t overlapping[] = {4, 4}, *none = NULL;
  relayout_options how = {.size = sizeof how, .byte_strides = overlapping, .num_byte_strides = 2};
  REFUSED(relayout_plan_unpack(shape, &how, &plan), HOST, "share memory");
  how.num_byte_strides = 1;
  REFUSED(relayout_plan_pack(shape, &how, &plan), HOST, "1 entries for 2 dimensions");
  how.byte_strides = none;
  REFUSED(relayout_plan_pack(shape, &how, &plan), INVALID_ARGUMENT, "byte_strides");
  how = (relayout_options){.size = sizeof how, .host_start = UINT64_MAX};
  REFUSED(relayout_plan_pack(shape, &how, &plan), HOST, "18446744073709551615");
  const uint64_t start[] = {0, UINT64_MAX}, sizes[] = {3, 5};
  how = (relayout_options){
      .size = sizeof how, .window_start = start, .window_sizes = sizes, .window_rank = 2};
  REFUSED(relayout_plan_pack(shape, &how, &plan), HOST, "18446744073709551615");
  how.window_rank = 1;
  REFUSED(relayout_plan_pack(shape, &how, &plan), HOST, "1 entries for 2 dimensions");
  CHECK(plan == NULL);
  relayout_shape_free(shape);
}

/* Options that end within a pointer, of which half would be taken for all. */
static void options_of_an_odd_size(void) {
  relayout_shape *shape = parse("f32[3,5]{1,0:T(8,128)}");
  relayout_plan *plan = NULL;
  relayout_options how = {.tier = "scalar", .host_element_type = "f32"};
  for (how.size = 0; how.size <= sizeof how + 8; how.size++) {
    if (how.size >= 8 && how.size <= sizeof how && how.size % 8 == 0) {
      OK(relayout_plan_pack(shape, &how, &plan));
      relayout_plan_free(plan);
      plan = NULL;
    } else {
      REFUSED(relayout_plan_pack(shape, &how, &plan), INVALID_ARGUMENT, "`options->size` is");
      CHECK(plan == NULL);
    }
  }
  relayout_shape_free(shape);
}

static void short_buffers(void) {
  relayout_shape *shape = parse("f32[8,128]{1,0:T(8,128)}");
  relayout_shape *other = parse("f32[8,129]{1,0:T(8,128)}");
  relayout_plan *plan = NULL;
  REFUSED(relayout_plan_between(shape, other, NULL, &plan), MISMATCH, "129");
  CHECK(plan == NULL);
  OK(relayout_plan_pack(shape, NULL, &plan));
  unsigned char *a = bytes(4096), *b = bytes(4096), *before = bytes(4096);
  memset(a, 1, 4096);
  REFUSED(relayout_plan_run(plan, a, 4095, b, 4096), BUFFER, "4095");
  REFUSED(relayout_plan_run(plan, a, 4096, b, 4095), BUFFER, "4095");
  REFUSED(relayout_plan_run(plan, a, 4096, b, SIZE_MAX), INVALID_ARGUMENT, "18446744073709551615");

  relayout_chunk *chunk = NULL;
  REFUSED(relayout_plan_chunk(plan, 1, 5, &chunk), CHUNK, "1..5");
  REFUSED(relayout_plan_chunk(plan, 0, 4097, &chunk), CHUNK, "4097");
  REFUSED(relayout_plan_chunk(plan, UINT64_MAX, 0, &chunk), CHUNK, "18446744073709551615");
  CHECK(chunk == NULL);
  OK(relayout_plan_chunk(plan, 512, 1024, &chunk));
  REFUSED(relayout_chunk_run(chunk, a, 1023, b, 512), BUFFER, "1023");
  REFUSED(relayout_chunk_run(chunk, a, 1024, b, 511), BUFFER, "511");
  CHECK(memcmp(b, before, 4096) == 0);

  relayout_ranges ranges = relayout_chunk_ranges(chunk);
  CHECK(ranges.source_start == 512 && ranges.source_end == 1024);
  OK(relayout_chunk_run(chunk, a, 1024, b, 512));
  CHECK(memcmp(a, b, 512) == 0 && memcmp(b + 512, before + 512, 4096 - 512) == 0);
  relayout_chunk_free(chunk);
  relayout_plan_free(plan);
  relayout_shape_free(shape);
  relayout_shape_free(other);
  free(a), free(b), free(before);
}

static void overlapping_and_misaligned_buffers(void) {
  relayout_shape *shape = parse("f32[8,128]{1,0:T(8,128)}");
  relayout_plan *plan = NULL;
  OK(relayout_plan_pack(shape, NULL, &plan));
  unsigned char *both = bytes(8192 + 64), *before = bytes(8192 + 64);
  for (size_t ahead = 0; ahead < 4096; ahead += 315) {
    REFUSED(relayout_plan_run(plan, both, 4096, both + ahead, 4096), BUFFER, "overlap");
    REFUSED(relayout_plan_run(plan, both + ahead, 4096, both, 4096), BUFFER, "overlap");
  }
  CHECK(memcmp(both, before, 8192 + 64) == 0);
  /* Beside each other, at any address. */
  for (size_t ahead = 0; ahead < 64; ahead++) {
    OK(relayout_plan_run(plan, both + ahead, 4096, both + ahead + 4096, 4096));
    CHECK(memcmp(both + ahead, both + ahead + 4096, 4096) == 0);
  }
  free(both), free(before);
  relayout_plan_free(plan);
  relayout_shape_free(shape);
}

static void texts_of_a_megabyte(void) {
  static const char *const units[] = {"(", "9", "f32[1,", " ", "\xc3\xa9"};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    size_t length = 1 << 20, unit = strlen(units[i]);
    char *text = malloc(length + 1);
    CHECK(text != NULL);
    for (size_t at = 0; at < length; at++)
      text[at] = units[i][at % unit];
    text[length] = 0;
    relayout_shape *shape = NULL;
    REFUSED(relayout_shape_parse(text, &shape), PARSE, "at byte");
    CHECK(shape == NULL && strlen(relayout_last_error()) < 1000);
    free(text);
  }
  relayout_shape *shape = NULL;
  REFUSED(relayout_shape_parse("f32[3", &shape), PARSE, "byte 5");
  REFUSED(relayout_shape_parse("f32[3]\xff", &shape), PARSE, "UTF-8");
  CHECK(shape == NULL);
}

int main(void) {
  null_pointers();
  absurd_bounds();
  absurd_tiles();
  absurd_strides_and_windows();
  options_of_an_odd_size();
  short_buffers();
  overlapping_and_misaligned_buffers();
  texts_of_a_megabyte();
  printf("relayout %s: bad input is refused\n", relayout_version());
  return 0;
}
