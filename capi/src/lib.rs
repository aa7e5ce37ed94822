//! The C interface.
//!
//! Every function that can fail returns a status, 0 for success, and leaves a message
//! for `relayout_last_error`. No panic leaves this crate: it becomes a status. Handles
//! are made by the functions that have a pointer to a handle as their last argument, and
//! given back by the `_free` function of their kind; a null handle is an error where one
//! is needed, and nothing where it is freed.
//!
//! include/relayout.h is made from this file.

#![allow(non_camel_case_types, reason = "the names are those of C")]
#![allow(unsafe_code, reason = "what comes from C are pointers")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use relayout_core::{
    BitOrder, Chunk, ElementType, Error, Executor, Host, Layout, Padding, Plan, PlanBuilder, Shape,
    Tier, Tile, TileEntry,
};

/// What became of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum relayout_status {
    /// All went well.
    Ok = 0,
    /// An argument is null that must not be, or has a value that it cannot have.
    InvalidArgument = 1,
    /// A text is no shape, no element type or no tier.
    Parse = 2,
    /// A shape or a layout means nothing, or is too large.
    Shape = 3,
    /// Two shapes are not the same array.
    Mismatch = 4,
    /// A host array or a window cannot be.
    Host = 5,
    /// A buffer has not the length that it must have, or two overlap.
    Buffer = 6,
    /// A range is no chunk, or there would be too many of them.
    Chunk = 7,
    /// A defect of this library.
    Internal = 8,
}

/// What is written where an image holds no element.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum relayout_padding {
    /// Zeros.
    Zero = 0,
    /// Nothing.
    Keep = 1,
    /// The byte `padding_byte`.
    Byte = 2,
}

/// Whether an image is written past the caches.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum relayout_stores {
    /// By its size.
    Auto = 0,
    /// Always.
    Streaming = 1,
    /// Never.
    Ordinary = 2,
}

/// How elements below a byte lie in the host array.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum relayout_bit_order {
    /// One in a byte.
    NotPacked = 0,
    /// As many as there is room for in a byte, the first in the least significant bits.
    LeastFirst = 1,
    /// As many as there is room for in a byte, the first in the most significant bits.
    MostFirst = 2,
}

/// Options of a plan. All zeros are the usual ones; set `size` to `sizeof` of it. A
/// library takes the options of an older one.
#[repr(C)]
pub struct relayout_options {
    /// Bytes of this structure.
    pub size: usize,
    /// A value of `relayout_padding`.
    pub padding: u32,
    /// The byte that `RELAYOUT_PADDING_BYTE` means.
    pub padding_byte: u32,
    /// A value of `relayout_stores`.
    pub stores: u32,
    /// A value of `relayout_bit_order`.
    pub bit_order: u32,
    /// The name of a tier of instructions (`scalar`, `avx2`, …), or null for the best.
    pub tier: *const c_char,
    /// The element type of the host array (`f32`, …), or null for that of the image. To
    /// convert numbers, threads have to round to the nearest and keep subnormal ones, as
    /// they do unless they were told otherwise.
    pub host_element_type: *const c_char,
    /// Strides of the host array in bytes, major to minor, or null for a dense one.
    pub byte_strides: *const i64,
    /// How many strides there are: the rank, or one less of packed elements.
    pub num_byte_strides: usize,
    /// The byte of the host buffer at which the first element is.
    pub host_start: u64,
    /// Where the window that is moved starts, by dimension, or null for all of it.
    pub window_start: *const u64,
    /// How many elements of each dimension it has, or null.
    pub window_sizes: *const u64,
    /// Dimensions of the window.
    pub window_rank: usize,
}

/// An array in a layout.
pub struct relayout_shape(Shape);

/// How an array is written in one layout from another one.
pub struct relayout_plan(Arc<Plan>);

/// A range of a destination that can be filled alone.
pub struct relayout_chunk(Chunk);

/// The chunks of a destination.
pub struct relayout_chunks(Vec<relayout_chunk>);

/// Byte ranges of a chunk, from `start` to before `end`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct relayout_ranges {
    /// Where it is in the destination.
    pub destination_start: u64,
    /// Its end in the destination.
    pub destination_end: u64,
    /// Where what it reads starts in the source.
    pub source_start: u64,
    /// The end of what it reads in the source.
    pub source_end: u64,
}

