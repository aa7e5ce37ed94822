//! Carries out a plan over two buffers.

use std::mem::MaybeUninit;

use relayout_kernels::{BlockOp, Place, Run, Strip, bits, fence};

use crate::error::{BufferError, Side};
use crate::plan::{
    Call, HOP_BYTES, MOST_SCRATCH_BYTES, MostFirst, Needs, Node, SCRATCH_BYTES, STAGES_BYTES,
    Stage, Stages, Steps,
};

/// Walks a program over two buffers.
///
/// # Errors
///
/// A buffer does not have the length, in bytes, that the program was made for.
pub(crate) fn run(
    program: &Program,
    source: &[u8],
    destination: &mut [u8],
) -> Result<(), BufferError> {
    walk(program, source, uninit(destination))
}

/// The same into memory that nobody has written yet. Where the program leaves bytes of
/// it alone, or has to read some, all of it is filled with zeros first.
///
/// # Errors
///
/// As [`run`].
#[allow(unsafe_code, reason = "the end of a run into uninitialised memory")]
pub(crate) fn run_uninit<'a>(
    program: &Program,
    source: &[u8],
    destination: &'a mut [MaybeUninit<u8>],
) -> Result<&'a mut [u8], BufferError> {
    program.source.check(Side::Source, source.len())?;
    program.destination.check(Side::Destination, destination.len())?;
    let is_longer = wide(destination.len()) > program.destination.bytes;
    if is_longer || !program.writes_all {
        destination.fill(MaybeUninit::new(0));
    }
    walk(program, source, destination)?;
    // SAFETY: it was filled, or it is what the program writes, which has written all
    // of that.
    Ok(unsafe { written(destination) })
}

/// The same memory, filled with zeros.
#[allow(unsafe_code, reason = "the memory has just been written")]
pub(crate) fn zeroed(destination: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    destination.fill(MaybeUninit::new(0));
    // SAFETY: it has just been written.
    unsafe { written(destination) }
}

/// Makes a vector longer by so many bytes, which `fill` writes, and for which it has
/// room. What `fill` returns shows that it has.
#[allow(unsafe_code, reason = "the end of a run into uninitialised memory")]
pub(crate) fn extend<E>(
    vector: &mut Vec<u8>,
    bytes: usize,
    fill: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8], E>,
) -> Result<(), E> {
    let length = vector.len();
    let memory = &mut vector.spare_capacity_mut()[..bytes];
    let start = memory.as_ptr().cast::<u8>();
    let filled = fill(memory)?;
    assert!(filled.as_ptr() == start && filled.len() == bytes);
    // SAFETY: these bytes were there as initialised ones a moment ago.
    unsafe { vector.set_len(length + bytes) };
    Ok(())
}

/// Walks a program over two buffers, of which the second one may be uninitialised if
/// the program writes all of it.
fn walk(
    program: &Program,
    source: &[u8],
    destination: &mut [MaybeUninit<u8>],
) -> Result<(), BufferError> {
    program.source.check(Side::Source, source.len())?;
    program.destination.check(Side::Destination, destination.len())?;
    let destination = Destination(destination);
    let mut buffers = Buffers { source, destination, order: program.order, scratch: None };
    match program.scratch_bytes {
        0 => buffers.walk(&program.nodes, 0, 0),
        bytes @ ..=STAGES_BYTES => buffers.walk_staged::<STAGES_BYTES>(&program.nodes, bytes),
        bytes @ ..=HOP_BYTES => buffers.walk_staged::<HOP_BYTES>(&program.nodes, bytes),
        bytes => buffers.walk_staged::<MOST_SCRATCH_BYTES>(&program.nodes, bytes),
    }
    if program.streams {
        fence();
    }
    Ok(())
}

/// Bytes as memory that may be uninitialised.
#[allow(unsafe_code, reason = "one type for both kinds of destinations")]
fn uninit(bytes: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the same layout; nothing uninitialised is ever written, because all that
    // is written are bytes of other buffers and constants.
    unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) }
}

/// Memory that has been written to, as bytes.
///
/// # Safety
///
/// All of it has.
#[allow(unsafe_code, reason = "one type for both kinds of destinations")]
unsafe fn written(memory: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    // SAFETY: by the contract of this function.
    unsafe { &mut *(std::ptr::from_mut(memory) as *mut [u8]) }
}

/// What is walked, and the buffers that it was made for.
///
/// The plan saw that no node reaches beyond these lengths.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) nodes: Box<[Node]>,
    pub(crate) source: Needs,
    pub(crate) destination: Needs,
    pub(crate) order: MostFirst,
    pub(crate) streams: bool,
    /// How much scratch memory calls work on: [`MOST_SCRATCH_BYTES`] at most.
    pub(crate) scratch_bytes: usize,
    /// Every byte of the destination is written, and none is read: the bytes that the
    /// calls write are as many as it has, and as the regions do not overlap, they are
    /// all of them. Otherwise the destination must be initialised.
    pub(crate) writes_all: bool,
}

