//! `relayout bench`: how fast plans run here, beside what memory allows.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use clap::Args;
use memmap2::MmapMut;
use relayout::index::ImageMap;
use relayout::{Padding, Plan, PlanBuilder, Shape, Tier, oracle, tpu};
use serde_json::json;

use crate::bench_groups::Group;
use crate::explain::grouped;
use crate::failure::Failure;
use crate::{files, plan};

/// Measure how fast arrays are packed and unpacked here
///
/// Each result is checked before it is timed. Then, in one run and taking turns,
/// are timed: the plan, memcpy of the same bytes, the best plain copy (ordinary
/// or streaming), a sweep that only reads and a fill that only writes. The
/// figures are medians, in GB/s (10^9 bytes a second) of the larger of the two
/// buffers; one thread, buffers in huge pages where the system gives them, touched
/// before and used again.
///
/// Without shapes, the TPU formats are measured: one tile, and arrays of 256 KiB,
/// 8 MiB and 256 MiB in rows of 4, 8 and 32 KiB, and two ragged ones.
#[derive(Args)]
#[command(after_help = "\
Examples:
  relayout bench
  relayout bench --quick --json > figures.jsonl
  relayout bench --group swapped --group permute
  relayout bench 'bf16[4095,4095]{1,0:T(8,128)(2,1)}' --tier avx2
  relayout bench 'bf16[512,512]{1,0:T(8,128)(2,1)} -> bf16[512,512]{1,0:T(16,128)(2,1)}'")]
pub(crate) struct Arguments {
    /// Arrays to pack and unpack, or pairs, `FROM -> TO`, to go from one layout to another
    #[arg(value_name = "SHAPE")]
    shapes: Vec<String>,
    /// Sizes of the formats: `tile`, or bytes like 256K, 8M, 1G; may be given more than once
    #[arg(long, value_name = "SIZE", conflicts_with = "shapes")]
    size: Vec<String>,
    /// Arrays that belong together; may be given more than once
    #[arg(long, value_name = "GROUP", conflicts_with = "shapes")]
    group: Vec<Group>,
    /// Whose kernels to use, instead of the best tier's
    #[arg(long, value_name = "TIER", env = plan::TIER)]
    tier: Option<Tier>,
    /// Write one JSON object a line
    #[arg(long)]
    json: bool,
    /// Measure for less long: the default set takes less than 45 seconds
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let cases = cases(arguments)?;
    let tier = arguments.tier.unwrap_or_else(Tier::best);
    let sizes: Result<Vec<u64>, Failure> = cases.iter().map(Case::larger_bytes).collect();
    let largest = sizes?.into_iter().max().unwrap_or(0);
    let mut buffers = Buffers::new(largest)?;
    let mut out = io::stdout().lock();
    if !arguments.json {
        table_head(&mut out, tier)?;
    }
    for case in &cases {
        let title = format!("{} {} {}", case.group, case.direction, case.shape());
        let figures =
            files::with_progress(&title, || case.measure(&mut buffers, tier, arguments.quick))?;
        if arguments.json {
            writeln!(out, "{}", figures.json(case, tier))?;
        } else {
            figures.line(case, &mut out)?;
        }
        out.flush()?;
    }
    Ok(())
}

/// One plan to be measured.
struct Case {
    group: String,
    direction: &'static str,
    from: Shape,
    to: Shape,
}

/// Both directions of an array's format.
fn both(group: &str, shape: &Shape) -> [Case; 2] {
    let host = shape.in_host_layout();
    let case = |direction, from: &Shape, to: &Shape| Case {
        group: group.to_owned(),
        direction,
        from: from.clone(),
        to: to.clone(),
    };
    [case("pack", &host, shape), case("unpack", shape, &host)]
}

