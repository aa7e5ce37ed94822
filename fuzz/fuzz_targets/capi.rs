//! Any sequence of calls of the C interface that its contract allows: with null
//! pointers, short and overlapping buffers, absurd numbers and texts, handles in any
//! order. Calls succeed, or fail with a message and leave what they were given alone.
//! Plans without options do what those of the library do.

#![no_main]

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

use libfuzzer_sys::fuzz_target;
use relayout::{Plan, Shape};
use relayout_capi::*;
use relayout_testing::{Choices, any_shape, small_shape};

/// The most bytes of a buffer.
const MOST_BYTES: u64 = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let mut session = Session::default();
    let mut choices = Choices::new(bytes);
    for _ in 0..3 + choices.below(12) {
        session.step(&mut choices);
    }
});

/// The handles of a caller, given back at its end.
#[derive(Default)]
struct Session {
    shapes: Vec<*mut relayout_shape>,
    plans: Vec<*mut relayout_plan>,
    /// What some of the plans have to do.
    twins: Vec<(*mut relayout_plan, Plan)>,
    chunks: Vec<*mut relayout_chunk>,
    lists: Vec<*mut relayout_chunks>,
}

/// One of the handles, or null.
fn any<T>(choices: &mut Choices<'_>, handles: &[*mut T]) -> *mut T {
    match handles.is_empty() || choices.one_in(20) {
        true => ptr::null_mut(),
        false => *choices.pick(handles),
    }
}

/// Takes one of the handles out of the list.
fn out<T>(choices: &mut Choices<'_>, handles: &mut Vec<*mut T>) -> *mut T {
    match handles.is_empty() {
        true => ptr::null_mut(),
        false => handles.swap_remove(choices.below(handles.len() as u64) as usize),
    }
}

/// Keeps the handle of a call that made one. Others made none.
fn keep<T>(status: relayout_status, handle: *mut T, handles: &mut Vec<*mut T>) {
    assert_eq!(checked(status), !handle.is_null());
    if !handle.is_null() {
        handles.push(handle);
    }
}

/// Whether a call went well. One that did not left a message.
fn checked(status: relayout_status) -> bool {
    if status == relayout_status::Ok {
        return true;
    }
    let message = relayout_last_error();
    assert!(!message.is_null());
    // SAFETY: the message is there until the next call that fails.
    let message = unsafe { CStr::from_ptr(message) }.to_str().unwrap();
    assert!(!message.is_empty());
    assert_ne!(status, relayout_status::Internal, "{message}");
    false
}

/// A text of the library, given back.
fn text(make: impl FnOnce(*mut *mut c_char) -> relayout_status) -> Option<String> {
    let mut text = ptr::null_mut();
    if !checked(make(&mut text)) {
        assert!(text.is_null());
        return None;
    }
    // SAFETY: the call went well.
    let owned = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
    // SAFETY: it is the library's and is not used again.
    unsafe { relayout_string_free(text) };
    Some(owned)
}

unsafe extern "C" fn parallel_for(
    pool: *mut c_void,
    count: usize,
    task: relayout_task,
    task_data: *mut c_void,
) {
    assert_eq!(pool.addr(), 7);
    let task = task.unwrap();
    for i in (0..count).rev() {
        // SAFETY: as the type of the callback says.
        unsafe { task(task_data, i) };
    }
}

/// A call of the C interface.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: handles are null or of a `Session`, which forgets those that it gives
        // back and gives the others back at its end; pointers are null or of values that
        // outlive the call; arrays are as long as is said, and texts end in a zero.
        unsafe { $function($($argument),*) }
    };
}

