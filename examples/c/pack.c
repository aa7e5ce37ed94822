/* Packs an array of bf16 for a TPU through a staging buffer, as a plugin would: the
 * layout comes as the arrays of a PJRT_Buffer_MemoryLayout_Tiled. */

#include <stdio.h>
#include <stdlib.h>

#include "relayout.h"

enum { ROWS = 1000, COLUMNS = 3000, STAGING_BYTES = 1 << 20 };

static void check(relayout_status status) {
  if (status != RELAYOUT_STATUS_OK) {
    fprintf(stderr, "relayout: %s\n", relayout_last_error());
    exit(1);
  }
}

int main(void) {
  const int64_t bounds[] = {ROWS, COLUMNS}, minor_to_major[] = {1, 0};
  const int64_t tile_dims[] = {8, 128, 2, 1};
  const size_t tile_dim_sizes[] = {2, 2};
  relayout_shape *shape;
  check(relayout_shape_tiled("bf16", bounds, 2, minor_to_major, 2, tile_dims,
                             tile_dim_sizes, 2, 0, &shape));

  /* The host array is of f32; it becomes bf16 on the way. */
  relayout_options options = {.size = sizeof options, .host_element_type = "f32"};
  relayout_plan *plan;
  check(relayout_plan_pack(shape, &options, &plan));

  float *host = malloc(sizeof(float) * ROWS * COLUMNS);
  unsigned char *staging = malloc(STAGING_BYTES);
  if (host == NULL || staging == NULL) return 1;
  for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) host[i] = (float)i;

  relayout_chunks *chunks;
  check(relayout_plan_chunks(plan, STAGING_BYTES, &chunks));
  for (size_t i = 0; i < relayout_chunks_count(chunks); i++) {
    const relayout_chunk *chunk = relayout_chunks_get(chunks, i);
    relayout_ranges ranges = relayout_chunk_ranges(chunk);
    size_t bytes = ranges.destination_end - ranges.destination_start;
    check(relayout_chunk_run(chunk, host, sizeof(float) * ROWS * COLUMNS, staging, bytes));
    /* Here a plugin would hand `staging` to its DMA engine. */
    printf("%zu bytes to byte %llu of the device's buffer\n", bytes,
           (unsigned long long)ranges.destination_start);
  }

  relayout_chunks_free(chunks);
  relayout_plan_free(plan);
  relayout_shape_free(shape);
  free(host);
  free(staging);
  return 0;
}
