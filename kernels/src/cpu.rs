//! Tiers: which vector instructions there are, found out once.
//!
//! A [`Tier`] is a value that exists only where the CPU can run it, so whatever
//! holds one needs no check. The features of a tier stand here once; the tests
//! for them and the kernels compiled for them are made from the same list.

#![allow(unsafe_code, reason = "asking the CPU what it is; docs/architecture.md")]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::CpuidResult;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// One level of vector instructions, which this CPU has.
///
/// ```
/// use relayout::Tier;
///
/// // Slowest first. The first two are everywhere.
/// let tiers = Tier::available();
/// assert_eq!(tiers[..2], [Tier::SCALAR, Tier::PORTABLE]);
/// assert_eq!(tiers.last(), Some(&Tier::best()));
/// assert_eq!("scalar".parse(), Ok(Tier::SCALAR));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tier(Level);

/// What a tier is. Whoever makes a `Tier` of one has seen that the CPU has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Level {
    Scalar,
    Portable,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Every tier there is, on any CPU, slowest first.
const NAMES: [&str; 5] = ["scalar", "portable", "neon", "avx2", "avx512"];

/// Gives the features of a tier to a macro, in front of its own arguments.
macro_rules! with_features {
    (neon, $macro:ident $arguments:tt) => {
        $macro! { ["neon"] $arguments }
    };
    (avx2, $macro:ident $arguments:tt) => {
        $macro! { ["avx2"] $arguments }
    };
    (avx512, $macro:ident $arguments:tt) => {
        $macro! { ["avx512f", "avx512bw", "avx512vl", "avx512vbmi", "gfni"] $arguments }
    };
}
pub(crate) use with_features;

#[cfg(target_arch = "x86_64")]
macro_rules! detected {
    ([$($feature:tt),+] ()) => { $(std::arch::is_x86_feature_detected!($feature))&&+ };
}

#[cfg(target_arch = "aarch64")]
macro_rules! detected {
    ([$($feature:tt),+] ()) => { $(std::arch::is_aarch64_feature_detected!($feature))&&+ };
}

/// Whether AVX-512 is emulated (`x86/emulated.rs`), with AVX2, for tests on a CPU that lacks it.
#[cfg(target_arch = "x86_64")]
fn is_emulated() -> bool {
    cfg!(emulate_avx512) && with_features!(avx2, detected())
}

impl Tier {
    /// One element at a time, the tier that every other one is measured by.
    pub const SCALAR: Tier = Tier(Level::Scalar);

    /// Vectors of 16 bytes, on any CPU, by the crate `wide`.
    pub const PORTABLE: Tier = Tier(Level::Portable);

    /// The tiers that this CPU has, slowest first.
    #[must_use]
    pub fn available() -> Vec<Tier> {
        #[allow(unused_mut, reason = "not on every architecture")]
        let mut tiers = vec![Tier::SCALAR, Tier::PORTABLE];
        #[cfg(target_arch = "aarch64")]
        if with_features!(neon, detected()) {
            tiers.push(Tier(Level::Neon));
        }
        #[cfg(target_arch = "x86_64")]
        if with_features!(avx2, detected()) {
            tiers.push(Tier(Level::Avx2));
        }
        #[cfg(target_arch = "x86_64")]
        if with_features!(avx512, detected()) || is_emulated() {
            tiers.push(Tier(Level::Avx512));
        }
        tiers
    }

    /// The fastest tier that this CPU has.
    #[must_use]
    pub fn best() -> Tier {
        Tier::available().pop().unwrap_or(Tier::SCALAR)
    }

    /// Its name: `scalar`, `portable`, `neon`, `avx2` or `avx512`, which is AVX-512 F, BW, VL and VBMI
    /// with GFNI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Scalar => "scalar",
            Level::Portable => "portable",
            #[cfg(target_arch = "aarch64")]
            Level::Neon => "neon",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }

    /// Whether it has streaming stores, which go past the caches.
    #[doc(hidden)]
    pub fn streams(self) -> bool {
        cfg!(target_arch = "x86_64") && self != Tier::SCALAR
    }

    /// Whether it has shuffles of bytes in any order.
    #[doc(hidden)]
    pub fn shuffles(self) -> bool {
        self > Tier::PORTABLE
    }

    /// The bytes of its longest vectors.
    #[doc(hidden)]
    pub fn vector_bytes(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => 64,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => 32,
            _ => 16,
        }
    }

    /// Whether it loads and stores some bytes of 16.
    #[doc(hidden)]
    pub fn has_masks(self) -> bool {
        self.vector_bytes() == 64
    }

    pub(crate) fn level(self) -> Level {
        self.0
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Tier {
    type Err = TierError;

    /// The tier of that name, if this CPU has it.
    fn from_str(name: &str) -> Result<Self, TierError> {
        if let Some(tier) = Tier::available().into_iter().find(|tier| tier.name() == name) {
            return Ok(tier);
        }
        Err(match NAMES.iter().find(|&&known| known == name) {
            Some(name) => TierError::NotHere { name },
            None => TierError::Unknown { name: crate::excerpt::excerpt(name) },
        })
    }
}

/// Why a name is no tier.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TierError {
    /// There is no such tier.
    Unknown {
        /// The beginning of the name.
        name: String,
    },
    /// This CPU does not have it.
    NotHere {
        /// The tier's name.
        name: &'static str,
    },
}

