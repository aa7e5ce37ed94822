/* The C interface of relayout: arrays between host memory and the tiled layouts of
 * accelerators.
 *
 * Made by cbindgen from capi/src/lib.rs. Do not edit; after a change there, run
 *
 *     UPDATE_HEADER=1 cargo test -p relayout-capi
 */

#ifndef RELAYOUT_H
#define RELAYOUT_H

#include <stddef.h>
#include <stdint.h>

/*
 What became of a call.
 */
typedef enum relayout_status {
  /*
   All went well.
   */
  RELAYOUT_STATUS_OK = 0,
  /*
   An argument is null that must not be, or has a value that it cannot have.
   */
  RELAYOUT_STATUS_INVALID_ARGUMENT = 1,
  /*
   A text is no shape, no element type or no tier.
   */
  RELAYOUT_STATUS_PARSE = 2,
  /*
   A shape or a layout means nothing, or is too large.
   */
  RELAYOUT_STATUS_SHAPE = 3,
  /*
   Two shapes are not the same array.
   */
  RELAYOUT_STATUS_MISMATCH = 4,
  /*
   A host array or a window cannot be.
   */
  RELAYOUT_STATUS_HOST = 5,
  /*
   A buffer has not the length that it must have, or two overlap.
   */
  RELAYOUT_STATUS_BUFFER = 6,
  /*
   A range is no chunk, or there would be too many of them.
   */
  RELAYOUT_STATUS_CHUNK = 7,
  /*
   A defect of this library.
   */
  RELAYOUT_STATUS_INTERNAL = 8,
} relayout_status;

/*
 What is written where an image holds no element.
 */
typedef enum relayout_padding {
  /*
   Zeros.
   */
  RELAYOUT_PADDING_ZERO = 0,
  /*
   Nothing.
   */
  RELAYOUT_PADDING_KEEP = 1,
  /*
   The byte `padding_byte`.
   */
  RELAYOUT_PADDING_BYTE = 2,
} relayout_padding;

/*
 Whether an image is written past the caches.
 */
typedef enum relayout_stores {
  /*
   By its size.
   */
  RELAYOUT_STORES_AUTO = 0,
  /*
   Always.
   */
  RELAYOUT_STORES_STREAMING = 1,
  /*
   Never.
   */
  RELAYOUT_STORES_ORDINARY = 2,
} relayout_stores;

/*
 How elements below a byte lie in the host array.
 */
typedef enum relayout_bit_order {
  /*
   One in a byte.
   */
  RELAYOUT_BIT_ORDER_NOT_PACKED = 0,
  /*
   As many as there is room for in a byte, the first in the least significant bits.
   */
  RELAYOUT_BIT_ORDER_LEAST_FIRST = 1,
  /*
   As many as there is room for in a byte, the first in the most significant bits.
   */
  RELAYOUT_BIT_ORDER_MOST_FIRST = 2,
} relayout_bit_order;

/*
 A range of a destination that can be filled alone.
 */
typedef struct relayout_chunk relayout_chunk;

/*
 The chunks of a destination.
 */
typedef struct relayout_chunks relayout_chunks;

/*
 How an array is written in one layout from another one.
 */
typedef struct relayout_plan relayout_plan;

/*
 An array in a layout.
 */
typedef struct relayout_shape relayout_shape;

/*
 Options of a plan. All zeros are the usual ones; set `size` to `sizeof` of it. A
 library takes the options of an older one.
 */
typedef struct relayout_options {
  /*
   Bytes of this structure.
   */
  size_t size;
  /*
   A value of `relayout_padding`.
   */
  uint32_t padding;
  /*
   The byte that `RELAYOUT_PADDING_BYTE` means.
   */
  uint32_t padding_byte;
  /*
   A value of `relayout_stores`.
   */
  uint32_t stores;
  /*
   A value of `relayout_bit_order`.
   */
  uint32_t bit_order;
  /*
   The name of a tier of instructions (`scalar`, `avx2`, …), or null for the best.
   */
  const char *tier;
  /*
   The element type of the host array (`f32`, …), or null for that of the image. To
   convert numbers, threads have to round to the nearest and keep subnormal ones, as
   they do unless they were told otherwise.
   */
  const char *host_element_type;
  /*
   Strides of the host array in bytes, major to minor, or null for a dense one.
   */
  const int64_t *byte_strides;
  /*
   How many strides there are: the rank, or one less of packed elements.
   */
  size_t num_byte_strides;
  /*
   The byte of the host buffer at which the first element is.
   */
  uint64_t host_start;
  /*
   Where the window that is moved starts, by dimension, or null for all of it.
   */
  const uint64_t *window_start;
  /*
   How many elements of each dimension it has, or null.
   */
  const uint64_t *window_sizes;
  /*
   Dimensions of the window.
   */
  size_t window_rank;
} relayout_options;

