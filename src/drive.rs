//! Carries out a plan over two buffers.

use crate::bits;
use crate::error::{BufferError, Side};
use crate::kernel::{self, BlockOp};
use crate::plan::{Call, Node};

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
    program.check(source, destination)?;
    let mut buffers = Buffers { source, destination };
    buffers.walk(&program.nodes, 0, 0);
    if program.streams {
        kernel::fence();
    }
    Ok(())
}

/// What is walked, and the buffers that it was made for.
///
/// The plan saw that no node reaches beyond these lengths.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) nodes: Vec<Node>,
    pub(crate) source_bytes: u64,
    pub(crate) destination_bytes: u64,
    pub(crate) streams: bool,
}

impl Program {
    fn check(&self, source: &[u8], destination: &[u8]) -> Result<(), BufferError> {
        BufferError::check(Side::Source, self.source_bytes, source.len())?;
        BufferError::check(Side::Destination, self.destination_bytes, destination.len())
    }
}

/// Two buffers that are as long as a program needs.
struct Buffers<'a> {
    source: &'a [u8],
    destination: &'a mut [u8],
}

impl Buffers<'_> {
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
            }
        }
    }

    #[allow(unsafe_code, reason = "where checked buffers become pointers")]
    fn call(&mut self, call: &Call, source: u64, destination: u64) {
        let (source, destination) = (call.source + source, call.destination + destination);
        let Some(run) = call.run else {
            return self.move_bits(call, source, destination);
        };
        let from = self.source.as_ptr().wrapping_add(bits::byte_of(source));
        let to = self.destination.as_mut_ptr().wrapping_add(bits::byte_of(destination));
        // SAFETY: the program was made by `program::program`, which saw that no
        // call reaches beyond the lengths that `Program::check` has compared the
        // buffers with; a `&` and a `&mut` do not overlap; `run` was chosen for a
        // `Tier`, which the CPU has.
        unsafe { run(&call.strip, &call.order, from, to) };
    }

    /// The ops on single bits.
    fn move_bits(&mut self, call: &Call, source: u64, destination: u64) {
        let strip = &call.strip;
        let at = |start: u64, i: usize, stride: usize| start + wide(i) * wide(stride);
        match call.op {
            BlockOp::Bits { source_bits, destination_bits, truth } => {
                for i in 0..strip.columns {
                    let from = at(source, i, strip.row_stride);
                    let mut value = bits::get(self.source, from, source_bits);
                    if truth {
                        value = u8::from(value != 0);
                    }
                    let to = at(destination, i, strip.column_stride);
                    bits::set(self.destination, to, destination_bits, value);
                }
            }
            _ => {
                for i in 0..strip.columns {
                    let to = at(destination, i, strip.column_stride);
                    bits::set(self.destination, to, 1, strip.fill >> (to % 8));
                }
            }
        }
    }
}

/// A number of elements or bits in a buffer.
fn wide(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