/// One of the tasks that a `relayout_parallel_for` calls.
pub type relayout_task = Option<unsafe extern "C" fn(task_data: *mut c_void, i: usize)>;

/// Threads of the caller: calls `task(task_data, i)` for each i below `count`, on any
/// threads, and returns when all calls have returned. `pool` is what the caller gave.
pub type relayout_parallel_for = Option<
    unsafe extern "C" fn(
        pool: *mut c_void,
        count: usize,
        task: relayout_task,
        task_data: *mut c_void,
    ),
>;

/// More chunks than these are not listed.
const MAX_CHUNKS: usize = 1 << 16;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// A status and its message.
struct Failure(relayout_status, String);

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match &error {
            Error::Parse(_) | Error::ElementType(_) => relayout_status::Parse,
            Error::Shape(_) | Error::Index(_) => relayout_status::Shape,
            Error::Mismatch(_) => relayout_status::Mismatch,
            Error::Host(_) => relayout_status::Host,
            Error::Buffer(_) => relayout_status::Buffer,
            Error::Chunk(_) => relayout_status::Chunk,
            _ => relayout_status::Internal,
        };
        Failure(status, error.to_string())
    }
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure(relayout_status::InvalidArgument, message.into())
}

/// Runs what a function does, and turns what goes wrong into a status.
fn checked(body: impl FnOnce() -> Result<(), Failure>) -> relayout_status {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        Err(Failure(relayout_status::Internal, "a defect of relayout: it panicked".to_owned()))
    });
    match result {
        Ok(()) => relayout_status::Ok,
        Err(Failure(status, message)) => {
            let text = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
            // A thread that is about to end has no message any more.
            let _ = LAST_ERROR.try_with(|last| last.replace(text));
            status
        }
    }
}

/// What a handle points to.
///
/// # Safety
///
/// It is null, or was made by this library and not given back.
unsafe fn handle<'a, T>(handle: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: by the contract of this function.
    unsafe { handle.as_ref() }.ok_or_else(|| invalid(format!("`{name}` is null")))
}

/// Puts a new handle where the caller wants it.
///
/// # Safety
///
/// `to` is null, or a handle can be written there.
unsafe fn give<T>(to: *mut *mut T, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(invalid("there is no place for the result: the last argument is null"));
    }
    // SAFETY: by the contract of this function.
    unsafe { to.write(Box::into_raw(Box::new(value))) };
    Ok(())
}

/// Takes a handle back.
///
/// # Safety
///
/// It is null, or was made by this library and not given back.
unsafe fn take_back<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: by the contract of this function, it came from `give`.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// A list of the caller.
///
/// # Safety
///
/// `start` is null, or `count` values can be read from there.
unsafe fn list<'a, T>(start: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    let fits =
        count.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    match (start.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(invalid(format!("`{name}` is null, but has {count} entries"))),
        _ if !fits => Err(invalid(format!("`{name}` has {count} entries, more than memory"))),
        _ if !start.is_aligned() => Err(invalid(format!("`{name}` is not aligned"))),
        // SAFETY: by the contract of this function, and no longer than memory can be.
        _ => Ok(unsafe { std::slice::from_raw_parts(start, count) }),
    }
}

/// A text of the caller, if there is one.
///
/// # Safety
///
/// It is null, or ends with a zero.
unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: by the contract of this function.
    let text = unsafe { CStr::from_ptr(text) };
    match text.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Failure(relayout_status::Parse, format!("`{name}` is not UTF-8"))),
    }
}