fn cases(arguments: &Arguments) -> Result<Vec<Case>, Failure> {
    if !arguments.shapes.is_empty() {
        return given_cases("given", arguments.shapes.iter().map(String::as_str));
    }
    if arguments.group.is_empty() {
        return default_cases(&arguments.size);
    }
    if !arguments.size.is_empty() && !arguments.group.contains(&Group::Formats) {
        return Err(Failure::usage(
            "--size is for the formats; the arrays of other groups have one",
        ));
    }
    let mut cases = Vec::new();
    for group in &arguments.group {
        cases.extend(match group {
            Group::Formats => default_cases(&arguments.size)?,
            _ => given_cases(&group.name(), group.texts().iter().copied())?,
        });
    }
    Ok(cases)
}

fn default_cases(sizes: &[String]) -> Result<Vec<Case>, Failure> {
    let usual = ["tile", "256K", "8M", "256M"].map(str::to_owned);
    let given = !sizes.is_empty();
    let mut cases = Vec::new();
    for size in if given { sizes } else { &usual } {
        for format in tpu::FORMATS {
            let tile = format.tiles()[0];
            let host_bytes = u64::from(format.element_type().host_bytes());
            let (rows, columns) = if size == "tile" {
                (tile[0], tile[1])
            } else {
                let bytes = parse_size(size)?;
                let row_bytes = match bytes {
                    0..0x10_0000 => 4 << 10,
                    0x10_0000..0x400_0000 => 8 << 10,
                    _ => 32 << 10,
                };
                ((bytes / row_bytes).max(1), row_bytes / host_bytes)
            };
            cases.extend(both(size, &format.shape(&[rows, columns])?));
        }
    }
    if !given {
        cases.extend(both("ragged", &tpu::BF16_8X128.shape(&[4095, 4095])?));
        cases.extend(both("ragged", &tpu::F32_8X128.shape(&[1000, 1000])?));
    }
    Ok(cases)
}

fn given_cases<'a>(
    group: &str,
    texts: impl Iterator<Item = &'a str>,
) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for text in texts {
        let group = group.to_owned();
        if let Some((from, to)) = text.split_once("->") {
            let (from, to): (Shape, Shape) = (from.trim().parse()?, to.trim().parse()?);
            from.check_same_array(&to).map_err(Failure::usage)?;
            cases.push(Case { group, direction: "between", from, to });
        } else {
            cases.extend(both(&group, &text.parse()?));
        }
    }
    Ok(cases)
}

/// A number of bytes, with K, M or G for powers of 1024.
fn parse_size(text: &str) -> Result<u64, Failure> {
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    bytes.filter(|&n| n > 0).ok_or_else(|| {
        Failure::usage(format!("--size {text:?} is neither `tile` nor bytes like 256K, 8M or 1G"))
    })
}

/// How many bytes lie between the buffers, beyond their own and the rest of a huge page. Zen 4
/// looks for a line in L1 by a hash of its address first; addresses whose
/// distance is a multiple of 256 MiB have the same, and drive each other out. Seven pages make
/// another one of it.
const APART: usize = 7 << 12;

const HUGE_PAGE: usize = 2 << 20;

/// Two buffers in huge pages, where the system gives them.
struct Buffers {
    memory: MmapMut,
    /// Where they begin, in bytes: the first one with a huge page.
    starts: [usize; 2],
}

impl Buffers {
    fn new(bytes: u64) -> Result<Self, Failure> {
        let each = usize::try_from(bytes.max(1))
            .ok()
            .and_then(|bytes| bytes.checked_next_multiple_of(HUGE_PAGE)?.checked_add(APART));
        // One page to begin with a huge one, and one that the last bytes are not in small ones.
        let length = each.and_then(|each| each.checked_mul(2)?.checked_add(2 * HUGE_PAGE));
        let (Some(each), Some(length)) = (each, length) else {
            return Err(Failure::work(format!("two buffers of {bytes} bytes are too large")));
        };
        files::check_memory(length as u64, "two buffers of the largest array")?;
        let mut memory = MmapMut::map_anon(length).map_err(Failure::work)?;
        #[cfg(target_os = "linux")]
        // Where there are none, it is slower, and so is memcpy.
        let _ = memory.advise(memmap2::Advice::HugePage);
        memory.fill(1);
        let first = memory.as_ptr().addr().wrapping_neg() % HUGE_PAGE;
        Ok(Buffers { memory, starts: [first, first + each] })
    }