/// Memory on the stack, where elements below a byte have a byte each for a while, and what is done in two passes is
/// between them.
#[repr(align(64))]
struct Scratch<const BYTES: usize>([MaybeUninit<u8>; BYTES]);

/// The half for what is brought from a source, and that for what goes to a destination.
fn halves(scratch: &mut [u8]) -> (&mut [u8], &mut [u8]) {
    scratch.split_at_mut(SCRATCH_BYTES.min(scratch.len()))
}

/// Where a kernel begins: at a bit of the array of its side, or at a byte of scratch
/// memory.
#[derive(Clone, Copy)]
enum At {
    Array(u64),
    SourceScratch(usize),
    DestinationScratch(usize),
}

/// Two buffers that are as long as a program needs.
struct Buffers<'a> {
    source: &'a [u8],
    destination: Destination<'a>,
    order: MostFirst,
    scratch: Option<&'a mut [u8]>,
}

/// Memory that a program writes, initialised or not.
struct Destination<'a>(&'a mut [MaybeUninit<u8>]);

impl Destination<'_> {
    /// As bytes, for ops that read it.
    #[allow(unsafe_code, reason = "a program that reads its destination has one to read")]
    fn initialised(&mut self) -> &mut [u8] {
        // SAFETY: a program with ops on bits, or copies of bits, or one that narrows to bits, behind kernels
        // or alone, does not `writes_all`, so `walk` got memory that is initialised. Scratch memory, the
        // destination of a first pass, always is.
        unsafe { written(self.0) }
    }
}

