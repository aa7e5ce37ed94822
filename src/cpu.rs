//! Tiers: which vector instructions there are, found out once.
//!
//! A [`Tier`] is a value that exists only where the CPU can run it, so whatever
//! holds one needs no check. The features of a tier stand here once; the tests
//! for them and the kernels compiled for them are made from the same list.

#![allow(unsafe_code, reason = "asking the CPU who made it; docs/architecture.md")]

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
        $macro! { ["avx512f", "avx512bw"] $arguments }
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
        if with_features!(avx512, detected()) {
            tiers.push(Tier(Level::Avx512));
        }
        tiers
    }

    /// The fastest tier that this CPU has.
    #[must_use]
    pub fn best() -> Tier {
        Tier::available().pop().unwrap_or(Tier::SCALAR)
    }

    /// Its name: `scalar`, `portable`, `neon`, `avx2` or `avx512`.
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

    /// Whether it has stores that go past the caches.
    pub(crate) fn streams(self) -> bool {
        cfg!(target_arch = "x86_64") && self != Tier::SCALAR
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

/// Who made the CPU. What its caches hold and how its prefetchers fetch, no instruction tells: sizes
/// and distances that serve it were found by measuring, a maker at a time (docs/performance.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    Intel,
    /// What was found on CPUs of AMD, which is what others get.
    Other,
}

impl Maker {
    /// Of this CPU, which is asked once: a virtual machine takes long to answer.
    pub(crate) fn here() -> Maker {
        static HERE: OnceLock<Maker> = OnceLock::new();
        *HERE.get_or_init(Maker::ask)
    }

    #[cfg(target_arch = "x86_64")]
    fn ask() -> Maker {
        let id = cpuid(0, 0);
        let name = [id.ebx, id.edx, id.ecx].map(u32::to_le_bytes);
        if name.as_flattened() == b"GenuineIntel" { Maker::Intel } else { Maker::Other }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn ask() -> Maker {
        Maker::Other
    }
}

/// Whether the second-level cache is known to have few ways: lines at distances of powers of two, which
/// share its places, drive each other out there. Asked once, as [`Maker::here`] is.
pub(crate) fn has_few_ways() -> bool {
    static HERE: OnceLock<bool> = OnceLock::new();
    *HERE.get_or_init(|| second_level_ways().is_some_and(|ways| ways <= FEW_WAYS))
}

const FEW_WAYS: u32 = 8;

/// The ways of the second-level cache, where the CPU tells as those of AMD do: "Cache Topology
/// Information" in the manual of their architecture.
#[cfg(target_arch = "x86_64")]
fn second_level_ways() -> Option<u32> {
    const FIRST: u32 = 0x8000_0000;
    const CACHES: u32 = 0x8000_001D;
    /// More caches than any CPU has.
    const MOST: u32 = 16;
    if cpuid(FIRST, 0).eax < CACHES {
        return None;
    }
    let caches = (0..MOST).map(|number| cpuid(CACHES, number));
    let is_one = |cache: &CpuidResult| cache.eax & 0x1F != 0;
    let of_second_level = |cache: &CpuidResult| cache.eax >> 5 & 7 == 2;
    let cache = caches.take_while(is_one).find(of_second_level)?;
    Some((cache.ebx >> 22) + 1)
}

#[cfg(not(target_arch = "x86_64"))]
fn second_level_ways() -> Option<u32> {
    None
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
    fn ways_of_the_second_level_are_those_that_the_system_tells() {
        let of = |index: u32, what: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}");
            std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
        };
        let told = (0..8).find(|&index| of(index, "level").as_deref() == Some("2"));
        let told = told.and_then(|index| of(index, "ways_of_associativity"));
        let (Some(ways), Some(told)) = (second_level_ways(), told) else {
            eprintln!("skipped: the CPU or the system does not tell");
            return;
        };
        assert_eq!(ways.to_string(), told);
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
