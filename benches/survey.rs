//! How far arrays that nobody chose are from memcpy: drawn types, bounds, orders of dimensions and host arrays, each of
//! 64 Ki to 4 Mi elements. Of every kind it prints what share of memcpy's speed they have, and the slowest ones, which is
//! where a layout has no good plan.
//!
//! So many arrays of each kind, drawn with a seed, and how many of the slowest: `cargo bench --bench survey -- 500 7 20`.
//! What is timed has been compared with the scalar tier before. With `--list` they are written as `against/run` reads them,
//! and not timed.

mod memory;

use std::hint::black_box;
use std::time::{Duration, Instant};

use relayout::tpu::{Chip, default_layout};
use relayout::{BitOrder, ElementType, Error, Host, Plan, PlanBuilder, Shape, Tier};
use relayout_testing::{Choices, noise};

use ElementType::{Bf16, C64, F8e4m3fn, F8e5m2, F16, F32, F64, Pred, S4, S8, S32, U2, U4, U8};

/// Where an array comes from, and what is made of it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// From dense host arrays into the layout that XLA gives to them, and back.
    Default,
    /// Into tiles of any height, the dimensions in any order.
    AnyOrder,
    /// From numbers of another type.
    Converted,
    /// From several elements in a byte.
    Packed,
    /// From arrays that are parts of others, or go down in memory.
    Strided,
    /// From one layout of a TPU into another one.
    Between,
}

const KINDS: [Kind; 6] =
    [Kind::Default, Kind::AnyOrder, Kind::Converted, Kind::Packed, Kind::Strided, Kind::Between];

const LEAST_ELEMENTS: u64 = 1 << 16;
const MOST_ELEMENTS: u64 = 1 << 22;
/// Images with more padding than this are passed over.
const MOST_BYTES: u64 = 64 << 20;

/// What takes less time than moving so many bytes is timed several times in a row.
const MOST_AT_ONCE: usize = 1 << 20;

/// The slowest of each kind that are printed, unless another number is asked for.
const SLOWEST: usize = 10;

impl Kind {
    fn types(self) -> &'static [ElementType] {
        match self {
            Kind::Converted => &[Bf16, F16, S8, F8e4m3fn, F8e5m2, F32],
            Kind::Packed => &[S4, U4, U2, Pred],
            _ => &[F32, Bf16, S8, U8, F64, C64, S4, U2, Pred, F16],
        }
    }
}

/// One array, of which there are plans in any tier.
struct Drawn {
    shape: Shape,
    /// The one it comes from, between layouts.
    from: Option<Shape>,
    host: Host,
    host_name: String,
}

impl Drawn {
    /// `None` where the array is too small or too large, or has no such layout.
    fn new(kind: Kind, choices: &mut Choices<'_>) -> Option<Drawn> {
        let element_type = *choices.pick(kind.types());
        let bounds: Vec<u64> = (0..1 + choices.below(5)).map(|_| bound(choices)).collect();
        let elements = bounds.iter().try_fold(1_u64, |n, &bound| n.checked_mul(bound))?;
        if !(LEAST_ELEMENTS..=MOST_ELEMENTS).contains(&elements) {
            return None;
        }
        let shape = match kind {
            Kind::Default => {
                let layout = default_layout(Chip::V5e, element_type, &bounds).ok()?;
                Shape::row_major(element_type, &bounds).ok()?.with_layout(layout).ok()?
            }
            _ => in_tiles(element_type, &bounds, choices)?,
        };
        let from = match kind {
            Kind::Between => Some(in_tiles(element_type, &bounds, choices)?),
            _ => None,
        };
        let (host, host_name) = match kind {
            Kind::Converted => {
                let number = match element_type {
                    S8 => S32,
                    F32 => *choices.pick(&[Bf16, F16, F64]),
                    _ => F32,
                };
                (Host::dense().of(number), format!(" of {number}"))
            }
            Kind::Packed => {
                let (order, name) =
                    *choices.pick(&[(BitOrder::LeastFirst, " lsb"), (BitOrder::MostFirst, " msb")]);
                (Host::dense().packed(order), name.to_owned())
            }
            Kind::Strided => strided(element_type, &bounds, choices),
            _ => (Host::dense(), String::new()),
        };
        Some(Drawn { shape, from, host, host_name })
    }

