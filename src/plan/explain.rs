//! What a plan does, for people and as data.

use std::fmt;

use relayout_kernels::{BlockOp, Tier};

use super::{Body, Call, Node, Padding, Plan};
use crate::host::Host;
use crate::shape::Shape;

/// What a plan does: [`Plan::explain`].
///
/// Printed, it is the loops as they are nested, with the kernels in them:
///
/// ```
/// use relayout::{Plan, PlanBuilder, Shape, Tier};
///
/// let shape: Shape = "bf16[1024,4096]{1,0:T(8,128)(2,1)}".parse()?;
/// let plan = PlanBuilder::new().tier(Tier::SCALAR).pack(&shape)?;
/// assert_eq!(plan.explain().to_string(), "\
/// bf16[1024,4096]{1,0} to bf16[1024,4096]{1,0:T(8,128)(2,1)}
///   tier scalar, ordinary stores, 1 hop, 1 region
///   reads 8388608 bytes, writes 8388608 bytes, 0 of them padding
///   128 times, source +65536 bytes, destination +65536 bytes:
///     scalar-interleave2x16: 32 blocks, source +256 bytes, destination +2048 bytes
///       in 4 lines, source +16384 bytes, destination +512 bytes
///       each 2 rows 8192 bytes apart, 128 columns
/// ");
/// let part = &plan.explain().parts[0];
/// assert_eq!((part.loops[0].extent, part.kernel.as_str()), (128, "scalar-interleave2x16"));
/// # Ok::<(), relayout::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The shape that is read.
    pub from: Shape,
    /// The shape that is written.
    pub to: Shape,
    /// How the one of them that is a host array lies; of images, it says dense.
    pub host: Host,
    /// The start and the sizes of the window that is moved, if it is not all.
    pub window: Option<(Vec<u64>, Vec<u64>)>,
    /// Whose kernels are used.
    pub tier: Tier,
    /// What is written where there is no element.
    pub padding: Padding,
    /// Whether kernels write by streaming stores, past the caches.
    pub streaming: bool,
    /// How often the data is passed over: once, or where some of it goes through scratch memory
    /// from one kernel to another, twice, or three times.
    pub hops: usize,
    /// Boxes of the image that are filled by loops without a test inside, those
    /// of padding included.
    pub regions: usize,
    /// The kernels, in the order of the destination.
    pub parts: Vec<Part>,
    /// Bytes of the source, padding included.
    pub source_bytes: u64,
    /// Bytes that are written.
    pub destination_bytes: u64,
    /// Bits of them that hold no element.
    pub padding_bits: u64,
    /// Why all of it is slow, where it is.
    pub slow: Option<&'static str>,
}

/// One kernel in its loops.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Part {
    /// The loops around the kernel call, outermost first.
    pub loops: Vec<LoopExplanation>,
    /// What the kernel does with each block.
    pub op: BlockOp,
    /// The name of the kernel: its tier and its op, and between them or behind it the
    /// op that brings the source into scratch memory, or the destination out of it.
    pub kernel: String,
    /// Bytes of scratch memory, which L1 or L2 holds, that a call goes through.
    pub scratch_bytes: usize,
    /// Whether it is one of several passes.
    pub pass: Pass,
    /// Lines of blocks that one call takes, and the steps between them.
    pub lines: LoopExplanation,
    /// Blocks of a line, and the steps between them.
    pub blocks: LoopExplanation,
    /// Rows of a block; of copied words, the elements of each that are kept.
    pub rows: usize,
    /// Columns of a block: bytes of a copy or a fill, words of copied words, else elements.
    pub columns: usize,
    /// Bytes of zeros behind the columns of a block.
    pub pad_bytes: usize,
    /// Columns of the blocks of one more line, which is shorter; 0 where there is none.
    pub last_columns: usize,
    /// Rows of one more block of each line, which has fewer; 0 where there is none.
    pub last_rows: usize,
    /// Why this part is slow, where it is.
    pub slow: Option<&'static str>,
    /// What separates the rows, where there are several.
    row_stride: usize,
}

/// Which pass a kernel makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pass {
    /// From the source to the destination.
    Only,
    /// From the source into scratch memory.
    First,
    /// From there into other scratch memory, where there are three.
    Between,
    /// From scratch memory to the destination: the last one, be there two or three.
    Second,
}

impl Pass {
    /// What it is as a part of another one.
    fn within(self, outer: Pass) -> Pass {
        match (self, outer) {
            (Pass::Only, _) => outer,
            (Pass::First, Pass::First) => Pass::First,
            (Pass::Second, Pass::Second) => Pass::Second,
            _ => Pass::Between,
        }
    }
}

/// A loop, or the blocks of a kernel call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopExplanation {
    /// How often it goes round.
    pub extent: u64,
    /// Bits of the source from one time to the next.
    pub source_bits: u64,
    /// Bits of the destination from one time to the next.
    pub destination_bits: u64,
    /// Which loop of the program it is.
    number: usize,
}

