/* The C interface: the four formats there and back, chunks, threads, options.
 * examples/c/Makefile builds and runs it under AddressSanitizer. */

#include <pthread.h>

#include "check.h"

/* A pool that starts its threads each time. */
struct work {
  relayout_task task;
  void *task_data;
  size_t i;
};

static void *work(void *data) {
  struct work *one = data;
  one->task(one->task_data, one->i);
  return NULL;
}

static void parallel_for(void *pool, size_t count, relayout_task task,
                         void *task_data) {
  pthread_t threads[8];
  struct work works[8];
  CHECK(count <= 8);
  *(size_t *)pool += count;
  for (size_t i = 0; i < count; i++) {
    works[i] = (struct work){task, task_data, i};
    CHECK(pthread_create(&threads[i], NULL, work, &works[i]) == 0);
  }
  for (size_t i = 0; i < count; i++)
    CHECK(pthread_join(threads[i], NULL) == 0);
}

static void there_and_back(const char *text, int is_truth) {
  relayout_shape *shape = parse(text);
  relayout_plan *pack = NULL, *unpack = NULL;
  OK(relayout_plan_pack(shape, NULL, &pack));
  OK(relayout_plan_unpack(shape, NULL, &unpack));
  relayout_shape_free(shape);
  uint64_t host_bytes = relayout_plan_source_bytes(pack);
  uint64_t image_bytes = relayout_plan_destination_bytes(pack);
  CHECK(relayout_plan_source_bytes(unpack) == image_bytes);
  CHECK(relayout_plan_destination_bytes(unpack) == host_bytes);

  unsigned char *host = bytes(host_bytes), *image = bytes(image_bytes);
  unsigned char *again = bytes(image_bytes), *back = bytes(host_bytes);
  if (is_truth)
    for (uint64_t i = 0; i < host_bytes; i++)
      host[i] &= 1;
  memset(back, 0xee, host_bytes);
  OK(relayout_plan_run(pack, host, host_bytes, image, image_bytes));
  OK(relayout_plan_run(unpack, image, image_bytes, back, host_bytes));
  CHECK(memcmp(host, back, host_bytes) == 0);

  /* In chunks, last first. */
  relayout_chunks *chunks = NULL;
  OK(relayout_plan_chunks(pack, 100000, &chunks));
  size_t count = relayout_chunks_count(chunks);
  CHECK(count >= image_bytes / 100000);
  CHECK(relayout_chunks_get(chunks, count) == NULL);
  for (size_t i = count; i-- > 0;) {
    const relayout_chunk *chunk = relayout_chunks_get(chunks, i);
    relayout_ranges ranges = relayout_chunk_ranges(chunk);
    CHECK(ranges.source_end <= host_bytes);
    OK(relayout_chunk_run(chunk, host, ranges.source_end,
                          again + ranges.destination_start,
                          ranges.destination_end - ranges.destination_start));
  }
  relayout_chunks_free(chunks);
  CHECK(memcmp(image, again, image_bytes) == 0);

  /* On threads. */
  size_t tasks = 0;
  memset(again, 0xee, image_bytes);
  OK(relayout_plan_run_with(pack, 3, parallel_for, &tasks, host, host_bytes,
                            again, image_bytes));
  CHECK(memcmp(image, again, image_bytes) == 0);
  CHECK(tasks == (host_bytes + image_bytes < (8 << 20) ? 0 : 3));

  char *explained = NULL;
  OK(relayout_plan_explain(pack, &explained));
  CHECK(strstr(explained, "1 hop") != NULL);
  relayout_string_free(explained);
  relayout_plan_free(pack);
  relayout_plan_free(unpack);
  free(host), free(image), free(again), free(back);
}

static void shapes_from_arrays(void) {
  const int64_t bounds[] = {16, 384}, order[] = {1, 0};
  const int64_t dims[] = {8, 128, 2, 1};
  const size_t sizes[] = {2, 2};
  relayout_shape *shape = NULL;
  OK(relayout_shape_tiled("bf16", bounds, 2, order, 2, dims, sizes, 2, 0, &shape));
  char *text = NULL;
  OK(relayout_shape_text(shape, &text));
  CHECK(strcmp(text, "bf16[16,384]{1,0:T(8,128)(2,1)}") == 0);
  relayout_string_free(text);
  relayout_shape_free(shape);

  const int64_t combined[] = {INT64_MIN, 128};
  OK(relayout_shape_tiled("s4", bounds, 2, order, 2, combined, sizes, 1, 4, &shape));
  OK(relayout_shape_text(shape, &text));
  CHECK(strcmp(text, "s4[16,384]{1,0:T(*,128)E(4)}") == 0);
  relayout_string_free(text);
  relayout_shape_free(shape);
  OK(relayout_shape_tiled("f32", NULL, 0, NULL, 0, NULL, NULL, 0, 0, &shape));
  relayout_shape_free(shape);

  const int64_t bad[] = {-1, 384};
  shape = NULL;
  CHECK(relayout_shape_tiled("f32", bad, 2, order, 2, NULL, NULL, 0, 0, &shape) ==
        RELAYOUT_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(relayout_last_error(), "-1") != NULL);
  CHECK(relayout_shape_tiled("f33", bounds, 2, order, 2, NULL, NULL, 0, 0, &shape) ==
        RELAYOUT_STATUS_PARSE);
  CHECK(relayout_shape_tiled("f32", bounds, 2, order, 1, NULL, NULL, 0, 0, &shape) ==
        RELAYOUT_STATUS_SHAPE);
  const size_t huge[] = {SIZE_MAX, SIZE_MAX};
  CHECK(relayout_shape_tiled("f32", bounds, 2, order, 2, dims, huge, 2, 0, &shape) ==
        RELAYOUT_STATUS_INVALID_ARGUMENT);
  CHECK(relayout_shape_tiled("f32", bounds, 2, order, 2, dims, huge, 1, 0, &shape) ==
        RELAYOUT_STATUS_INVALID_ARGUMENT);
  CHECK(relayout_shape_tiled("f32", NULL, 2, order, 2, NULL, NULL, 0, 0, &shape) ==
        RELAYOUT_STATUS_INVALID_ARGUMENT);
  CHECK(shape == NULL);
}