/*
 One of the tasks that a `relayout_parallel_for` calls.
 */
typedef void (*relayout_task)(void *task_data, size_t i);

/*
 Threads of the caller: calls `task(task_data, i)` for each i below `count`, on any
 threads, and returns when all calls have returned. `pool` is what the caller gave.
 */
typedef void (*relayout_parallel_for)(void *pool, size_t count, relayout_task task, void *task_data);

/*
 Byte ranges of a chunk, from `start` to before `end`.
 */
typedef struct relayout_ranges {
  /*
   Where it is in the destination.
   */
  uint64_t destination_start;
  /*
   Its end in the destination.
   */
  uint64_t destination_end;
  /*
   Where what it reads starts in the source.
   */
  uint64_t source_start;
  /*
   The end of what it reads in the source.
   */
  uint64_t source_end;
} relayout_ranges;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Reads a shape in XLA's notation, such as `bf16[1024,4096]{1,0:T(8,128)(2,1)}`.

 # Safety

 `text` ends with a zero; a handle can be written to `shape`.
 */
enum relayout_status relayout_shape_parse(const char *text, struct relayout_shape **shape);

/*
 A shape from the arrays of a PJRT_Buffer_MemoryLayout_Tiled.

 `bounds` go from major to minor, in elements. `tile_dims` are the entries of all tiles
 one after the other, of which each tile has `tile_dim_sizes[i]`; INT64_MIN combines a
 dimension with the next one. `element_bits` is the width of an element in the image,
 or 0 for whole bytes.

 # Safety

 `element_type` ends with a zero; the arrays have as many entries as is said; a handle
 can be written to `shape`.
 */
enum relayout_status relayout_shape_tiled(const char *element_type,
                                          const int64_t *bounds,
                                          size_t num_bounds,
                                          const int64_t *minor_to_major,
                                          size_t minor_to_major_size,
                                          const int64_t *tile_dims,
                                          const size_t *tile_dim_sizes,
                                          size_t num_tiles,
                                          uint32_t element_bits,
                                          struct relayout_shape **shape);

/*
 The shape in XLA's notation, to be given back with `relayout_string_free`.

 # Safety

 `shape` is a handle; a pointer can be written to `text`.
 */
enum relayout_status relayout_shape_text(const struct relayout_shape *shape, char **text);

/*
 Gives a shape back.

 # Safety

 `shape` is null or a handle, which is not used again.
 */
void relayout_shape_free(struct relayout_shape *shape);

/*
 A plan to write the image of a host array. `options` may be null.

 # Safety

 `shape` is a handle; `options` is null or has as many bytes as it says, and its
 pointers are null or point to as much as it says; a handle can be written to `plan`.
 */
enum relayout_status relayout_plan_pack(const struct relayout_shape *shape,
                                        const struct relayout_options *options,
                                        struct relayout_plan **plan);

/*
 A plan to write the host array whose image is given. `options` may be null.

 # Safety

 As `relayout_plan_pack`.
 */
enum relayout_status relayout_plan_unpack(const struct relayout_shape *shape,
                                          const struct relayout_options *options,
                                          struct relayout_plan **plan);

/*
 A plan to write the image of an array in one layout from that in another one.
 `options` may be null; those about host arrays mean nothing here.

 # Safety

 As `relayout_plan_pack`, `from` and `to` being handles.
 */
enum relayout_status relayout_plan_between(const struct relayout_shape *from,
                                           const struct relayout_shape *to,
                                           const struct relayout_options *options,
                                           struct relayout_plan **plan);

/*
 Bytes that the source has; a host array with strides may have more. 0 for null.

 # Safety

 `plan` is null or a handle.
 */
uint64_t relayout_plan_source_bytes(const struct relayout_plan *plan);