impl Plan {
    /// What the plan does.
    #[must_use]
    pub fn explain(&self) -> Explanation {
        let sizes = |shape: &Shape| shape.sizes().ok();
        let to = sizes(&self.to);
        let mut explanation = Explanation {
            from: self.from.clone(),
            to: self.to.clone(),
            host: self.host.clone(),
            window: self.window.clone(),
            tier: self.tier,
            padding: self.padding,
            streaming: false,
            hops: 1,
            regions: 1,
            parts: Vec::new(),
            source_bytes: self.source_bytes(),
            destination_bytes: self.destination_bytes(),
            // What is not written as a whole has none that is written.
            padding_bits: to.filter(|_| self.window.is_none()).map_or(0, |sizes| {
                (sizes.image_elements - sizes.elements) * u64::from(sizes.element_bits)
            }),
            slow: None,
        };
        match &self.body {
            Body::Program { program, recipe } => {
                explanation.regions = recipe.regions();
                explanation.streaming = program.streams;
                parts(&program.nodes, &mut Vec::new(), &mut 0, self.tier, &mut explanation.parts);
                let has = |pass| explanation.parts.iter().any(|part| part.pass == pass);
                explanation.hops +=
                    [Pass::First, Pass::Between].into_iter().filter(|&p| has(p)).count();
            }
            Body::ByIndex(_) => {
                explanation.slow = Some(
                    "slow: each element by the index math, about 100 ns each, because a tile \
                     combines what cannot be taken apart again, or there are too many pieces, or \
                     strides are between elements or too large",
                );
            }
        }
        explanation
    }
}

/// Lists the kernels under some nodes.
fn parts(
    nodes: &[Node],
    around: &mut Vec<LoopExplanation>,
    number: &mut usize,
    tier: Tier,
    parts_so_far: &mut Vec<Part>,
) {
    for node in nodes {
        match node {
            &Node::Loop { count, source, destination, ref body } => {
                *number += 1;
                around.push(LoopExplanation {
                    extent: count,
                    source_bits: source,
                    destination_bits: destination,
                    number: *number,
                });
                parts(body, around, number, tier, parts_so_far);
                around.pop();
            }
            Node::Call(call) => parts_so_far.push(part(call, around, tier)),
            Node::Hop { first, second, scratch_bytes, .. } => {
                for (nodes, pass) in [(first, Pass::First), (second, Pass::Second)] {
                    let before = parts_so_far.len();
                    parts(nodes, around, number, tier, parts_so_far);
                    for part in &mut parts_so_far[before..] {
                        part.pass = part.pass.within(pass);
                        part.scratch_bytes += scratch_bytes;
                    }
                }
            }
        }
    }
}

