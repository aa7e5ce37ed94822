//! Absurd input of the library: an error that names the value, no memory taken by a
//! number that nobody checked, and destinations left as they were.
//!
//! docs/testing.md has the table of all bad input and of the tests of each.

#![allow(unsafe_code, reason = "an allocator that watches is unsafe to write")]

mod common;

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::cell::Cell;
use std::fmt::Display;
use std::mem::MaybeUninit;

use common::shape;
use relayout::index::ImageMap;
use relayout::staging::Stager;
use relayout::{
    AnyShape, ElementType, Executor, Host, Layout, Plan, PlanBuilder, Shape, Tile, TileEntry,
    oracle,
};

/// The system's allocator, which takes note of the largest allocation of each thread.
struct Watched;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(bytes: usize) {
    // At the end of a thread there is nothing to note it in.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: all is done by the system's allocator, with what it is given here.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        note(memory.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(memory) }
    }

    unsafe fn alloc_zeroed(&self, memory: Memory) -> *mut u8 {
        note(memory.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(memory) }
    }

    unsafe fn realloc(&self, at: *mut u8, memory: Memory, bytes: usize) -> *mut u8 {
        note(bytes);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, memory, bytes) }
    }

    unsafe fn dealloc(&self, at: *mut u8, memory: Memory) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, memory) }
    }
}

#[global_allocator]
static WATCHED: Watched = Watched;

/// Does something that must not take more memory than this at once, in bytes.
fn within<T>(most: usize, work: impl FnOnce() -> T) -> T {
    LARGEST.set(0);
    let result = work();
    assert!(LARGEST.get() <= most, "{} bytes were allocated at once", LARGEST.get());
    result
}

/// What is enough for whatever is refused, and for plans however large their arrays.
const MODEST: usize = 256 << 10;

