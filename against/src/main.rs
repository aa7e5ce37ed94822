//! Arrays of a list, by two libraries in turns; `run` says how they are written.

use std::io::Write;
use std::time::{Duration, Instant};

type Run = Box<dyn Fn(&[u8], &mut [u8])>;

/// One array of one library: packing, unpacking or moving between layouts.
struct Move {
    name: &'static str,
    /// Of the source and of the destination.
    bytes: [u64; 2],
    run: Run,
    explanation: String,
}

/// The libraries have the same interface, but other types.
macro_rules! library {
    ($library:ident) => {
        mod $library {
            use super::Move;
            use ::$library::{BitOrder, Host, Plan, PlanBuilder, Shape};

            /// The moves of an array as it is written, where there are any.
            pub(super) fn moves(text: &str) -> Result<Vec<Move>, String> {
                let message = |error: &dyn std::error::Error| format!("{text}: {error}");
                let mut builder = PlanBuilder::new();
                if let Ok(tier) = std::env::var("RELAYOUT_TIER") {
                    builder = builder.tier(tier.parse().map_err(|e| message(&e))?);
                }
                let shape = |text: &str| text.trim().parse::<Shape>().map_err(|e| message(&e));
                let plans = if let Some((from, to)) = text.split_once("->") {
                    vec![("between", builder.between(&shape(from)?, &shape(to)?))]
                } else {
                    let (text, host) = match text.split_once(' ') {
                        None => (text, Host::dense()),
                        Some((text, "lsb")) => (text, Host::dense().packed(BitOrder::LeastFirst)),
                        Some((text, "msb")) => (text, Host::dense().packed(BitOrder::MostFirst)),
                        Some((text, host)) => {
                            (text, host_array(host).ok_or(format!("{host}: what array?"))?)
                        }
                    };
                    let (shape, builder) = (shape(text)?, builder.host(host));
                    vec![("pack", builder.pack(&shape)), ("unpack", builder.unpack(&shape))]
                };
                // Some numbers are converted in one direction only.
                let planned = plans.into_iter().filter_map(|(name, plan)| Some((name, plan.ok()?)));
                Ok(planned.map(|(name, plan)| of_plan(name, plan)).collect())
            }

            fn of_plan(name: &'static str, plan: Plan) -> Move {
                Move {
                    name,
                    bytes: [plan.source_bytes(), plan.destination_bytes()],
                    explanation: plan.explain().to_string(),
                    run: Box::new(move |source, destination| {
                        plan.run(source, destination).expect("right lengths")
                    }),
                }
            }

            fn host_array(text: &str) -> Option<Host> {
                if let Some(element_type) = text.strip_prefix("of ") {
                    return Some(Host::dense().of(element_type.parse().ok()?));
                }
                let (strides, start) = text.strip_prefix("strides ")?.split_once(" from ")?;
                let strides: Result<Vec<i64>, _> = strides.split(',').map(str::parse).collect();
                Some(Host::strided(strides.ok()?).starting_at(start.parse().ok()?))
            }
        }
    };
}

library!(before);
library!(now);

/// What differs more than this is named again at the end.
const SLOWER: f64 = 0.87;
/// How often each runs before it is timed: it finds the caches as it leaves them itself.
const WARM_UPS: u32 = 3;
/// Once for so many bytes and more, of which no cache holds much.
const LARGE: u64 = 64 << 20;
/// What is timed at once takes this long at least.
const LEAST: Duration = Duration::from_micros(500);
/// Rounds of which the median is taken, however long they take.
const LEAST_ROUNDS: usize = 5;

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|text| text.parse().ok());
    let time = seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or("how many seconds for each?")?;
    let (flags, arrays): (Vec<_>, Vec<String>) = arguments.partition(|text| text.starts_with("--"));
    let only_changed = match &flags[..] {
        [] => false,
        [flag] if flag == "--changed" => true,
        _ => return Err(format!("{flags:?}: there is --changed only")),
    };
    let listed = match &arrays[..] {
        [file] if std::path::Path::new(file).exists() => {
            Some(std::fs::read_to_string(file).map_err(|e| e.to_string())?)
        }
        _ => None,
    };
    let arrays = match &listed {
        Some(text) => text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect(),
        None => arrays.iter().map(String::as_str).collect::<Vec<_>>(),
    };
    let mut found: Vec<Figures> = Vec::new();
    let mut differ = 0;
    for text in arrays {
        match (before::moves(text), now::moves(text)) {
            (Ok(before), Ok(now)) => {
                for now in &now {
                    let Some(before) = before.iter().find(|before| before.name == now.name) else {
                        eprintln!("there was no plan before: {} of {text}", now.name);
                        continue;
                    };
                    if only_changed && before.explanation == now.explanation {
                        continue;
                    }
                    if time.is_zero() {
                        println!("before: {}\n\nnow: {}\n", before.explanation, now.explanation);
                        continue;
                    }
                    match compare(text, before, now, time) {
                        Ok(figures) => {
                            println!("{figures}");
                            std::io::stdout().flush().map_err(|e| e.to_string())?;
                            found.push(figures);
                        }
                        Err(message) => {
                            differ += 1;
                            eprintln!("DIFFERENT: {message}");
                        }
                    }
                }
            }
            (_, Err(message)) | (Err(message), _) => eprintln!("left out: {message}"),
        }
    }
    for name in ["pack", "unpack", "between"] {
        let of_name = || found.iter().filter(|figures| figures.name == name);
        let sum: f64 = of_name().map(|figures| figures.ratio.ln()).sum();
        if of_name().count() > 0 {
            println!(
                "{name}: {} moves, {:.3} in the geometric mean",
                of_name().count(),
                (sum / of_name().count() as f64).exp()
            );
        }
    }
    found.retain(|figures| figures.ratio < SLOWER);
    found.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    found.iter().for_each(|figures| println!("slower: {figures}"));
    if differ > 0 { Err(format!("{differ} moves are not what they were")) } else { Ok(()) }
}