/// The two buffers of a run.
///
/// # Safety
///
/// Each is null, or so many bytes can be read, and in the destination written.
unsafe fn buffers<'a>(
    source: *const c_void,
    source_bytes: usize,
    destination: *mut c_void,
    destination_bytes: usize,
) -> Result<(&'a [u8], &'a mut [u8]), Failure> {
    let (from, to) = (source.addr(), destination.addr());
    // SAFETY: by the contract of this function.
    let source = unsafe { list(source.cast::<u8>(), source_bytes, "source") }?;
    // SAFETY: by the contract of this function; nothing is done with it but to look at
    // the pointer and the length.
    unsafe { list(destination.cast::<u8>(), destination_bytes, "destination") }?;
    let both = source_bytes > 0 && destination_bytes > 0;
    let (from_end, to_end) =
        (from.saturating_add(source_bytes), to.saturating_add(destination_bytes));
    if both && from < to_end && to < from_end {
        let message = "the source and the destination overlap".to_owned();
        return Err(Failure(relayout_status::Buffer, message));
    }
    let destination = match destination_bytes {
        0 => &mut [],
        // SAFETY: `list` has looked at the pointer and the length; by the contract of
        // this function it can be written, and nothing else here points to it.
        _ => unsafe { std::slice::from_raw_parts_mut(destination.cast::<u8>(), destination_bytes) },
    };
    Ok((source, destination))
}

/// Reads a shape in XLA's notation, such as `bf16[1024,4096]{1,0:T(8,128)(2,1)}`.
///
/// # Safety
///
/// `text` ends with a zero; a handle can be written to `shape`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_shape_parse(
    text: *const c_char,
    shape: *mut *mut relayout_shape,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let text = unsafe { self::text(text, "text") }?.ok_or_else(|| invalid("`text` is null"))?;
        let parsed = text.parse::<Shape>().map_err(Error::from)?;
        // SAFETY: by the contract of this function.
        unsafe { give(shape, relayout_shape(parsed)) }
    })
}

/// A shape from the arrays of a PJRT_Buffer_MemoryLayout_Tiled.
///
/// `bounds` go from major to minor, in elements. `tile_dims` are the entries of all tiles
/// one after the other, of which each tile has `tile_dim_sizes[i]`; INT64_MIN combines a
/// dimension with the next one. `element_bits` is the width of an element in the image,
/// or 0 for whole bytes.
///
/// # Safety
///
/// `element_type` ends with a zero; the arrays have as many entries as is said; a handle
/// can be written to `shape`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_shape_tiled(
    element_type: *const c_char,
    bounds: *const i64,
    num_bounds: usize,
    minor_to_major: *const i64,
    minor_to_major_size: usize,
    tile_dims: *const i64,
    tile_dim_sizes: *const usize,
    num_tiles: usize,
    element_bits: u32,
    shape: *mut *mut relayout_shape,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let element_type = unsafe { text(element_type, "element_type") }?
            .ok_or_else(|| invalid("`element_type` is null"))?;
        let element_type: ElementType = element_type.parse().map_err(Error::from)?;
        // SAFETY: by the contract of this function.
        let bounds = unsafe { list(bounds, num_bounds, "bounds") }?;
        // SAFETY: by the contract of this function.
        let order = unsafe { list(minor_to_major, minor_to_major_size, "minor_to_major") }?;
        // SAFETY: by the contract of this function.
        let sizes = unsafe { list(tile_dim_sizes, num_tiles, "tile_dim_sizes") }?;
        let entries = sizes.iter().try_fold(0_usize, |n, &size| n.checked_add(size));
        let entries = entries.ok_or_else(|| invalid("`tile_dim_sizes` add up to too much"))?;
        // SAFETY: by the contract of this function.
        let mut entries = unsafe { list(tile_dims, entries, "tile_dims") }?;

        let unsigned = |name: &'static str| {
            move |&n: &i64| u64::try_from(n).map_err(|_| invalid(format!("`{name}` has {n}")))
        };
        let bounds: Vec<u64> = bounds.iter().map(unsigned("bounds")).collect::<Result<_, _>>()?;
        let dimension =
            |&n: &i64| usize::try_from(n).map_err(|_| invalid(format!("`minor_to_major` has {n}")));
        let order: Vec<usize> = order.iter().map(dimension).collect::<Result<_, _>>()?;
        let mut tiles = Vec::new();
        for &size in sizes {
            let (tile, rest) = entries.split_at(size);
            entries = rest;
            let entry = |n: &i64| match *n {
                i64::MIN => Ok(TileEntry::Combine),
                _ => unsigned("tile_dims")(n).map(TileEntry::Bound),
            };
            let tile: Vec<TileEntry> = tile.iter().map(entry).collect::<Result<_, _>>()?;
            tiles.push(Tile::new(tile).map_err(Error::from)?);
        }
        let layout = Layout::new(order).and_then(|layout| layout.with_tiles(tiles));
        let layout = match element_bits {
            0 => layout,
            bits => layout.and_then(|layout| layout.with_element_bits(bits.into())),
        };
        let made = Shape::new(element_type, bounds, layout.map_err(Error::from)?);
        // SAFETY: by the contract of this function.
        unsafe { give(shape, relayout_shape(made.map_err(Error::from)?)) }
    })
}