static void options(void) {
  relayout_shape *shape = parse("bf16[2,3]{1,0:T(2,4)(2,1)}");
  /* Rows of f32 from last to first. */
  const float host[2][3] = {{4, 5, 6}, {1, 2, 3}};
  const int64_t strides[] = {-12, 4};
  relayout_options how = {.size = sizeof how,
                          .padding = RELAYOUT_PADDING_BYTE,
                          .padding_byte = 0xaa,
                          .stores = RELAYOUT_STORES_ORDINARY,
                          .tier = "scalar",
                          .host_element_type = "f32",
                          .byte_strides = strides,
                          .num_byte_strides = 2,
                          .host_start = 12};
  relayout_plan *plan = NULL;
  OK(relayout_plan_pack(shape, &how, &plan));
  uint16_t image[8];
  OK(relayout_plan_run(plan, host, sizeof host, image, sizeof image));
  const uint16_t expected[8] = {0x3f80, 0x4080, 0x4000, 0x40a0,
                                0x4040, 0x40c0, 0xaaaa, 0xaaaa};
  CHECK(memcmp(image, expected, sizeof image) == 0);
  relayout_plan_free(plan);

  const uint64_t start[] = {1, 0}, sizes[] = {1, 3};
  relayout_options window = {.size = sizeof window,
                             .window_start = start,
                             .window_sizes = sizes,
                             .window_rank = 2};
  OK(relayout_plan_unpack(shape, &window, &plan));
  uint16_t row[3];
  OK(relayout_plan_run(plan, image, sizeof image, row, sizeof row));
  CHECK(row[0] == 0x4080 && row[1] == 0x40a0 && row[2] == 0x40c0);
  relayout_plan_free(plan);

  plan = NULL;
  /* Options of an older header, which had no windows: what is behind is not read. */
  window.size = offsetof(relayout_options, window_start);
  OK(relayout_plan_unpack(shape, &window, &plan));
  CHECK(relayout_plan_destination_bytes(plan) == 12);
  relayout_plan_free(plan);
  plan = NULL;

  relayout_options wrong = {.size = sizeof wrong + 1};
  CHECK(relayout_plan_pack(shape, &wrong, &plan) == RELAYOUT_STATUS_INVALID_ARGUMENT);
  wrong = (relayout_options){.size = sizeof wrong.size - 1};
  CHECK(relayout_plan_pack(shape, &wrong, &plan) == RELAYOUT_STATUS_INVALID_ARGUMENT);
  wrong = (relayout_options){.size = sizeof wrong, .padding = 3};
  CHECK(relayout_plan_pack(shape, &wrong, &plan) == RELAYOUT_STATUS_INVALID_ARGUMENT);
  wrong = (relayout_options){.size = sizeof wrong, .tier = "avx1024"};
  CHECK(relayout_plan_pack(shape, &wrong, &plan) == RELAYOUT_STATUS_PARSE);
  wrong = (relayout_options){.size = sizeof wrong, .num_byte_strides = 2};
  CHECK(relayout_plan_pack(shape, &wrong, &plan) == RELAYOUT_STATUS_INVALID_ARGUMENT);
  wrong = (relayout_options){.size = sizeof wrong, .bit_order = RELAYOUT_BIT_ORDER_MOST_FIRST};
  CHECK(relayout_plan_pack(shape, &wrong, &plan) == RELAYOUT_STATUS_HOST);
  wrong = (relayout_options){.size = sizeof wrong, .window_start = start};
  CHECK(relayout_plan_pack(shape, &wrong, &plan) == RELAYOUT_STATUS_INVALID_ARGUMENT);
  CHECK(plan == NULL);
  relayout_shape_free(shape);
}

/* What a thread does last is to destroy its own memory, that of the library too. */
static void call_at_the_end(void *data) {
  (void)data;
  CHECK(relayout_plan_run(NULL, NULL, 0, NULL, 0) == RELAYOUT_STATUS_INVALID_ARGUMENT);
  CHECK(relayout_last_error() != NULL);
}

static pthread_key_t last;

static void *thread_that_ends(void *data) {
  CHECK(pthread_setspecific(last, data) == 0);
  CHECK(relayout_plan_run(NULL, NULL, 0, NULL, 0) == RELAYOUT_STATUS_INVALID_ARGUMENT);
  return NULL;
}

static void calls_while_a_thread_ends(void) {
  pthread_t thread;
  CHECK(pthread_key_create(&last, call_at_the_end) == 0);
  CHECK(pthread_create(&thread, NULL, thread_that_ends, &last) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

int main(void) {
  there_and_back("f32[1001,1000]{1,0:T(8,128)}", 0);
  there_and_back("bf16[2001,1100]{1,0:T(8,128)(2,1)}", 0);
  there_and_back("s8[1000,3000]{1,0:T(8,128)(4,1)}", 0);
  there_and_back("pred[3000,3000]{1,0:T(32,128)(32,1)E(1)}", 1);
  there_and_back("f32[3,5]{0,1:T(8,128)}", 0);
  shapes_from_arrays();
  options();
  calls_while_a_thread_ends();
  printf("relayout %s: the C interface is as it should be\n", relayout_version());
  return 0;
}