    /// The source and the destination, which are as long as was asked for at least.
    fn both(&mut self) -> (&mut [u8], &mut [u8]) {
        let [first, second] = self.starts;
        let (source, destination) = self.memory.split_at_mut(second);
        (&mut source[first..], destination)
    }
}

/// What was measured, in seconds for one time.
struct Figures {
    bytes: u64,
    kernel: String,
    ours: f64,
    memcpy: f64,
    copy: f64,
    read: f64,
    fill: f64,
}

impl Case {
    /// The shape that is not the host's.
    fn shape(&self) -> String {
        match self.direction {
            "pack" => self.to.to_string(),
            "unpack" => self.from.to_string(),
            _ => format!("{} -> {}", self.from, self.to),
        }
    }

    /// The bytes of the larger side. There is nothing to time, and an error, if there are none.
    fn larger_bytes(&self) -> Result<u64, Failure> {
        let bytes = self.from.sizes()?.image_bytes.max(self.to.sizes()?.image_bytes);
        if bytes == 0 {
            let shape = self.shape();
            return Err(Failure::usage(format!("{shape} has no elements, so nothing is timed")));
        }
        Ok(bytes)
    }

    /// Checks the plan, then times it and its peers in turns.
    fn measure(&self, buffers: &mut Buffers, tier: Tier, quick: bool) -> Result<Figures, Failure> {
        let bytes = self.larger_bytes()?;
        let work = |e| Failure::work(e);
        let plan =
            PlanBuilder::new().tier(tier).between(&self.from, &self.to).map_err(Failure::work)?;
        self.check(&plan, buffers)?;

        // A plain copy is the plan of an array that stays as it is; a fill is
        // one of next to nothing but padding.
        let run = Shape::row_major(relayout::ElementType::U8, &[bytes])?;
        let copy = |stream| PlanBuilder::new().streaming(stream).between(&run, &run);
        let copies = [copy(false).map_err(work)?, copy(true).map_err(work)?];
        let padded: Shape = format!("u8[1]{{0:T({bytes})}}").parse()?;
        let fill = PlanBuilder::new().padding(Padding::Byte(0x2a)).tier(Tier::best());
        let fills =
            [fill.clone().streaming(false), fill.streaming(true)].map(|fill| fill.pack(&padded));
        let [fill, streaming_fill] = fills;
        let fills = [fill.map_err(work)?, streaming_fill.map_err(work)?];

        let length = usize::try_from(bytes).map_err(Failure::work)?;
        let (from, to) = (self.from.sizes()?.image_bytes, self.to.sizes()?.image_bytes);
        let from = usize::try_from(from).map_err(Failure::work)?;
        let to = usize::try_from(to).map_err(Failure::work)?;
        let (source, destination) = buffers.both();
        let mut contest = |which: usize| -> Result<(), Failure> {
            let ran = match which {
                0 => plan.run(&source[..from], &mut destination[..to]),
                1 => {
                    destination[..length].copy_from_slice(&source[..length]);
                    Ok(())
                }
                2 | 3 => copies[which - 2].run(&source[..length], &mut destination[..length]),
                4 => {
                    // No byte of a source is this one, so all of it is read.
                    black_box(memchr::memchr(ABSENT, &source[..length]));
                    Ok(())
                }
                _ => fills[which - 5].run(&source[..1], &mut destination[..length]),
            };
            black_box(&mut *destination);
            ran.map_err(Failure::work)
        };
        let (rounds, least) = if quick { (7, 1) } else { (15, 4) };
        let least = Duration::from_millis(least);
        let repeats: Vec<u32> = (0..CONTESTANTS)
            .map(|which| repeats(least, || contest(which)))
            .collect::<Result<_, _>>()?;
        let warm_ups = if bytes < LARGE { WARM_UPS } else { 1 };
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); CONTESTANTS];
        for _ in 0..rounds {
            for (which, times) in times.iter_mut().enumerate() {
                // Each finds the caches as it leaves them itself.
                for _ in 0..warm_ups {
                    contest(which)?;
                }
                let start = Instant::now();
                for _ in 0..repeats[which] {
                    contest(which)?;
                }
                times.push(start.elapsed().as_secs_f64() / f64::from(repeats[which]));
            }
        }
        let times: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
        Ok(Figures {
            bytes,
            kernel: kernels(&plan),
            ours: times[0],
            memcpy: times[1],
            copy: times[1].min(times[2]).min(times[3]),
            read: times[4],
            fill: times[5].min(times[6]),
        })
    }

    /// Fills the source and holds what the plan makes of it against the index
    /// math: all of a small image, much of a large one.
    fn check(&self, plan: &Plan, buffers: &mut Buffers) -> Result<(), Failure> {
        let (from, to) = (ImageMap::new(&self.from)?, ImageMap::new(&self.to)?);
        let length =
            |shape: &Shape| usize::try_from(shape.sizes()?.image_bytes).map_err(Failure::work);
        let (source_bytes, bytes) = (length(&self.from)?, length(&self.to)?);
        let mut random = fastrand::Rng::with_seed(20);
        let (source, destination) = buffers.both();
        source.fill(0);
        let elements = self.from.element_type().bits().min(8);
        let mask = 0xff >> (8 - elements);
        // A narrow type in bytes has nothing in the other bits; images may.
        let in_bytes = elements < 8 && self.from.element_bits() == 8;
        let mut words = source.chunks_exact_mut(8);
        for word in &mut words {
            let mut eight = random.u64(..).to_le_bytes();
            for byte in &mut eight {
                if in_bytes {
                    *byte &= mask;
                }
                if *byte == ABSENT {
                    *byte = 0;
                }
            }
            word.copy_from_slice(&eight);
        }
        let source = &source[..source_bytes];
        let image = &mut destination[..bytes];
        image.fill(0xee);
        plan.run(source, image).map_err(Failure::work)?;

        let wrong = |what: String| {
            Failure::work(format!("{} of {}: {what}; not timed", self.direction, self.shape()))
        };
        if to.image_elements() <= 1 << 20 {
            let mut expected = vec![0; image.len()];
            oracle::between(&self.from, &self.to, source, &mut expected).map_err(Failure::work)?;
            return match (0..image.len()).find(|&i| image[i] != expected[i]) {
                None => Ok(()),
                Some(i) => Err(wrong(format!("byte {i} is {}, not {}", image[i], expected[i]))),
            };
        }
        for _ in 0..50_000 {
            let k = random.u64(..to.image_elements());
            let expected = match to.logical_index(k)? {
                Some(index) => element(source, from.bit_offset(&index)?, self.from.element_bits()),
                None => 0,
            };
            let bits = self.to.element_bits();
            let found = element(image, k * u64::from(bits), bits);
            if found != expected {
                return Err(wrong(format!("image element {k} is {found}, not {expected}")));
            }
        }
        Ok(())
    }
}