/// The shape in XLA's notation, to be given back with `relayout_string_free`.
///
/// # Safety
///
/// `shape` is a handle; a pointer can be written to `text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_shape_text(
    shape: *const relayout_shape,
    text: *mut *mut c_char,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let shape = unsafe { handle(shape, "shape") }?;
        // SAFETY: by the contract of this function.
        unsafe { give_text(text, shape.0.to_string()) }
    })
}

/// Gives a shape back.
///
/// # Safety
///
/// `shape` is null or a handle, which is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_shape_free(shape: *mut relayout_shape) {
    // SAFETY: by the contract of this function.
    unsafe { take_back(shape) };
}

/// A plan to write the image of a host array. `options` may be null.
///
/// # Safety
///
/// `shape` is a handle; `options` is null or has as many bytes as it says, and its
/// pointers are null or point to as much as it says; a handle can be written to `plan`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_pack(
    shape: *const relayout_shape,
    options: *const relayout_options,
    plan: *mut *mut relayout_plan,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let shape = unsafe { handle(shape, "shape") }?;
        // SAFETY: by the contract of this function.
        let made = unsafe { self::builder(options) }?.pack(&shape.0)?;
        // SAFETY: by the contract of this function.
        unsafe { give(plan, relayout_plan(Arc::new(made))) }
    })
}

/// A plan to write the host array whose image is given. `options` may be null.
///
/// # Safety
///
/// As `relayout_plan_pack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_unpack(
    shape: *const relayout_shape,
    options: *const relayout_options,
    plan: *mut *mut relayout_plan,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let shape = unsafe { handle(shape, "shape") }?;
        // SAFETY: by the contract of this function.
        let made = unsafe { self::builder(options) }?.unpack(&shape.0)?;
        // SAFETY: by the contract of this function.
        unsafe { give(plan, relayout_plan(Arc::new(made))) }
    })
}

/// A plan to write the image of an array in one layout from that in another one.
/// `options` may be null; those about host arrays mean nothing here.
///
/// # Safety
///
/// As `relayout_plan_pack`, `from` and `to` being handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_between(
    from: *const relayout_shape,
    to: *const relayout_shape,
    options: *const relayout_options,
    plan: *mut *mut relayout_plan,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let from = unsafe { handle(from, "from") }?;
        // SAFETY: by the contract of this function.
        let to = unsafe { handle(to, "to") }?;
        // SAFETY: by the contract of this function.
        let made = unsafe { self::builder(options) }?.between(&from.0, &to.0)?;
        // SAFETY: by the contract of this function.
        unsafe { give(plan, relayout_plan(Arc::new(made))) }
    })
}