/// The message of what is refused, which has to name all of these.
#[track_caller]
fn refused<T, E: Display>(result: Result<T, E>, parts: &[&str]) {
    let message = match result {
        Ok(_) => panic!("not refused: {parts:?}"),
        Err(error) => error.to_string(),
    };
    for part in parts {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}

/// All that can be asked of a shape without its buffers.
fn ask(text: &str) -> Result<Plan, relayout::Error> {
    let shape: Shape = text.parse()?;
    let _ = (shape.warnings(), shape.steps(), shape.to_string());
    if let Ok(map) = ImageMap::new(&shape) {
        for at in [0, 1, map.elements() / 2, map.image_elements().wrapping_sub(1), u64::MAX] {
            let _ = map.logical_index(at).map(|index| index.map(|i| map.image_element(&i)));
            let _ = map.index_of(at).map(|index| map.bit_offset(&index));
        }
    }
    refused(oracle::pack(&shape, &[1; 3], &mut [2; 5]), &[]);
    let plan = Plan::pack(&shape)?;
    let _ = (plan.explain().to_string(), Plan::unpack(&shape)?.explain().to_string());
    let _ = Plan::between(&shape, &shape.in_host_layout())?;
    for max_bytes in [0, 1, 4096, u64::MAX] {
        let mut end = 0;
        for chunk in plan.chunks(max_bytes).take(3) {
            assert_eq!(chunk.destination().start, end);
            end = chunk.destination().end;
            assert!(end <= plan.destination_bytes());
            assert!(chunk.len() as u64 <= max_bytes.max(plan.grain_bytes()));
        }
    }
    Ok(plan)
}

#[test]
fn absurd_bounds() {
    let rank65 = vec!["1"; 65].join(",");
    for (text, parts) in [
        ("u8[9223372036854775808]", &["9223372036854775808", "below 2^63", "byte 3"][..]),
        ("u8[99999999999999999999999999]", &["99999999999999999999999999"]),
        ("u8[-1]", &["-1", "negative"]),
        ("u8[4294967296,4294967296]", &["byte 2", "2^63 elements"]),
        (&format!("u8[{rank65}]"), &["65 dimensions"]),
        ("f32[?]", &["dimension 0", "no bound"]),
        ("u8[9223372036854775807]", &["9223372036854775807 elements of 8 bits"]),
        ("f32[3,3074457345618258602]", &["9223372036854775806 elements of 32 bits"]),
        ("s1[9223372036854775807]{0:E(1)}", &["9223372036854775807 elements", "stride of 8 bits"]),
    ] {
        within(MODEST, || refused(ask(text), parts));
    }
    // These have plans; buffers as long as they say nobody has.
    for text in [
        "f32[0,9223372036854775807,9223372036854775807]",
        "f32[0,1125899906842624]{0,1:T(8,128)}",
        "bf16[0,5]{1,0:T(8,128)(2,1)}",
        "u8[1152921504606846975]",
        "bf16[4503599627370496,63]{1,0:T(8,128)(2,1)}",
        "s1[1152921504606846975]{0:E(1)}",
        "f32[<=1152921504606846]{0:T(1024)}",
        // Rows that begin within lines.
        "s8[4,1099511627777,130]{2,1,0:T(8,128)(4,1)}",
        "s4[1099511627777,130]{1,0:T(64,128)(8,1)E(4)}",
    ] {
        let plan = within(MODEST, || ask(text)).unwrap();
        if plan.destination_bytes() > 0 {
            within(MODEST, || refused(plan.run(&[1], &mut [2]), &["bytes"]));
            let needed = plan.source_bytes().to_string();
            within(MODEST, || refused(plan.run_to_vec(&[]), &[&needed]));
            let stager = || Stager::new([vec![0; 64], vec![0; 64]]).stage(&plan, &[]).map(|_| ());
            within(MODEST, || refused(stager(), &[&needed]));
        }
    }
    // Without text.
    let row_major = |rank| Layout::row_major(rank);
    refused(row_major(65), &["65 dimensions"]);
    refused(row_major(usize::MAX), &["dimensions"]);
    refused(Layout::new([usize::MAX]), &[&usize::MAX.to_string()]);
    refused(
        Shape::new(ElementType::U8, [u64::MAX], row_major(1).unwrap()),
        &["18446744073709551615"],
    );
}

#[test]
fn absurd_tiles() {
    let long = "1,".repeat(64);
    for (text, parts) in [
        ("f32[3]{0:T(0)}", &["entry 0 of the tile is 0", "byte 11"][..]),
        ("f32[3]{0:T(9223372036854775808)}", &["9223372036854775808"]),
        ("f32[3,3]{1,0:T(9223372036854775807,9223372036854775807)}", &["tile 0", "byte 14"]),
        ("f32[3]{0:T(*)}", &["the last entry of the tile is `*`"]),
        (&format!("f32[3]{{0:T({long}1)}}"), &["65 entries"]),
        (&format!("f32[3]{{0:T{}}}", "(2)".repeat(100)), &["100 tiles"]),
        ("c128[1]{0:T(9223372036854775807)}", &["9223372036854775807 elements of 128 bits"]),
        ("f32[1]{0:T(4611686018427387904)(4611686018427387903)}", &["2^64 bits"]),
    ] {
        within(MODEST, || refused(ask(text), parts));
    }
    for text in [
        "u8[1]{0:T(1152921504606846976)}",
        "f32[3]{0:T(65521,65521)(3,7)}",
        "pred[5,5]{1,0:T(4503599627370496)(32,1)E(1)}",
        "f32[7,11,13]{2,1,0:T(*,*,5)(3,*,2)(7)}",
    ] {
        let plan = within(MODEST, || ask(text)).unwrap();
        within(MODEST, || refused(plan.run(&[1], &mut [2]), &["bytes"]));
    }
    refused(Tile::new([0]), &["entry 0", "0"]);
    refused(Tile::new([u64::MAX]), &["18446744073709551615"]);
    refused(Tile::new([TileEntry::Combine]), &["`*`"]);
    refused(Tile::new(vec![1_u64; 100_000]), &["100000 entries"]);
}

#[test]
fn absurd_strides_and_windows() {
    let shape = shape("f32[3,5]{1,0:T(8,128)}");
    let refuse = |builder: PlanBuilder, parts: &[&str]| {
        within(MODEST, || refused(builder.unpack(&shape), parts));
        within(MODEST, || refused(builder.pack(&shape), parts));
    };
    let host = |host| PlanBuilder::new().host(host);
    refuse(
        host(Host::strided([i64::MAX, 4])),
        &["dimension 0", "3 elements", "73786976294838206456"],
    );
    refuse(host(Host::strided([i64::MIN, 4])), &["dimension 0", "-73786976294838206464"]);
    refuse(host(Host::strided([-20, 4])), &["byte -40", "before the buffer"]);
    // As far back as numbers of 128 bits reach, from before the buffer.
    let far = common::shape("s1[2,2305843009213693953]{1,0:E(1)}");
    let builder = host(Host::strided([-1, i64::MIN]));
    within(MODEST, || refused(builder.pack(&far), &["dimension 1", "2305843009213693953"]));
    refuse(host(Host::strided([4])), &["1 entries for 2 dimensions"]);
    refuse(host(Host::strided(vec![4; 100_000])), &["100000 entries for 2 dimensions"]);
    refuse(host(Host::dense().starting_at(u64::MAX)), &["byte 18446744073709551615"]);
    refuse(
        host(Host::window([3, 7], [0, u64::MAX])),
        &["5 elements from 18446744073709551615 on in dimension 1", "7"],
    );
    refuse(host(Host::window([u64::MAX, u64::MAX], [0, 0])), &["18446744073709551615 elements"]);
    refuse(
        PlanBuilder::new().window([0, u64::MAX], [3, u64::MAX]),
        &["18446744073709551615 elements from 18446744073709551615 on in dimension 1"],
    );
    refuse(PlanBuilder::new().window([0], [3]), &["1 entries for 2 dimensions"]);
    for strides in [[0, 4], [20, 0], [20, 3], [4, 4]] {
        let builder = host(Host::strided(strides));
        refused(builder.unpack(&shape), &["the stride of dimension", "share memory"]);
        // To read what overlaps is no harm, far apart neither.
        builder.pack(&shape).unwrap();
    }
    let plan = host(Host::strided([1 << 57, 1 << 50])).pack(&shape).unwrap();
    within(MODEST, || refused(plan.run(&[0; 64], &mut [0; 4096]), &["292733975779082244"]));
}

/// One thread that works on what it is given.
struct Alone;

impl Executor for Alone {
    fn threads(&self) -> usize {
        2
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }
}

/// By every door, on either side. What the destination holds stays.
#[test]
fn buffers_short_by_a_byte() {
    for text in [
        "f32[9,130]{1,0:T(8,128)}",
        "bf16[9,130]{1,0:T(8,128)(2,1)}",
        "s8[33,130]{1,0:T(8,128)(4,1)}",
        "pred[33,130]{1,0:T(32,128)(32,1)E(1)}",
        "f32[1200,900]{1,0:T(8,128)}",
        "f32[130,9]{0,1:T(8,128)}",
        "u8[8,8]{1,0:T(4,4)(*,6)}",
    ] {
        let shape = shape(text);
        let host = Host::strided([8192, 8]);
        for plan in [
            Plan::pack(&shape).unwrap(),
            Plan::unpack(&shape).unwrap(),
            PlanBuilder::new().host(host.clone()).pack(&shape).unwrap(),
            PlanBuilder::new().host(host).unpack(&shape).unwrap(),
        ] {
            let (source, end) = (plan.source_bytes() as usize, plan.destination_bytes() as usize);
            for (given, room, parts) in [
                (source - 1, end, [source.to_string(), (source - 1).to_string()]),
                (source, end - 1, [end.to_string(), (end - 1).to_string()]),
                (0, end, [source.to_string(), "0".to_owned()]),
                (source, 0, [end.to_string(), "0".to_owned()]),
            ] {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                let (from, mut to) = (vec![1; given], vec![0xee; room]);
                refused(plan.run(&from, &mut to), &parts);
                refused(plan.run_with(&Alone, &from, &mut to), &parts);
                assert!(to.iter().all(|&byte| byte == 0xee), "{text}");
                let mut memory = vec![MaybeUninit::<u8>::uninit(); room];
                refused(plan.run_uninit(&from, &mut memory), &parts);
                if given < source {
                    refused(plan.run_to_vec(&from), &parts);
                    let mut stager = Stager::new([vec![0; 1 << 16]]);
                    refused(stager.stage(&plan, &from), &parts);
                }
            }
            let chunk = plan.chunks(2000).last().unwrap();
            let (from, mut to) = (vec![1; source], vec![0xee; chunk.len()]);
            let read = chunk.source();
            let part = &from[read.start as usize..read.end as usize];
            refused(chunk.run(&from, &mut to[1..]), &[&chunk.len().to_string()]);
            refused(chunk.run_part(part, &mut to[1..]), &[&chunk.len().to_string()]);
            if let Some(short) = part.get(1..) {
                refused(chunk.run(&from[..read.end as usize - 1], &mut to), &[]);
                refused(chunk.run_part(short, &mut to), &[]);
            }
            assert!(to.iter().all(|&byte| byte == 0xee), "{text}");
        }
    }
}

/// However long a text is, it takes no more memory than its entries do as numbers.
#[test]
fn texts_of_a_megabyte() {
    let megabyte = 1 << 20;
    for (unit, before) in [
        ("(", ""),
        ("9", "f32["),
        ("1,", "f32["),
        ("(1)", "f32[3]{0:T"),
        ("f32[]{:P(", ""),
        (" ", ""),
    ] {
        let text = format!("{before}{}", unit.repeat(megabyte / unit.len()));
        let most = 16 * text.len();
        within(most, || refused(text.parse::<AnyShape>(), &["at byte"]));
        within(most, || refused(text.parse::<Layout>(), &["at byte"]));
        within(most, || refused(text.parse::<ElementType>(), &[]));
    }
}