impl Buffers<'_> {
    /// Carries out nodes of which some work on so much scratch memory, for which `ROOM` bytes are enough.
    /// These are on the stack here only: who goes without them need not make room for them, page by page.
    #[inline(never)]
    fn walk_staged<const ROOM: usize>(self, nodes: &[Node], bytes: usize) {
        let mut scratch = Scratch([MaybeUninit::uninit(); ROOM]);
        // Kernels may read some that no pass has written.
        let scratch = zeroed(&mut scratch.0[..bytes]);
        Buffers { scratch: Some(scratch), ..self }.walk(nodes, 0, 0);
    }

    /// Carries out nodes, the loops around them being at these offsets in bits.
    fn walk(&mut self, nodes: &[Node], source: u64, destination: u64) {
        for node in nodes {
            match node {
                Node::Call(call) => self.call(call, source, destination),
                Node::Loop { count, source: source_step, destination: destination_step, body } => {
                    let (mut source, mut destination) = (source, destination);
                    for _ in 0..*count {
                        self.walk(body, source, destination);
                        source = source.wrapping_add(*source_step);
                        destination = destination.wrapping_add(*destination_step);
                    }
                }
                Node::Hop { source: from, destination: to, first, second, scratch_bytes } => {
                    let (from, to) = (source.wrapping_add(*from), destination.wrapping_add(*to));
                    self.hop((first, from), (second, to), *scratch_bytes);
                }
            }
        }
    }

    /// Carries out two passes, the first of which begins at a bit of the source and goes into
    /// scratch memory, and the second one out of it and begins at a bit of the destination.
    fn hop(&mut self, first: (&[Node], u64), second: (&[Node], u64), scratch_bytes: usize) {
        let Some(scratch) = self.scratch.take() else { return };
        let (memory, stages) = scratch.split_at_mut(scratch_bytes);
        let order = MostFirst::default();
        let destination = Destination(uninit(memory));
        let of_first = Some(&mut *stages);
        let mut into = Buffers { source: self.source, destination, order, scratch: of_first };
        into.walk(first.0, first.1, 0);
        let destination = Destination(self.destination.0);
        let mut out_of = Buffers { source: memory, destination, order, scratch: Some(stages) };
        out_of.walk(second.0, 0, second.1);
        self.scratch = Some(scratch);
    }

    fn call(&mut self, call: &Call, source: u64, destination: u64) {
        let source = call.source.wrapping_add(source);
        let destination = call.destination.wrapping_add(destination);
        let Some(run) = call.run else {
            return self.move_bits(call, source, destination);
        };
        if matches!(call.op, BlockOp::CopyBits { .. }) {
            return self.copy_bits(run, &call.strip, source, destination);
        }
        if matches!(call.op, BlockOp::WidenBits { .. } | BlockOp::NarrowBits { .. }) {
            let (source_bit, destination_bit) = (bit_of_byte(source), bit_of_byte(destination));
            let strip = Strip { source_bit, destination_bit, ..call.strip };
            return self.kernel(run, &strip, &[], At::Array(source), At::Array(destination));
        }
        let Stages { source: before, destination: behind } = &call.stages;
        if let Some(stage) = before {
            self.bring(stage, source);
        }
        let from = if before.is_some() { At::SourceScratch(0) } else { At::Array(source) };
        let to = if behind.is_some() { At::DestinationScratch(0) } else { At::Array(destination) };
        self.kernel(run, &call.strip, &call.order, from, to);
        if let Some(stage) = behind {
            self.take_away(stage, destination);
        }
    }

    /// A kernel call of a program.
    #[allow(unsafe_code, reason = "where checked buffers become pointers")]
    fn kernel(&mut self, run: Run, strip: &Strip, order: &[Place], from: At, to: At) {
        let nowhere = (std::ptr::null_mut::<u8>(), std::ptr::null_mut::<u8>());
        let (source_scratch, destination_scratch) = match self.scratch.as_deref_mut() {
            Some(scratch) => {
                let (source, destination) = halves(scratch);
                (source.as_mut_ptr(), destination.as_mut_ptr())
            }
            None => nowhere,
        };
        let from = match from {
            At::Array(bit) => self.source.as_ptr().wrapping_add(bits::byte_of(bit)),
            At::SourceScratch(byte) => source_scratch.wrapping_add(byte).cast_const(),
            At::DestinationScratch(byte) => destination_scratch.wrapping_add(byte).cast_const(),
        };
        let to = match to {
            At::Array(bit) => {
                self.destination.0.as_mut_ptr().cast::<u8>().wrapping_add(bits::byte_of(bit))
            }
            At::SourceScratch(byte) => source_scratch.wrapping_add(byte),
            At::DestinationScratch(byte) => destination_scratch.wrapping_add(byte),
        };
        // SAFETY: the program was made by `program::program`, which saw that no call
        // reaches beyond the lengths that `run` has compared the buffers with, nor
        // beyond scratch memory, which is there if a call works on it, or is the source or the
        // destination of a pass, as `program::reach_of_hop` saw; a `&` and a
        // `&mut` do not overlap, nor does scratch memory with either or with the
        // other half of it; `run` was chosen for a `Tier`, which the CPU has. What copies or narrows
        // bits reads the destination, which is initialised then, as `initialised` says.
        unsafe { run(strip, order, from, to) };
    }

    /// Brings what a stage reads into scratch memory.
    fn bring(&mut self, stage: &Stage, source: u64) {
        let Some(run) = stage.run else { return };
        let (blocks, rows) = (stage.blocks, stage.rows);
        for (at, in_scratch) in stage.each_line(source) {
            let strip = Strip {
                source_line: stage.in_array(blocks),
                destination_line: blocks.scratch,
                source_step: stage.in_array(rows),
                destination_step: rows.scratch,
                source_bit: bit_of_byte(at),
                // Behind its runs is mostly what comes next.
                next: stage.run_bytes(),
                ..stage.strip()
            };
            self.kernel(run, &strip, &[], At::Array(at), At::SourceScratch(in_scratch));
        }
    }

    /// Takes away what a kernel left in scratch memory.
    fn take_away(&mut self, stage: &Stage, destination: u64) {
        let Some(run) = stage.run else { return };
        let (blocks, rows) = (stage.blocks, stage.rows);
        for (at, in_scratch) in stage.each_line(destination) {
            let strip = Strip {
                source_line: blocks.scratch,
                destination_line: stage.in_array(blocks),
                source_step: rows.scratch,
                destination_step: stage.in_array(rows),
                destination_bit: bit_of_byte(at),
                ..stage.strip()
            };
            self.kernel(run, &strip, &[], At::DestinationScratch(in_scratch), At::Array(at));
        }
    }

    /// Runs of bits, in a strip whose steps are in bits: those that begin at the same bits of bytes in one call.
    fn copy_bits(&mut self, run: Run, strip: &Strip, source: u64, destination: u64) {
        let steps = |count, source, destination| BothSteps {
            count,
            source: signed(source),
            destination: signed(destination),
        };
        let lines = steps(strip.lines, strip.source_line, strip.destination_line);
        let blocks = steps(strip.blocks, strip.source_step, strip.destination_step);
        for (from, to, lines) in lines.alike(source, destination) {
            for (from, to, blocks) in blocks.alike(from, to) {
                let strip = Strip {
                    lines: lines.count,
                    source_line: bytes_of(lines.source),
                    destination_line: bytes_of(lines.destination),
                    blocks: blocks.count,
                    source_step: bytes_of(blocks.source),
                    destination_step: bytes_of(blocks.destination),
                    source_bit: bit_of_byte(from),
                    destination_bit: bit_of_byte(to),
                    ..*strip
                };
                self.kernel(run, &strip, &[], At::Array(from), At::Array(to));
            }
        }
    }

    /// The ops on single bits.
    fn move_bits(&mut self, call: &Call, source: u64, destination: u64) {
        let strip = &call.strip;
        let MostFirst { source: from_most, destination: to_most } = self.order;
        let at = |start: u64, i: usize, stride: usize| {
            start.wrapping_add(wide(i).wrapping_mul(signed(stride)))
        };
        match call.op {
            BlockOp::Bits { source_bits, destination_bits, truth } => {
                for i in 0..strip.columns {
                    let from = at(source, i, strip.row_stride);
                    let from = bits::ordered(from, source_bits, from_most);
                    let mut value = bits::get(self.source, from, source_bits);
                    if truth {
                        value = u8::from(value != 0);
                    }
                    let to = at(destination, i, strip.column_stride);
                    let to = bits::ordered(to, destination_bits, to_most);
                    bits::set(self.destination.initialised(), to, destination_bits, value);
                }
            }
            _ => {
                for i in 0..strip.columns {
                    let to = at(destination, i, strip.column_stride);
                    let to = bits::ordered(to, 1, to_most);
                    bits::set(self.destination.initialised(), to, 1, strip.fill >> (to % 8));
                }
            }
        }
    }
}