struct Figures {
    text: String,
    name: &'static str,
    gbps: [f64; 2],
    /// How much faster it is now.
    ratio: f64,
    /// How fast it is now, to memcpy.
    to_memcpy: f64,
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Figures { text, name, gbps: [before, now], ratio, to_memcpy } = self;
        write!(f, "{name:7} {before:7.2} {now:7.2}  {ratio:5.2}  memcpy x {to_memcpy:5.3}  {text}")
    }
}

/// Compares what both make of the same bytes, then times both and memcpy in turns.
fn compare(text: &str, before: &Move, now: &Move, time: Duration) -> Result<Figures, String> {
    let [from, to] = now.bytes;
    if before.bytes != now.bytes {
        return Err(format!("{text}: {:?} bytes before, {:?} now", before.bytes, now.bytes));
    }
    let mut memory = Memory::new(from.max(to));
    let (source, destination) = memory.both();
    let same = usize::try_from(from.min(to)).expect("it is in memory");
    let (source, destination) = (
        &source[..usize::try_from(from).expect("it is")],
        &mut destination[..usize::try_from(to).expect("it is")],
    );
    let mut made = [before, now].map(|by| {
        destination.fill(0xee);
        (by.run)(source, destination);
        destination.to_vec()
    });
    if made[0] != made[1] {
        let at = made[0].iter().zip(&made[1]).position(|(a, b)| a != b);
        return Err(format!("{text}: {} differs from byte {at:?} on", now.name));
    }
    made.fill(Vec::new());
    let mut contest = |which: usize| match which {
        0 => (before.run)(source, destination),
        1 => (now.run)(source, destination),
        _ => std::hint::black_box(&mut destination[..same]).copy_from_slice(&source[..same]),
    };
    let warm_ups = if from.max(to) < LARGE { WARM_UPS } else { 1 };
    let mut timed = |which: usize, times: u32| {
        let start = Instant::now();
        (0..times).for_each(|_| contest(which));
        start.elapsed()
    };
    let repeats = [0, 1, 2].map(|which| {
        let mut repeats = 1;
        while timed(which, repeats) < LEAST {
            repeats *= 2;
        }
        repeats
    });
    let mut rounds: Vec<[f64; 3]> = Vec::new();
    let start = Instant::now();
    while rounds.len() < LEAST_ROUNDS || start.elapsed() < time {
        rounds.push([0, 1, 2].map(|which| {
            timed(which, warm_ups);
            timed(which, repeats[which]).as_secs_f64() / f64::from(repeats[which])
        }));
    }
    let median = |of: &dyn Fn(&[f64; 3]) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let bytes = (from + to) as f64 / 2.0;
    Ok(Figures {
        text: text.to_owned(),
        name: now.name,
        gbps: [0, 1].map(|which| bytes / median(&|round| round[which]) / 1e9),
        ratio: median(&|round| round[0] / round[1]),
        to_memcpy: median(&|round| round[2] / round[1]) * bytes / same as f64,
    })
}

/// A source and a destination in one mapping that begins with a huge page, seven pages from a power of two apart:
/// docs/performance.md says why.
struct Memory {
    memory: memmap2::MmapMut,
    starts: [usize; 2],
}

const HUGE_PAGE: usize = 2 << 20;
const APART: usize = 7 * 4096;

impl Memory {
    fn new(each: u64) -> Memory {
        let each =
            usize::try_from(each).expect("it fits").max(1).next_multiple_of(HUGE_PAGE) + APART;
        let mut memory =
            memmap2::MmapMut::map_anon(2 * each + 2 * HUGE_PAGE).expect("there is memory");
        #[cfg(target_os = "linux")]
        memory.advise(memmap2::Advice::HugePage).ok();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for word in memory.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let first = memory.as_ptr().addr().wrapping_neg() % HUGE_PAGE;
        Memory { memory, starts: [first, first + each] }
    }

    fn both(&mut self) -> (&mut [u8], &mut [u8]) {
        let [first, second] = self.starts;
        let (source, destination) = self.memory.split_at_mut(second);
        (&mut source[first..], destination)
    }
}