fn part(call: &Call, around: &[LoopExplanation], tier: Tier) -> Part {
    let strip = &call.strip;
    let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let [of_source, of_destination] = match call.op {
        BlockOp::CopyBits { .. } => [1, 1],
        BlockOp::WidenBits { .. } => [1, 8],
        BlockOp::NarrowBits { .. } => [8, 1],
        _ => [8, 8],
    };
    let steps = |count: usize, source: usize, destination: usize| LoopExplanation {
        extent: wide(count),
        source_bits: wide(source).saturating_mul(of_source),
        destination_bits: wide(destination).saturating_mul(of_destination),
        number: 0,
    };
    // What has no kernel is done by the driver, in every tier the same way.
    let tier = if call.run.is_some() { tier } else { Tier::SCALAR };
    let stages = [&call.stages.source, &call.stages.destination];
    Part {
        loops: around.to_vec(),
        op: call.op,
        kernel: {
            let before = stages[0].iter().map(|stage| stage.op);
            let behind = stages[1].iter().map(|stage| stage.op);
            let ops = before.chain([call.op]).chain(behind);
            ops.fold(tier.to_string(), |name, op| format!("{name}-{op}"))
        },
        scratch_bytes: stages.into_iter().flatten().map(|stage| stage.scratch_bytes).sum(),
        pass: Pass::Only,
        lines: steps(strip.lines, strip.source_line, strip.destination_line),
        blocks: steps(strip.blocks, strip.source_step, strip.destination_step),
        rows: strip.rows,
        columns: strip.columns,
        pad_bytes: strip.pad,
        last_columns: strip.tail,
        last_rows: strip.tail_rows,
        slow: match call.op {
            op if strip.is_reversed_run(op) => None,
            BlockOp::Strided { .. } => {
                Some("slow: single elements, because one side has no neighbours that stay so")
            }
            BlockOp::Bits { .. } | BlockOp::FillBits => {
                Some("slow: single elements within bytes, which cannot be moved as bytes")
            }
            op if strip.is_below_vectors(op, tier) => {
                Some("slow: blocks shorter than a vector, one element after the other")
            }
            _ => None,
        },
        row_stride: strip.row_stride,
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u64, one: &str| {
            if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
        };
        let count = |n: usize, one: &str| plural(u64::try_from(n).unwrap_or(u64::MAX), one);
        let bits = |n: u64| {
            if n.is_multiple_of(8) { plural(n / 8, "byte") } else { plural(n, "bit") }
        };
        writeln!(f, "{} to {}", self.from, self.to)?;
        if self.host != Host::dense() {
            writeln!(f, "  host array: {}", self.host)?;
        }
        if let Some((start, sizes)) = &self.window {
            writeln!(f, "  window: {sizes:?} from {start:?} on")?;
        }
        let stores = if self.streaming { "streaming" } else { "ordinary" };
        writeln!(
            f,
            "  tier {}, {stores} stores, {}, {}",
            self.tier,
            count(self.hops, "hop"),
            count(self.regions, "region")
        )?;
        writeln!(
            f,
            "  reads {}, writes {}, {} of them padding{}",
            plural(self.source_bytes, "byte"),
            plural(self.destination_bytes, "byte"),
            if self.padding_bits.is_multiple_of(8) {
                (self.padding_bits / 8).to_string()
            } else {
                plural(self.padding_bits, "bit")
            },
            match self.padding {
                Padding::Zero => String::new(),
                Padding::Keep => ", kept".to_owned(),
                Padding::Byte(byte) => format!(", {byte:#04x}"),
            }
        )?;
        if let Some(slow) = self.slow {
            writeln!(f, "  {slow}")?;
        }
        let steps = |l: &LoopExplanation| {
            format!("source +{}, destination +{}", bits(l.source_bits), bits(l.destination_bits))
        };
        let mut before: &[LoopExplanation] = &[];
        for part in &self.parts {
            let shared = before.iter().zip(&part.loops).take_while(|(a, b)| a == b).count();
            for (depth, l) in part.loops.iter().enumerate().skip(shared) {
                let indent = 2 + 2 * depth;
                writeln!(f, "{:indent$}{} times, {}:", "", l.extent, steps(l))?;
            }
            before = &part.loops;
            let indent = 2 + 2 * part.loops.len();
            write!(f, "{:indent$}{}: ", "", part.kernel)?;
            match (part.blocks.extent, part.last_rows) {
                (1, 0) => writeln!(f, "1 block")?,
                (n, _) => writeln!(f, "{}, {}", plural(n, "block"), steps(&part.blocks))?,
            }
            if part.lines.extent > 1 || part.last_columns > 0 {
                let (lines, extent) = (steps(&part.lines), plural(part.lines.extent, "line"));
                writeln!(f, "{:indent$}  in {extent}, {lines}", "")?;
            }
            write!(f, "{:indent$}  each ", "")?;
            match part.op {
                BlockOp::Copy | BlockOp::Fill => write!(f, "{}", count(part.columns, "byte"))?,
                BlockOp::CopyBits { .. } => write!(f, "{}", count(part.columns, "bit"))?,
                BlockOp::CopyWords { .. } => write!(
                    f,
                    "{}, of each {}",
                    count(part.columns, "word"),
                    count(part.rows, "element")
                )?,
                BlockOp::InterleaveTranspose { ways, .. }
                | BlockOp::TransposeDeinterleave { ways, .. } => write!(
                    f,
                    "{ways} matrices {} apart, {} and {} each",
                    count(part.row_stride, "byte"),
                    count(part.rows, "row"),
                    count(part.columns, "column")
                )?,
                _ if part.rows > 1 => write!(
                    f,
                    "{} {} apart, {}",
                    count(part.rows, "row"),
                    count(part.row_stride, "byte"),
                    count(part.columns, "column")
                )?,
                _ => write!(f, "{}", count(part.columns, "column"))?,
            }
            if part.pad_bytes > 0 {
                write!(f, ", then {} of zeros", count(part.pad_bytes, "byte"))?;
            }
            if part.last_columns > 0 {
                write!(f, "; {} in one more line", part.last_columns)?;
            }
            if part.last_rows > 0 {
                write!(f, "; one more block of {}", count(part.last_rows, "row"))?;
            }
            writeln!(f)?;
            if part.scratch_bytes > 0 {
                let way = match part.pass {
                    Pass::Only => "through",
                    Pass::First => "into",
                    Pass::Between => "within",
                    Pass::Second => "out of",
                };
                let bytes = count(part.scratch_bytes, "byte");
                writeln!(f, "{:indent$}  {way} {bytes} of scratch", "")?;
            }
            if let Some(slow) = part.slow {
                writeln!(f, "{:indent$}  {slow}", "")?;
            }
        }
        Ok(())
    }
}