/// The options of a plan.
///
/// # Safety
///
/// As `relayout_plan_pack`.
unsafe fn builder(options: *const relayout_options) -> Result<PlanBuilder, Failure> {
    let mut builder = PlanBuilder::new();
    if options.is_null() {
        return Ok(builder);
    }
    // SAFETY: by the contract of this function; the size comes first in it.
    let size = unsafe { options.cast::<usize>().read_unaligned() };
    let known = size_of::<relayout_options>();
    // Those of an older header end where a field does, and with none cut in two.
    let is_cut = !size.is_multiple_of(align_of::<relayout_options>());
    if size < size_of::<usize>() || size > known || is_cut {
        return Err(invalid(format!("`options->size` is {size}, but the options have {known}")));
    }
    // What an older caller does not know of is as usual.
    let mut copy = MaybeUninit::<relayout_options>::zeroed();
    // SAFETY: by the contract of this function there are so many bytes, and they are no
    // more than the options have.
    unsafe { options.cast::<u8>().copy_to_nonoverlapping(copy.as_mut_ptr().cast(), size) };
    // SAFETY: numbers and pointers, of which all bits mean something, zeros too.
    let options = unsafe { copy.assume_init() };
    builder = match options.padding {
        0 => builder,
        1 => builder.padding(Padding::Keep),
        2 => match u8::try_from(options.padding_byte) {
            Ok(byte) => builder.padding(Padding::Byte(byte)),
            Err(_) => return Err(invalid(format!("`padding_byte` is {}", options.padding_byte))),
        },
        other => return Err(invalid(format!("`padding` is {other}"))),
    };
    builder = match options.stores {
        0 => builder,
        1 => builder.streaming(true),
        2 => builder.streaming(false),
        other => return Err(invalid(format!("`stores` is {other}"))),
    };
    // SAFETY: by the contract of this function.
    if let Some(name) = unsafe { text(options.tier, "tier") }? {
        let tier: Tier = name.parse().map_err(|e: relayout_core::TierError| {
            Failure(relayout_status::Parse, e.to_string())
        })?;
        builder = builder.tier(tier);
    }
    let mut host = Host::dense();
    if !options.byte_strides.is_null() {
        let (strides, count) = (options.byte_strides, options.num_byte_strides);
        // SAFETY: by the contract of this function.
        host = Host::strided(unsafe { list(strides, count, "byte_strides") }?);
    } else if options.num_byte_strides > 0 {
        return Err(invalid("`byte_strides` is null, but has entries"));
    }
    // SAFETY: by the contract of this function.
    if let Some(name) = unsafe { text(options.host_element_type, "host_element_type") }? {
        host = host.of(name.parse().map_err(Error::from)?);
    }
    host = match options.bit_order {
        0 => host,
        1 => host.packed(BitOrder::LeastFirst),
        2 => host.packed(BitOrder::MostFirst),
        other => return Err(invalid(format!("`bit_order` is {other}"))),
    };
    builder = builder.host(host.starting_at(options.host_start));
    if !options.window_start.is_null() || !options.window_sizes.is_null() {
        let rank = options.window_rank;
        if options.window_start.is_null() || options.window_sizes.is_null() {
            return Err(invalid("`window_start` or `window_sizes` is null, but not both"));
        }
        // SAFETY: by the contract of this function.
        let start = unsafe { list(options.window_start, rank, "window_start") }?;
        // SAFETY: by the contract of this function.
        let sizes = unsafe { list(options.window_sizes, rank, "window_sizes") }?;
        builder = builder.window(start, sizes);
    }
    Ok(builder)
}

/// Bytes that the source has; a host array with strides may have more. 0 for null.
///
/// # Safety
///
/// `plan` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_source_bytes(plan: *const relayout_plan) -> u64 {
    // SAFETY: by the contract of this function.
    unsafe { plan.as_ref() }.map_or(0, |plan| plan.0.source_bytes())
}

/// Bytes that the destination has; a host array with strides may have more. 0 for null.
///
/// # Safety
///
/// `plan` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_destination_bytes(plan: *const relayout_plan) -> u64 {
    // SAFETY: by the contract of this function.
    unsafe { plan.as_ref() }.map_or(0, |plan| plan.0.destination_bytes())
}

/// Carries a plan out. Any number of threads may do so at the same time.
/// On the stack of each are up to 176 KiB of scratch memory.
///
/// # Safety
///
/// `plan` is a handle; of the source so many bytes can be read, of the destination read
/// and written; nobody else writes to the one or touches the other meanwhile. Of a
/// destination that is not written as a whole (padding that is kept, a window, strides,
/// elements below a byte) the bytes have been initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_run(
    plan: *const relayout_plan,
    source: *const c_void,
    source_bytes: usize,
    destination: *mut c_void,
    destination_bytes: usize,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let plan = unsafe { handle(plan, "plan") }?;
        // SAFETY: by the contract of this function.
        let (source, destination) =
            unsafe { buffers(source, source_bytes, destination, destination_bytes) }?;
        Ok(plan.0.run(source, destination).map_err(Error::from)?)
    })
}