    /// As `against/run` reads it.
    fn text(&self) -> String {
        let Drawn { shape, from, host_name, .. } = self;
        let from = from.as_ref().map_or(String::new(), |from| format!("{from} -> "));
        format!("{from}{shape}{host_name}")
    }

    fn plans(&self, tier: Tier) -> Vec<(&'static str, Result<Plan, Error>)> {
        let builder = PlanBuilder::new().tier(tier).host(self.host.clone());
        match &self.from {
            Some(from) => {
                let between = PlanBuilder::new().tier(tier).between(from, &self.shape);
                vec![("between", between)]
            }
            None => {
                vec![("pack", builder.pack(&self.shape)), ("unpack", builder.unpack(&self.shape))]
            }
        }
    }
}

/// Small ones, powers of two, and such as are neither.
fn bound(choices: &mut Choices<'_>) -> u64 {
    match choices.below(5) {
        0 => 1 + choices.below(12),
        1 => 1 << choices.below(12),
        2 => 1 + choices.below(200),
        3 => 1 + choices.below(3000),
        _ => 8 * (1 + choices.below(100)),
    }
}

/// In tiles such as TPUs have for the type, of any height.
fn in_tiles(element_type: ElementType, bounds: &[u64], choices: &mut Choices<'_>) -> Option<Shape> {
    let order = choices.order(bounds.len());
    let rows = choices.pick(&[1_u64, 2, 4, 8, 16, 32]);
    let bits = u64::from(element_type.bits());
    let elements = (32 / bits).max(1);
    let rows = (rows * elements.min(8)).min(128);
    let tiles = match (bits, bounds.len()) {
        (64.., _) => String::new(),
        (32, 1) => ":T(1024)".to_owned(),
        (32, _) => format!(":T({rows},128)"),
        (_, 1) => format!(":T({})(128)({elements},1)", 128 * elements.max(8)),
        _ => format!(":T({rows},128)({elements},1)"),
    };
    let width = if bits < 8 { format!("E({bits})") } else { String::new() };
    let join = |numbers: Vec<String>| numbers.join(",");
    let bounds = join(bounds.iter().map(u64::to_string).collect());
    let order = join(order.iter().map(usize::to_string).collect());
    format!("{element_type}[{bounds}]{{{order}{tiles}{width}}}").parse().ok()
}

/// Dimensions in any order, with something behind some of them; some go down.
fn strided(element_type: ElementType, bounds: &[u64], choices: &mut Choices<'_>) -> (Host, String) {
    let width = i64::from(element_type.bits().max(8) / 8);
    let (mut strides, mut start, mut step) = (vec![0; bounds.len()], 0, width);
    for dimension in choices.order(bounds.len()).into_iter().rev() {
        let bound = i64::try_from(bounds[dimension]).expect("not that many elements");
        strides[dimension] = step;
        if choices.one_in(4) {
            strides[dimension] = -step;
            start += step * (bound - 1);
        }
        step *= bound;
        if choices.one_in(3) {
            step += width * choices.pick(&[1, 3, 16, 64]);
        }
    }
    let texts: Vec<String> = strides.iter().map(i64::to_string).collect();
    let name = format!(" strides {} from {start}", texts.join(","));
    (Host::strided(strides).starting_at(start.unsigned_abs()), name)
}