/*
 Bytes that the destination has; a host array with strides may have more. 0 for null.

 # Safety

 `plan` is null or a handle.
 */
uint64_t relayout_plan_destination_bytes(const struct relayout_plan *plan);

/*
 Carries a plan out. Any number of threads may do so at the same time.
 On the stack of each are up to 176 KiB of scratch memory.

 # Safety

 `plan` is a handle; of the source so many bytes can be read, of the destination read
 and written; nobody else writes to the one or touches the other meanwhile. Of a
 destination that is not written as a whole (padding that is kept, a window, strides,
 elements below a byte) the bytes have been initialised.
 */
enum relayout_status relayout_plan_run(const struct relayout_plan *plan,
                                       const void *source,
                                       size_t source_bytes,
                                       void *destination,
                                       size_t destination_bytes);

/*
 Carries a plan out on threads of the caller, of which so many can work at the same
 time. Small arrays are done by the calling thread.

 # Safety

 As `relayout_plan_run`; `parallel_for` does what its type says.
 */
enum relayout_status relayout_plan_run_with(const struct relayout_plan *plan,
                                            size_t threads,
                                            relayout_parallel_for parallel_for,
                                            void *pool,
                                            const void *source,
                                            size_t source_bytes,
                                            void *destination,
                                            size_t destination_bytes);

/*
 What a plan does, for people, to be given back with `relayout_string_free`.

 # Safety

 `plan` is a handle; a pointer can be written to `text`.
 */
enum relayout_status relayout_plan_explain(const struct relayout_plan *plan, char **text);

/*
 Gives a plan back. Its chunks stay.

 # Safety

 `plan` is null or a handle, which is not used again.
 */
void relayout_plan_free(struct relayout_plan *plan);

/*
 The chunks of at most so many bytes that the destination of a plan is made of, in its
 order: at most 65536 of them.

 # Safety

 `plan` is a handle; a handle can be written to `chunks`.
 */
enum relayout_status relayout_plan_chunks(const struct relayout_plan *plan,
                                          uint64_t max_bytes,
                                          struct relayout_chunks **chunks);

/*
 How many chunks there are. 0 for null.

 # Safety

 `chunks` is null or a handle.
 */
size_t relayout_chunks_count(const struct relayout_chunks *chunks);

/*
 A chunk of a list, which is there as long as the list; null beyond the last one. It
 is not to be freed.

 # Safety

 `chunks` is null or a handle.
 */
const struct relayout_chunk *relayout_chunks_get(const struct relayout_chunks *chunks, size_t i);

/*
 Gives a list of chunks back.

 # Safety

 `chunks` is null or a handle, which is not used again, nor are its chunks.
 */
void relayout_chunks_free(struct relayout_chunks *chunks);

/*
 The chunk that is a range of the destination, in bytes, from `start` to before `end`.

 # Safety

 `plan` is a handle; a handle can be written to `chunk`.
 */
enum relayout_status relayout_plan_chunk(const struct relayout_plan *plan,
                                         uint64_t start,
                                         uint64_t end,
                                         struct relayout_chunk **chunk);

/*
 Where a chunk is, and what it reads. All 0 for null.

 # Safety

 `chunk` is null or a chunk.
 */
struct relayout_ranges relayout_chunk_ranges(const struct relayout_chunk *chunk);

/*
 Fills a chunk. The source is the whole source, or as much of it from the start on as
 the chunk reads; the destination is the chunk alone.

 # Safety

 As `relayout_plan_run`, `chunk` being a chunk.
 */
enum relayout_status relayout_chunk_run(const struct relayout_chunk *chunk,
                                        const void *source,
                                        size_t source_bytes,
                                        void *destination,
                                        size_t destination_bytes);

/*
 Gives a chunk back that `relayout_plan_chunk` has made.

 # Safety

 `chunk` is null or such a handle, which is not used again.
 */
void relayout_chunk_free(struct relayout_chunk *chunk);

/*
 What went wrong in the last call of this thread that did not return
 RELAYOUT_STATUS_OK. It is there until the next such call of this thread, or its end.
 */
const char *relayout_last_error(void);

/*
 The version of the library, such as `0.1.0`.
 */
const char *relayout_version(void);

/*
 Gives a text back.

 # Safety

 `text` is null or was made by this library, and is not used again.
 */
void relayout_string_free(char *text);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RELAYOUT_H */
