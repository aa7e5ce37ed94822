//! A large mapped array through two small buffers to a thread that stands for the DMA
//! engine of a device.
//!
//! ```text
//! cargo run --release --example stage [FILE [SHAPE]]
//! ```
//!
//! FILE has the array as raw bytes, dense and row-major. Without one, a file of 4 GiB is
//! made for the time of the run, mostly holes.

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use relayout::staging::{Staged, Stager};
use relayout::{Plan, Shape};

const BUFFER_BYTES: usize = 8 << 20;
const BUFFERS: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next();
    let text = arguments.next().unwrap_or("f32[32768,32768]{1,0:T(8,128)}".to_owned());
    let shape: Shape = text.parse()?;
    let file = match path {
        Some(path) => File::open(path)?,
        None => made_up(shape.sizes()?.host_bytes)?,
    };
    // SAFETY: nobody else writes to the file while this runs.
    #[allow(unsafe_code, reason = "a mapped file can change under its reader")]
    let source = unsafe { memmap2::Mmap::map(&file)? };
    #[cfg(unix)]
    source.advise(memmap2::Advice::Sequential)?;
    let plan = Plan::pack(&shape)?;
    println!("{shape}: {} MiB to {} MiB", source.len() >> 20, plan.destination_bytes() >> 20);
    println!("through {BUFFERS} buffers of {} MiB", BUFFER_BYTES >> 20);

    eprintln!("reading it once, so that the disk does not count");
    let expected = sum_of(&source);

    // What staging takes without an engine.
    let mut stager = Stager::new([vec![0; BUFFER_BYTES]]);
    let start = Instant::now();
    for staged in stager.stage(&plan, &source)? {
        drop(staged?);
    }
    let alone = start.elapsed();

    let (engine, filled) = mpsc::channel();
    let device = std::thread::spawn(move || transfer(filled));
    let buffers: Vec<Vec<u8>> = (0..BUFFERS).map(|_| vec![0; BUFFER_BYTES]).collect();
    let mut stager = Stager::new(buffers);
    let mut peak = own_memory_mib();
    let start = Instant::now();
    for (i, staged) in stager.stage(&plan, &source)?.enumerate() {
        let staged = staged?;
        if i % 64 == 0 {
            peak = peak.max(own_memory_mib());
            let done = staged.destination().end as f64 / plan.destination_bytes() as f64;
            eprint!("\r{:3.0} %", 100.0 * done);
        }
        engine.send(staged)?;
    }
    drop(engine);
    let (busy, sum) = device.join().map_err(|_| "the engine stopped")?;
    let elapsed = start.elapsed();
    eprintln!("\r100 %");

    let rate = plan.destination_bytes() as f64 / elapsed.as_secs_f64() / 1e9;
    println!("staged and transferred in {elapsed:.2?}, {rate:.1} GB/s");
    println!("staging alone takes {alone:.2?}, the engine was busy for {busy:.2?}");
    let saved = (alone + busy).saturating_sub(elapsed).as_secs_f64();
    let most = alone.min(busy).as_secs_f64();
    println!("overlap: {saved:.2} s of the {most:.2} s that can overlap");
    match peak {
        Some(mib) => println!("peak memory, mapped file apart: {mib} MiB"),
        None => println!("peak memory: not known on this system"),
    }
    if plan.destination_bytes() == source.len() as u64 {
        assert_eq!(sum, expected, "what arrived is not what was sent");
        println!("what arrived has the checksum of the source");
    }
    Ok(())
}

/// What the engine does: copies each chunk into memory of its own.
fn transfer(filled: mpsc::Receiver<Staged<Vec<u8>>>) -> (Duration, u64) {
    let mut window = vec![0; BUFFER_BYTES];
    let (mut busy, mut sum) = (Duration::ZERO, 0_u64);
    for staged in filled {
        let start = Instant::now();
        let window = &mut window[..staged.bytes().len()];
        window.copy_from_slice(staged.bytes());
        sum = sum.wrapping_add(sum_of(window));
        busy += start.elapsed();
        // Dropped here, its buffer can be filled again.
    }
    (busy, sum)
}

/// The sum of all words, which does not depend on their order.
fn sum_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let words: u64 = words.iter().fold(0, |n, &w| n.wrapping_add(u32::from_le_bytes(w).into()));
    rest.iter().fold(words, |n, &byte| n.wrapping_add(byte.into()))
}

/// A file of so many bytes that is gone when it is closed.
fn made_up(bytes: u64) -> std::io::Result<File> {
    let path = std::env::temp_dir().join(format!("relayout-stage-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    let start: Vec<u8> = (0..bytes.min(64 << 20)).map(|i| (i * 31 % 251) as u8).collect();
    file.write_all(&start)?;
    file.set_len(bytes)?;
    Ok(file)
}

/// The memory of this process that belongs to no file, in MiB.
fn own_memory_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib >> 10)
}