impl Session {
    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.below(14) {
            0 | 1 => self.parse(choices),
            2 => self.tiled(choices),
            3..=5 => self.plan(choices),
            6 | 7 => self.run(choices),
            8 => self.cut(choices),
            9 => self.chunk(choices),
            10 | 11 => self.run_chunk(choices),
            12 => self.describe(choices),
            _ if choices.one_in(100) => threads(choices),
            _ => self.free(choices),
        }
    }

    fn parse(&mut self, choices: &mut Choices<'_>) {
        let words = match choices.below(4) {
            0 => any_shape(choices).map(|shape| shape.to_string()).unwrap_or_default(),
            1 => {
                let mut text = small_shape(choices, 2000).to_string();
                let at = choices.below(text.len() as u64 + 1) as usize;
                if text.is_char_boundary(at) {
                    let piece: &&str = choices.pick(&["(", ")", "1", ",", "{", "T", "\u{e9}", ""]);
                    text.insert_str(at, piece);
                }
                text
            }
            _ => small_shape(choices, 2000).to_string(),
        };
        let words = CString::new(words).unwrap();
        let text = if choices.one_in(30) { ptr::null() } else { words.as_ptr() };
        let mut handle = ptr::null_mut();
        let status = call!(relayout_shape_parse(text, &mut handle));
        keep(status, handle, &mut self.shapes);
        if choices.one_in(30) {
            assert!(!checked(call!(relayout_shape_parse(text, ptr::null_mut()))));
        }
    }

    fn tiled(&mut self, choices: &mut Choices<'_>) {
        let number = |choices: &mut Choices<'_>| match choices.below(6) {
            0 => choices.number().cast_signed(),
            1 => i64::MIN,
            _ => 1 + choices.below(9) as i64,
        };
        let element_type = *choices.pick(&[c"f32", c"bf16", c"s8", c"pred", c"s4", c"", c"f33"]);
        let mut bounds: Vec<i64> = (0..choices.below(4)).map(|_| number(choices)).collect();
        bounds.iter_mut().for_each(|b| *b = (*b).max(-1));
        let mut order: Vec<i64> =
            choices.order(bounds.len()).iter().map(|&dimension| dimension as i64).collect();
        if choices.one_in(12) {
            order.push(number(choices));
        }
        let sizes: Vec<usize> = (0..choices.below(3)).map(|_| choices.below(4) as usize).collect();
        let tiles: Vec<i64> = (0..sizes.iter().sum()).map(|_| number(choices)).collect();
        let bits = *choices.pick(&[0, 0, 0, 8, 1, 3, u32::MAX]);
        let mut handle = ptr::null_mut();
        let status = call!(relayout_shape_tiled(
            element_type.as_ptr(),
            bounds.as_ptr(),
            bounds.len(),
            order.as_ptr(),
            order.len(),
            tiles.as_ptr(),
            sizes.as_ptr(),
            sizes.len(),
            bits,
            &mut handle,
        ));
        keep(status, handle, &mut self.shapes);
    }

    fn plan(&mut self, choices: &mut Choices<'_>) {
        let shape = any(choices, &self.shapes);
        let other = any(choices, &self.shapes);
        let strides: Vec<i64> = (0..choices.below(4))
            .map(|_| match choices.below(4) {
                0 => choices.number().cast_signed(),
                _ => choices.below(80) as i64 - 20,
            })
            .collect();
        let [start, sizes] = [0, 1].map(|least| -> [u64; 4] {
            std::array::from_fn(|_| match choices.one_in(6) {
                true => choices.number(),
                false => least * choices.below(3),
            })
        });
        let full = size_of::<relayout_options>();
        let is_strided = choices.one_in(4);
        let is_window = choices.one_in(6);
        let enumerator = |choices: &mut Choices<'_>, most: u64| match choices.one_in(30) {
            true => choices.number() as u32,
            false => choices.below(most) as u32,
        };
        let options = relayout_options {
            size: if choices.one_in(20) { choices.below(full as u64 + 1) as usize } else { full },
            padding: enumerator(choices, 3),
            padding_byte: *choices.pick(&[0, 0, 0xb7, 0x100]),
            stores: enumerator(choices, 3),
            bit_order: if choices.one_in(4) { enumerator(choices, 3) } else { 0 },
            tier: match choices.below(5) {
                0 => choices.pick(&[c"scalar", c"portable", c"avx2", c"avx512", c"?"]).as_ptr(),
                _ => ptr::null(),
            },
            host_element_type: match choices.below(8) {
                0 => choices.pick(&[c"f32", c"f64", c"s32", c"bf16", c"x"]).as_ptr(),
                _ => ptr::null(),
            },
            byte_strides: if is_strided { strides.as_ptr() } else { ptr::null() },
            num_byte_strides: if is_strided { strides.len() } else { 0 },
            host_start: if choices.one_in(4) { choices.number() } else { 0 },
            window_start: if is_window { start.as_ptr() } else { ptr::null() },
            window_sizes: if is_window { sizes.as_ptr() } else { ptr::null() },
            window_rank: if is_window { choices.below(5) as usize } else { 0 },
        };
        let options = if choices.one_in(3) { ptr::null() } else { &raw const options };
        let mut handle = ptr::null_mut();
        let kind = choices.below(3);
        let status = match kind {
            0 => call!(relayout_plan_pack(shape, options, &mut handle)),
            1 => call!(relayout_plan_unpack(shape, options, &mut handle)),
            _ => call!(relayout_plan_between(shape, other, options, &mut handle)),
        };
        keep(status, handle, &mut self.plans);
        if options.is_null() && !handle.is_null() {
            let parsed = |shape: *const relayout_shape| -> Shape {
                text(|text| call!(relayout_shape_text(shape, text))).unwrap().parse().unwrap()
            };
            let twin = match kind {
                0 => Plan::pack(&parsed(shape)),
                1 => Plan::unpack(&parsed(shape)),
                _ => Plan::between(&parsed(shape), &parsed(other)),
            };
            self.twins.push((handle, twin.unwrap()));
        }
    }

    fn run(&mut self, choices: &mut Choices<'_>) {
        let plan = any(choices, &self.plans);
        let needed =
            (call!(relayout_plan_source_bytes(plan)), call!(relayout_plan_destination_bytes(plan)));
        let threads = choices.below(4) as usize;
        let twin = self.twins.iter().rev().find(|(handle, _)| *handle == plan).map(|(_, p)| p);
        with_buffers(choices, plan.is_null(), needed, twin, |from, to| match threads {
            0 => call!(relayout_plan_run(plan, from.0, from.1, to.0, to.1)),
            threads => {
                let (work, pool) = (Some(parallel_for as _), ptr::without_provenance_mut(7));
                call!(relayout_plan_run_with(plan, threads, work, pool, from.0, from.1, to.0, to.1))
            }
        });
    }

    fn cut(&mut self, choices: &mut Choices<'_>) {
        let plan = any(choices, &self.plans);
        let bytes = call!(relayout_plan_destination_bytes(plan));
        // A list of all chunks of what is absurdly large takes long.
        let max_bytes = (bytes / 200).saturating_add(choices.number());
        let mut list = ptr::null_mut();
        let status = call!(relayout_plan_chunks(plan, max_bytes, &mut list));
        keep(status, list, &mut self.lists);
        let count = call!(relayout_chunks_count(list));
        assert!(call!(relayout_chunks_get(list, count)).is_null());
        let mut end = 0;
        for i in 0..count {
            let chunk = call!(relayout_chunks_get(list, i));
            let ranges = call!(relayout_chunk_ranges(chunk));
            assert_eq!(ranges.destination_start, end);
            end = ranges.destination_end;
        }
        assert!(list.is_null() || end == bytes);
    }

    fn chunk(&mut self, choices: &mut Choices<'_>) {
        let plan = any(choices, &self.plans);
        let bytes = call!(relayout_plan_destination_bytes(plan));
        let (start, end) = match choices.below(3) {
            0 => (choices.number(), choices.number()),
            _ => (choices.below(bytes.max(1)) & !7, bytes),
        };
        let mut chunk = ptr::null_mut();
        let status = call!(relayout_plan_chunk(plan, start, end, &mut chunk));
        keep(status, chunk, &mut self.chunks);
    }

    fn run_chunk(&mut self, choices: &mut Choices<'_>) {
        let list = any(choices, &self.lists);
        let count = call!(relayout_chunks_count(list));
        let chunk = match choices.one_in(2) && count > 0 {
            true => call!(relayout_chunks_get(list, choices.below(count as u64) as usize)),
            false => any(choices, &self.chunks).cast_const(),
        };
        let ranges = call!(relayout_chunk_ranges(chunk));
        let needed = (ranges.source_end, ranges.destination_end - ranges.destination_start);
        with_buffers(choices, chunk.is_null(), needed, None, |source, destination| {
            call!(relayout_chunk_run(chunk, source.0, source.1, destination.0, destination.1))
        });
    }

    fn describe(&mut self, choices: &mut Choices<'_>) {
        let plan = any(choices, &self.plans);
        let shape = any(choices, &self.shapes);
        let explained = text(|text| call!(relayout_plan_explain(plan, text)));
        assert_eq!(explained.is_some(), !plan.is_null());
        if let Some(text) = text(|text| call!(relayout_shape_text(shape, text))) {
            let text = CString::new(text).unwrap();
            let mut again = ptr::null_mut();
            assert!(checked(call!(relayout_shape_parse(text.as_ptr(), &mut again))));
            call!(relayout_shape_free(again));
        }
    }

    fn free(&mut self, choices: &mut Choices<'_>) {
        match choices.below(4) {
            0 => call!(relayout_shape_free(out(choices, &mut self.shapes))),
            1 => {
                let plan = out(choices, &mut self.plans);
                self.twins.retain(|(handle, _)| *handle != plan);
                call!(relayout_plan_free(plan))
            }
            2 => call!(relayout_chunk_free(out(choices, &mut self.chunks))),
            _ => call!(relayout_chunks_free(out(choices, &mut self.lists))),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shapes.drain(..).for_each(|shape| call!(relayout_shape_free(shape)));
        self.plans.drain(..).for_each(|plan| call!(relayout_plan_free(plan)));
        self.chunks.drain(..).for_each(|chunk| call!(relayout_chunk_free(chunk)));
        self.lists.drain(..).for_each(|list| call!(relayout_chunks_free(list)));
    }
}