/// A plan beside memcpy of as many bytes: how long each takes.
fn timed(plan: &Plan, source: &[u8], destination: &mut [u8]) -> [Duration; 2] {
    let same = source.len().min(destination.len());
    let both = source.len() + destination.len();
    let runs = (MOST_AT_ONCE / both).clamp(1, 200);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        let mut run = || plan.run(black_box(source), destination).expect("right lengths");
        run();
        let start = Instant::now();
        (0..runs).for_each(|_| run());
        times[0].push(start.elapsed());
        let mut copy = || black_box(&mut destination[..same]).copy_from_slice(&source[..same]);
        copy();
        let start = Instant::now();
        (0..runs).for_each(|_| copy());
        // Of as many bytes as the plan reads and writes.
        times[1].push(start.elapsed().mul_f64(both as f64 / (2 * same) as f64));
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2] / u32::try_from(runs).expect("few runs")
    })
}

/// Whether there is anything to time, of what is not too large.
fn is_timed(drawn: &Drawn) -> bool {
    let mut plans = drawn.plans(Tier::best()).into_iter().filter_map(|(_, plan)| plan.ok());
    plans.any(|plan| plan.source_bytes().max(plan.destination_bytes()) <= MOST_BYTES)
}

/// What was found of a plan.
struct Found {
    /// Of memcpy's speed.
    share: f64,
    text: String,
}

fn survey(drawn: &Drawn, found: &mut Vec<Found>) {
    let scalar = drawn.plans(Tier::SCALAR);
    for ((way, plan), (_, scalar)) in drawn.plans(Tier::best()).into_iter().zip(scalar) {
        // Some numbers are converted in one direction only.
        let (Ok(plan), Ok(scalar)) = (plan, scalar) else { continue };
        let (from, to) = (plan.source_bytes(), plan.destination_bytes());
        if from.max(to) > MOST_BYTES {
            continue;
        }
        let source = memory::patterned(from);
        let (mut destination, mut expected) = (memory::huge(to), memory::huge(to));
        plan.run(&source, &mut destination).expect("right lengths");
        scalar.run(&source, &mut expected).expect("right lengths");
        assert!(destination[..] == expected[..], "{}", plan.explain());
        let [time, copy] = timed(&plan, &source, &mut destination);
        let share = copy.as_secs_f64() / time.as_secs_f64();
        let speed = (from + to) as f64 / 2e9 / time.as_secs_f64();
        let text = format!("{share:6.3} {speed:7.2} GB/s {way:7} {}", drawn.text());
        found.push(Found { share, text });
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` says so; `cargo test` only asks whether it runs.
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let numbers: Vec<u64> = arguments
        .iter()
        .filter(|argument| !argument.starts_with("--"))
        .map(|argument| {
            argument.parse().expect("how many arrays of each kind, a seed, and how many to print")
        })
        .collect();
    let count = numbers.first().copied().unwrap_or(if is_bench { 200 } else { 1 });
    let seed = numbers.get(1).copied().unwrap_or(1);
    let slowest = numbers.get(2).map_or(SLOWEST, |&n| usize::try_from(n).unwrap_or(usize::MAX));
    let is_list = arguments.iter().any(|argument| argument == "--list");
    for (k, kind) in (0_u64..).zip(KINDS) {
        // Other arrays for each seed and kind.
        let (mut found, mut drawn, mut number) = (Vec::new(), 0, (seed << 32) + (k << 24));
        while drawn < count {
            number += 1;
            let bytes = noise(512, number);
            if let Some(array) = Drawn::new(kind, &mut Choices::new(&bytes)) {
                drawn += 1;
                if is_list && is_timed(&array) {
                    println!("{}", array.text());
                } else if !is_list {
                    survey(&array, &mut found);
                }
            }
        }
        if is_list {
            continue;
        }
        found.sort_unstable_by(|a, b| a.share.total_cmp(&b.share));
        let at = |hundredths: usize| {
            found.get(found.len() * hundredths / 100).map_or(0.0, |found| found.share)
        };
        println!(
            "{kind:?}: {} plans; of memcpy one in a hundred has less than {:.3}, one in ten than {:.2}, half than {:.2}",
            found.len(),
            at(1),
            at(10),
            at(50)
        );
        found.iter().take(slowest).for_each(|found| println!("  {}", found.text));
    }
}