/// The plan, memcpy, two plain copies, a sweep and two fills.
const CONTESTANTS: usize = 7;

/// How often each is done before it is timed. Where something else streamed before,
/// these take some times until they hold what they will go on to hold: memcpy of 8 MiB had 24, 27,
/// 31, 33 and 35 GB/s, one after the other, and 35 from there on.
const WARM_UPS: u32 = 8;
/// But once for so many bytes and more, of which no cache holds much.
const LARGE: u64 = 64 << 20;

/// A byte that no source holds.
const ABSENT: u8 = 0x9d;

/// The element of `bits` bits at a bit of a buffer.
fn element(buffer: &[u8], at: u64, bits: u32) -> u128 {
    let start = usize::try_from(at / 8).unwrap_or(usize::MAX);
    let bytes = usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX);
    let value = buffer[start..start + bytes].iter().rev().fold(0, |n, &b| n << 8 | u128::from(b));
    value >> (at % 8) & (u128::MAX >> (128 - bits))
}

/// How often to do something so that it takes a while.
fn repeats(least: Duration, mut once: impl FnMut() -> Result<(), Failure>) -> Result<u32, Failure> {
    let mut repeats = 1;
    loop {
        let start = Instant::now();
        for _ in 0..repeats {
            once()?;
        }
        if start.elapsed() >= least || repeats == 1 << 24 {
            return Ok(repeats);
        }
        repeats *= 2;
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The kernels of a plan, each once.
fn kernels(plan: &Plan) -> String {
    let mut names: Vec<String> = Vec::new();
    let explanation = plan.explain();
    for part in explanation.parts {
        if !names.contains(&part.kernel) {
            names.push(part.kernel);
        }
    }
    if explanation.slow.is_some() { "by index".to_owned() } else { names.join("+") }
}

impl Figures {
    fn gbps(&self, seconds: f64) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a figure of three digits")]
        let bytes = self.bytes as f64;
        bytes / seconds / 1e9
    }

    fn json(&self, case: &Case, tier: Tier) -> serde_json::Value {
        let round = |n: f64| (n * 1000.0).round() / 1000.0;
        json!({
            "group": case.group,
            "shape": case.shape(),
            "direction": case.direction,
            "bytes": self.bytes,
            "tier": tier.name(),
            "threads": 1,
            "gbps": round(self.gbps(self.ours)),
            "memcpy_gbps": round(self.gbps(self.memcpy)),
            "copy_gbps": round(self.gbps(self.copy)),
            "read_gbps": round(self.gbps(self.read)),
            "fill_gbps": round(self.gbps(self.fill)),
            "ratio_memcpy": round(self.memcpy / self.ours),
            "ratio_copy": round(self.copy / self.ours),
            "kernel": self.kernel,
        })
    }

    fn line(&self, case: &Case, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{:<15}{:<8}{:>7.1} {:>9} {:>9}{:>9.1}{:>9.1}{:>9.1}{:>9.1}  {}",
            case.group,
            case.direction,
            self.gbps(self.ours),
            format!("{:.2} x", self.memcpy / self.ours),
            format!("{:.2} x", self.copy / self.ours),
            self.gbps(self.memcpy),
            self.gbps(self.copy),
            self.gbps(self.read),
            self.gbps(self.fill),
            case.shape(),
        )?;
        let time = if self.ours < 1e-3 {
            format!("{} ns", (self.ours * 1e9).round())
        } else {
            format!("{:.2} ms", self.ours * 1e3)
        };
        let bytes = grouped(self.bytes);
        writeln!(out, "{:16}{bytes} bytes in {time}, {}", "", self.kernel)
    }
}

fn table_head(out: &mut dyn Write, tier: Tier) -> io::Result<()> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = name.map_or("this CPU", |(_, name)| name);
    writeln!(out, "{name}, tier {tier}, one thread; medians")?;
    writeln!(out)?;
    writeln!(
        out,
        "{:<15}{:<8}{:>7} {:>9} {:>9}{:>9}{:>9}{:>9}{:>9}  shape",
        "", "", "GB/s", "memcpy", "best copy", "memcpy", "copy", "read", "fill"
    )?;
    writeln!(
        out,
        "{:31}{:>9} {:>9}{:>9}{:>9}{:>9}{:>9}",
        "", "ratio", "ratio", "GB/s", "GB/s", "GB/s", "GB/s"
    )
}