/// A loop over runs of bits, whose steps are in bits.
#[derive(Clone, Copy)]
struct BothSteps {
    count: usize,
    source: u64,
    destination: u64,
}

impl BothSteps {
    /// Those of the runs that begin at the same bits of bytes, and where the first of them does, if the first of all does
    /// so at these bits.
    fn alike(self, source: u64, destination: u64) -> impl Iterator<Item = (u64, u64, BothSteps)> {
        alike(self.count, self.source | self.destination).map(move |(first, count, apart)| {
            let at = |start: u64, step: u64| start.wrapping_add(wide(first).wrapping_mul(step));
            let longer = |step: u64| step.wrapping_mul(wide(apart));
            let steps = BothSteps {
                count,
                source: longer(self.source),
                destination: longer(self.destination),
            };
            (at(source, self.source), at(destination, self.destination), steps)
        })
    }
}

/// Of so many runs, so many bits from each other, those that begin at the same bit of a byte: the number of the first, how
/// many they are, and how many steps they are from each other.
fn alike(count: usize, step: u64) -> impl Iterator<Item = (usize, usize, usize)> {
    let apart = 8 >> step.trailing_zeros().min(3);
    (0..apart.min(count)).map(move |first| (first, (count - first).div_ceil(apart), apart))
}

/// Which bit of its byte that of an array is.
fn bit_of_byte(at: u64) -> u8 {
    u8::try_from(at % 8).unwrap_or(0)
}

impl Stage {
    /// Where each line begins, if the first one does at a bit of the array: the bit, and the byte in scratch memory.
    fn each_line(&self, start: u64) -> impl Iterator<Item = (u64, usize)> {
        let Steps { count, array, scratch } = self.lines;
        (0..count)
            .map(move |line| (start.wrapping_add(wide(line).wrapping_mul(array)), line * scratch))
    }

    /// A step of the array as its kernel counts it: in bits, if runs may begin within bytes.
    fn in_array(&self, steps: Steps) -> usize {
        if self.may_begin_within_bytes() {
            isize::try_from(steps.array.cast_signed()).unwrap_or(isize::MAX).cast_unsigned()
        } else {
            bytes_of(steps.array)
        }
    }

    /// Whole bytes of a run in the array.
    fn run_bytes(&self) -> usize {
        let bits = wide(self.elements).wrapping_mul(self.array_bits.into());
        usize::try_from(bits / 8).unwrap_or(usize::MAX)
    }

    /// The strip of the runs of a line, without its steps: a line of each block, a block of each row.
    fn strip(&self) -> Strip {
        Strip {
            lines: self.blocks.count,
            blocks: self.rows.count,
            rows: 1,
            columns: self.elements,
            is_far: self.is_far,
            core: self.core,
            ..Strip::default()
        }
    }
}

/// A step of whole bytes, as kernels count it, from one in bits.
fn bytes_of(step: u64) -> usize {
    isize::try_from(step.cast_signed() / 8).unwrap_or(isize::MAX).cast_unsigned()
}

/// A number of elements or bits in a buffer.
fn wide(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// A stride modulo the size of an address, modulo 2^64.
fn signed(stride: usize) -> u64 {
    i64::try_from(stride.cast_signed()).unwrap_or(i64::MAX).cast_unsigned()
}