/// Carries a plan out on threads of the caller, of which so many can work at the same
/// time. Small arrays are done by the calling thread.
///
/// # Safety
///
/// As `relayout_plan_run`; `parallel_for` does what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_run_with(
    plan: *const relayout_plan,
    threads: usize,
    parallel_for: relayout_parallel_for,
    pool: *mut c_void,
    source: *const c_void,
    source_bytes: usize,
    destination: *mut c_void,
    destination_bytes: usize,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let plan = unsafe { handle(plan, "plan") }?;
        if parallel_for.is_none() {
            return Err(invalid("`parallel_for` is null"));
        }
        // SAFETY: by the contract of this function.
        let (source, destination) =
            unsafe { buffers(source, source_bytes, destination, destination_bytes) }?;
        let pool = Pool { threads, parallel_for, pool, panicked: AtomicBool::new(false) };
        plan.0.run_with(&pool, source, destination).map_err(Error::from)?;
        if pool.panicked.into_inner() {
            let message = "a defect of relayout: a task panicked".to_owned();
            return Err(Failure(relayout_status::Internal, message));
        }
        Ok(())
    })
}

/// Threads of a C program.
struct Pool {
    threads: usize,
    parallel_for: relayout_parallel_for,
    pool: *mut c_void,
    panicked: AtomicBool,
}

/// What `call_task` gets.
struct Work<'a> {
    task: &'a (dyn Fn(usize) + Sync),
    panicked: &'a AtomicBool,
}

impl Executor for Pool {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let Some(parallel_for) = self.parallel_for else { return };
        let mut work = Work { task, panicked: &self.panicked };
        // SAFETY: by the contract of `relayout_plan_run_with` all calls have returned
        // when this does, so `work` is there for all of them; it may be shared.
        unsafe { parallel_for(self.pool, count, Some(call_task), (&raw mut work).cast()) };
    }
}

/// Calls the task that `data` points to.
///
/// # Safety
///
/// It is what `Pool::run` has given.
unsafe extern "C" fn call_task(data: *mut c_void, i: usize) {
    // SAFETY: by the contract of this function.
    let work = unsafe { &*data.cast_const().cast::<Work<'_>>() };
    // No panic may go into the caller's threads.
    if catch_unwind(AssertUnwindSafe(|| (work.task)(i))).is_err() {
        work.panicked.store(true, Ordering::Relaxed);
    }
}

/// What a plan does, for people, to be given back with `relayout_string_free`.
///
/// # Safety
///
/// `plan` is a handle; a pointer can be written to `text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_explain(
    plan: *const relayout_plan,
    text: *mut *mut c_char,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let plan = unsafe { handle(plan, "plan") }?;
        // SAFETY: by the contract of this function.
        unsafe { give_text(text, plan.0.explain().to_string()) }
    })
}

/// Gives a plan back. Its chunks stay.
///
/// # Safety
///
/// `plan` is null or a handle, which is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_free(plan: *mut relayout_plan) {
    // SAFETY: by the contract of this function.
    unsafe { take_back(plan) };
}

/// The chunks of at most so many bytes that the destination of a plan is made of, in its
/// order: at most 65536 of them.
///
/// # Safety
///
/// `plan` is a handle; a handle can be written to `chunks`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_chunks(
    plan: *const relayout_plan,
    max_bytes: u64,
    chunks: *mut *mut relayout_chunks,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let plan = unsafe { handle(plan, "plan") }?;
        let all = plan.0.chunks(max_bytes);
        if all.size_hint().0 > MAX_CHUNKS {
            let message = format!("chunks of {max_bytes} bytes are more than {MAX_CHUNKS}");
            return Err(Failure(relayout_status::Chunk, message));
        }
        let list: Vec<relayout_chunk> = all.map(relayout_chunk).collect();
        let end = list.last().map_or(0, |chunk| chunk.0.destination().end);
        if end != plan.0.destination_bytes() {
            let message = format!("the destination cannot be cut from byte {end} on");
            return Err(Failure(relayout_status::Chunk, message));
        }
        // SAFETY: by the contract of this function.
        unsafe { give(chunks, relayout_chunks(list)) }
    })
}