/// An array that is large enough for threads.
fn threads(choices: &mut Choices<'_>) {
    let (text, count) = (c"u8[4200001]{0:T(1024)}", choices.below(9) as usize);
    let twin = Plan::pack(&text.to_str().unwrap().parse().unwrap()).unwrap();
    let source = choices.noise(twin.source_bytes());
    let mut image = vec![0xee; twin.destination_bytes() as usize];
    let (mut shape, mut plan) = (ptr::null_mut(), ptr::null_mut());
    assert!(checked(call!(relayout_shape_parse(text.as_ptr(), &mut shape))));
    assert!(checked(call!(relayout_plan_pack(shape, ptr::null(), &mut plan))));
    let (work, pool) = (Some(parallel_for as _), ptr::without_provenance_mut(7));
    let (from, to) = (source.as_ptr().cast(), image.as_mut_ptr().cast());
    let lengths = (source.len(), image.len());
    let status =
        call!(relayout_plan_run_with(plan, count, work, pool, from, lengths.0, to, lengths.1));
    assert!(checked(status));
    call!(relayout_plan_free(plan));
    call!(relayout_shape_free(shape));
    assert!(image == twin.run_to_vec(&source).unwrap());
}

/// Runs with buffers that are right, short by a byte, null or upon each other, and
/// checks that a run that is refused left the destination alone.
fn with_buffers(
    choices: &mut Choices<'_>,
    is_null: bool,
    needed: (u64, u64),
    twin: Option<&Plan>,
    run: impl FnOnce((*const c_void, usize), (*mut c_void, usize)) -> relayout_status,
) {
    let kind = choices.below(8);
    let short = |bytes: u64, is_short: bool| bytes.saturating_sub(u64::from(is_short));
    let bytes = (short(needed.0, kind == 1), short(needed.1, kind == 2));
    let is_right = bytes == needed;
    if bytes.0 > MOST_BYTES || bytes.1 > MOST_BYTES {
        assert!(!checked(run((ptr::null(), 0), (ptr::null_mut(), 0))));
        return;
    }
    let source = choices.noise(bytes.0);
    let mut destination = vec![0xee_u8; bytes.1 as usize];
    let (from, to) = (source.as_ptr().cast::<c_void>(), destination.as_mut_ptr().cast::<c_void>());
    let lengths = (source.len(), destination.len());
    let went_well = match kind {
        // Null, with a length.
        3 => checked(run((ptr::null(), lengths.0), (to, lengths.1))),
        4 => checked(run((from, lengths.0), (ptr::null_mut(), lengths.1))),
        // A source in the destination.
        5 if lengths.0 > 0 && lengths.1 > lengths.0 => {
            checked(run((to.wrapping_byte_add(1).cast_const(), lengths.0), (to, lengths.1)))
        }
        _ => checked(run((from, lengths.0), (to, lengths.1))),
    };
    match kind {
        3 => assert!(!went_well || (!is_null && lengths.0 == 0)),
        4 => assert!(!went_well || (!is_null && lengths.1 == 0)),
        5 if lengths.0 > 0 && lengths.1 > lengths.0 => assert!(!went_well),
        _ => assert_eq!(went_well, !is_null && is_right),
    }
    if !went_well {
        assert!(destination.iter().all(|&byte| byte == 0xee));
    } else if let Some(twin) = twin {
        let mut expected = vec![0xee; destination.len()];
        twin.run(&source, &mut expected).unwrap();
        assert!(destination == expected, "{}", twin.explain());
    }
}