impl fmt::Display for TierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TierError::Unknown { name } => {
                write!(f, "no tier is called `{name}`; there are {}", NAMES.join(", "))
            }
            TierError::NotHere { name } => {
                let here: Vec<_> = Tier::available().iter().map(|tier| tier.name()).collect();
                write!(f, "this CPU has no tier {name}; it has {}", here.join(", "))
            }
        }
    }
}

impl std::error::Error for TierError {}

/// A family of cores whose caches and prefetchers were measured. No instruction tells how these serve
/// a stream of loads and stores, so sizes and distances go by the family (docs/performance.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Core {
    /// CPUs of Intel, of which one for servers was measured. What prefetchers follow is better left to
    /// them.
    Intel,
    /// Zen 3 of AMD, of servers, which was measured, and of desktops.
    Zen3,
    /// Zen 4 of AMD, which was measured, Zen and Zen 2, and Zen 3 elsewhere.
    Zen4,
    /// Zen 5 of AMD. All others get what was found on it.
    #[default]
    Zen5,
}

impl Core {
    /// Of this CPU, which is asked once: a virtual machine takes long to answer.
    pub fn here() -> Core {
        static HERE: OnceLock<Core> = OnceLock::new();
        *HERE.get_or_init(Core::ask)
    }

    #[cfg(target_arch = "x86_64")]
    fn ask() -> Core {
        let id = cpuid(0, 0);
        let maker = [id.ebx, id.edx, id.ecx].map(u32::to_le_bytes);
        let signature = cpuid(1, 0).eax;
        Core::of(maker.as_flattened(), family(signature), model(signature))
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn ask() -> Core {
        Core::default()
    }

    /// Of the CPUs of a family and a model, as their maker numbers them.
    #[cfg(target_arch = "x86_64")]
    fn of(maker: &[u8], family: u32, model: u32) -> Core {
        match (maker, family, model >> 4) {
            (b"GenuineIntel", ..) => Core::Intel,
            // Zen 3 and Zen 4 are one family. Mobile ones of Zen 3, models 0x40 to 0x5f, have 16 MiB of L3.
            (b"AuthenticAMD", 0x19, 0 | 2 | 3) => Core::Zen3,
            (b"AuthenticAMD", 0x17 | 0x19, _) => Core::Zen4,
            _ => Core::Zen5,
        }
    }

    /// Whether prefetchers follow what is read of several pages at a time.
    pub fn follows_pages(self) -> bool {
        self == Core::Intel
    }

    /// Whether L2 has 8 ways, or fewer: lines at distances of powers of two, which
    /// share a set, drive each other out.
    pub fn has_few_ways(self) -> bool {
        matches!(self, Core::Zen3 | Core::Zen4)
    }

    /// Lines that are a multiple of so many bytes apart share a set of L2, if they are in the same large page of memory:
    /// what the sets have together.
    pub fn l2_sets(self) -> usize {
        match self {
            Core::Zen3 | Core::Zen5 => 64 << 10,
            Core::Zen4 | Core::Intel => 128 << 10,
        }
    }

    /// Whether rows that memory brings to transposes come sooner if each of their lines is asked for by itself, or little of
    /// each row farther ahead, as measured.
    pub(crate) fn fetches_by_lines(self) -> bool {
        self == Core::Zen5
    }

    /// Whether L3 brings the rows of squares of lines sooner if a line of each is asked for before the next ones, as measured.
    pub(crate) fn fetches_blocks(self) -> bool {
        self == Core::Zen4
    }

    /// Whether short rows that go on with each other are streamed sooner if they are put together in memory, as measured.
    pub(crate) fn joins_short_rows_in_memory(self) -> bool {
        self == Core::Zen5
    }

    /// Whether rows of elements below a byte that are at multiples of pages are streamed sooner a part of each at a time, as
    /// measured.
    pub(crate) fn streams_pages_by_parts(self) -> bool {
        self == Core::Zen5
    }

    /// Whether L1 has room for what is fetched 8 KiB ahead of rows that are read by turns, as measured.
    pub(crate) fn fetches_far_into_l1(self) -> bool {
        self == Core::Zen5
    }

    /// Whether a core has most of an L3 of 32 MiB, as measured, so that ordinary stores are the quicker ones for longer.
    pub fn has_more_of_l3(self) -> bool {
        self == Core::Zen3
    }

    /// Whether what is streamed is slow unless some lines of a run follow each other.
    pub fn streams_by_runs(self) -> bool {
        self == Core::Zen3
    }

    /// Whether loops that do little more than stream run so far ahead of their stores that memory
    /// takes fewer of these.
    pub fn outruns_streams(self) -> bool {
        self == Core::Zen4
    }
}

/// The family of a CPU, extended family included: "CPUID Fn0000_0001_EAX" in the manual of AMD's
/// architecture.
#[cfg(target_arch = "x86_64")]
fn family(signature: u32) -> u32 {
    let (base, extended) = (signature >> 8 & 0xf, signature >> 20 & 0xff);
    if base == 0xf { base + extended } else { base }
}

/// The model of a CPU in its family, from the same.
#[cfg(target_arch = "x86_64")]
fn model(signature: u32) -> u32 {
    signature >> 4 & 0xf | signature >> 12 & 0xf0
}

#[cfg(target_arch = "x86_64")]
fn cpuid(leaf: u32, part: u32) -> CpuidResult {
    #[allow(unused_unsafe, reason = "safe in later versions of Rust than the oldest one here")]
    // SAFETY: every x86-64 has this instruction, and an answer for every leaf, if only zeros or that
    // of another one.
    unsafe {
        std::arch::x86_64::__cpuid_count(leaf, part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn cores_go_by_maker_and_family() {
        let amd = |family| Core::of(b"AuthenticAMD", family, 0x11);
        assert_eq!([0x17, 0x19, 0x1a].map(amd), [Core::Zen4, Core::Zen4, Core::Zen5]);
        let of_zen3_and_zen4 = |model| Core::of(b"AuthenticAMD", 0x19, model);
        assert_eq!([0x01, 0x08, 0x21, 0x30].map(of_zen3_and_zen4), [Core::Zen3; 4]);
        assert_eq!([0x11, 0x61, 0x78, 0xa0, 0x50].map(of_zen3_and_zen4), [Core::Zen4; 5]);
        assert_eq!(Core::of(b"GenuineIntel", 6, 0xcf), Core::Intel);
        assert_eq!(Core::of(b"CentaurHauls", 0x19, 1), Core::Zen5);
        // Signatures of an EPYC of Zen 3, of Zen 4 and of Zen 5, and of a Xeon.
        let of_servers = [0x00a0_0f11, 0x00a1_0f11, 0x00b0_0f21, 0x000c_06f2];
        assert_eq!(of_servers.map(family), [0x19, 0x19, 0x1a, 6]);
        assert_eq!(of_servers.map(model), [0x01, 0x11, 0x02, 0xcf]);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_core_here_is_the_one_that_the_system_tells() {
        let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let of = |key: &str| {
            let line = told.lines().find(|line| line.split(':').next().map(str::trim) == Some(key));
            line.and_then(|line| line.split(':').nth(1)).map(|value| value.trim().to_owned())
        };
        let (Some(maker), Some(family), Some(model)) =
            (of("vendor_id"), of("cpu family"), of("model"))
        else {
            eprintln!("skipped: the system does not tell");
            return;
        };
        let is_told = |feature| of("flags").is_some_and(|all| all.split(' ').any(|f| f == feature));
        if is_told("avx2") != std::arch::is_x86_feature_detected!("avx2") {
            eprintln!("skipped: the CPU is emulated, and the system tells of another one");
            return;
        }
        let (family, model) = (family.parse().unwrap(), model.parse().unwrap());
        assert_eq!(Core::here(), Core::of(maker.as_bytes(), family, model));
    }

    #[test]
    fn names_are_read_back_and_what_is_not_here_is_told_apart() {
        for tier in Tier::available() {
            assert_eq!(tier.name().parse(), Ok(tier));
            assert!(NAMES.contains(&tier.name()));
        }
        assert!(matches!("sse9".parse::<Tier>(), Err(TierError::Unknown { .. })));
        let other = if cfg!(target_arch = "aarch64") { "avx2" } else { "neon" };
        assert_eq!(other.parse::<Tier>(), Err(TierError::NotHere { name: other }));
    }
}