/// How many chunks there are. 0 for null.
///
/// # Safety
///
/// `chunks` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_chunks_count(chunks: *const relayout_chunks) -> usize {
    // SAFETY: by the contract of this function.
    unsafe { chunks.as_ref() }.map_or(0, |chunks| chunks.0.len())
}

/// A chunk of a list, which is there as long as the list; null beyond the last one. It
/// is not to be freed.
///
/// # Safety
///
/// `chunks` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_chunks_get(
    chunks: *const relayout_chunks,
    i: usize,
) -> *const relayout_chunk {
    // SAFETY: by the contract of this function.
    let chunks = unsafe { chunks.as_ref() };
    chunks.and_then(|chunks| chunks.0.get(i)).map_or(ptr::null(), ptr::from_ref)
}

/// Gives a list of chunks back.
///
/// # Safety
///
/// `chunks` is null or a handle, which is not used again, nor are its chunks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_chunks_free(chunks: *mut relayout_chunks) {
    // SAFETY: by the contract of this function.
    unsafe { take_back(chunks) };
}

/// The chunk that is a range of the destination, in bytes, from `start` to before `end`.
///
/// # Safety
///
/// `plan` is a handle; a handle can be written to `chunk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_chunk(
    plan: *const relayout_plan,
    start: u64,
    end: u64,
    chunk: *mut *mut relayout_chunk,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let plan = unsafe { handle(plan, "plan") }?;
        let made = plan.0.chunk(start..end).map_err(Error::from)?;
        // SAFETY: by the contract of this function.
        unsafe { give(chunk, relayout_chunk(made)) }
    })
}

/// Where a chunk is, and what it reads. All 0 for null.
///
/// # Safety
///
/// `chunk` is null or a chunk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_chunk_ranges(chunk: *const relayout_chunk) -> relayout_ranges {
    // SAFETY: by the contract of this function.
    let Some(chunk) = (unsafe { chunk.as_ref() }) else { return relayout_ranges::default() };
    let (destination, source) = (chunk.0.destination(), chunk.0.source());
    relayout_ranges {
        destination_start: destination.start,
        destination_end: destination.end,
        source_start: source.start,
        source_end: source.end,
    }
}

/// Fills a chunk. The source is the whole source, or as much of it from the start on as
/// the chunk reads; the destination is the chunk alone.
///
/// # Safety
///
/// As `relayout_plan_run`, `chunk` being a chunk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_chunk_run(
    chunk: *const relayout_chunk,
    source: *const c_void,
    source_bytes: usize,
    destination: *mut c_void,
    destination_bytes: usize,
) -> relayout_status {
    checked(|| {
        // SAFETY: by the contract of this function.
        let chunk = unsafe { handle(chunk, "chunk") }?;
        // SAFETY: by the contract of this function.
        let (source, destination) =
            unsafe { buffers(source, source_bytes, destination, destination_bytes) }?;
        Ok(chunk.0.run(source, destination).map_err(Error::from)?)
    })
}

/// Gives a chunk back that `relayout_plan_chunk` has made.
///
/// # Safety
///
/// `chunk` is null or such a handle, which is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_chunk_free(chunk: *mut relayout_chunk) {
    // SAFETY: by the contract of this function.
    unsafe { take_back(chunk) };
}

/// What went wrong in the last call of this thread that did not return
/// RELAYOUT_STATUS_OK. It is there until the next such call of this thread, or its end.
#[unsafe(no_mangle)]
pub extern "C" fn relayout_last_error() -> *const c_char {
    LAST_ERROR.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn relayout_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Puts a new text where the caller wants it.
///
/// # Safety
///
/// `to` is null, or a pointer can be written there.
unsafe fn give_text(to: *mut *mut c_char, text: String) -> Result<(), Failure> {
    if to.is_null() {
        return Err(invalid("there is no place for the result: the last argument is null"));
    }
    let text = CString::new(text.replace('\0', "\\0")).unwrap_or_default();
    // SAFETY: by the contract of this function.
    unsafe { to.write(text.into_raw()) };
    Ok(())
}

/// Gives a text back.
///
/// # Safety
///
/// `text` is null or was made by this library, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: by the contract of this function.
        drop(unsafe { CString::from_raw(text) });
    }
}
