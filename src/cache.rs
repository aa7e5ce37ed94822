//! Plans that are asked for again and again.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;

use crate::error::Error;
use crate::plan::{Plan, PlanBuilder};
use crate::shape::Shape;

/// The plans that were used last, for any number of threads.
///
/// A plan is found again by everything that shapes it: both layouts and all options.
/// docs/performance.md says how long that takes.
///
/// ```
/// use relayout::{PlanBuilder, PlanCache, Shape};
///
/// let cache = PlanCache::new(100);
/// let shape: Shape = "f32[8,128]{1,0:T(8,128)}".parse()?;
/// let plan = cache.pack(&PlanBuilder::new(), &shape)?;
/// plan.run(&[0; 4096], &mut [0; 4096])?;
/// assert!(std::sync::Arc::ptr_eq(&plan, &cache.pack(&PlanBuilder::new(), &shape)?));
/// # Ok::<(), relayout::Error>(())
/// ```
#[derive(Debug)]
pub struct PlanCache {
    capacity: usize,
    hasher: RandomState,
    plans: Mutex<Plans>,
}

#[derive(Debug, Default)]
struct Plans {
    /// By their hash; the few that share one, in a list.
    by_hash: HashMap<u64, Vec<Entry>, RandomState>,
    count: usize,
    /// Counts what was asked for.
    now: u64,
}

#[derive(Debug)]
struct Entry {
    builder: PlanBuilder,
    what: What<Shape>,
    plan: Arc<Plan>,
    last_used: u64,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What<S> {
    Pack(S),
    Unpack(S),
    Between(S, S),
}

impl PlanCache {
    /// A cache of at most so many plans. What was not used for longest goes first.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        PlanCache { capacity, hasher: RandomState::default(), plans: Mutex::default() }
    }

    /// [`PlanBuilder::pack`], unless that was asked for before.
    ///
    /// # Errors
    ///
    /// As there. Errors are not kept.
    pub fn pack(&self, builder: &PlanBuilder, shape: &Shape) -> Result<Arc<Plan>, Error> {
        self.get(builder, What::Pack(shape))
    }

    /// [`PlanBuilder::unpack`], unless that was asked for before.
    ///
    /// # Errors
    ///
    /// As there. Errors are not kept.
    pub fn unpack(&self, builder: &PlanBuilder, shape: &Shape) -> Result<Arc<Plan>, Error> {
        self.get(builder, What::Unpack(shape))
    }

    /// [`PlanBuilder::between`], unless that was asked for before.
    ///
    /// # Errors
    ///
    /// As there. Errors are not kept.
    pub fn between(
        &self,
        builder: &PlanBuilder,
        from: &Shape,
        to: &Shape,
    ) -> Result<Arc<Plan>, Error> {
        self.get(builder, What::Between(from, to))
    }

    /// How many plans it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn get(&self, builder: &PlanBuilder, what: What<&Shape>) -> Result<Arc<Plan>, Error> {
        let hash = self.hasher.hash_one((builder, what));
        // Nothing panics while it is locked but for want of memory.
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.find(hash, builder, what) {
            return Ok(plan);
        }
        drop(plans);
        // Others go on meanwhile. Two that ask for the same at the same time make it
        // twice, and one of them is kept.
        let plan = Arc::new(match what {
            What::Pack(shape) => builder.pack(shape)?,
            What::Unpack(shape) => builder.unpack(shape)?,
            What::Between(from, to) => builder.between(from, to)?,
        });
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.find(hash, builder, what) {
            return Ok(plan);
        }
        if self.capacity > 0 {
            if plans.count >= self.capacity {
                plans.forget_one();
            }
            plans.keep(hash, builder, what, &plan);
        }
        Ok(plan)
    }
}

impl Plans {
    fn find(&mut self, hash: u64, builder: &PlanBuilder, what: What<&Shape>) -> Option<Arc<Plan>> {
        self.now += 1;
        let entries = self.by_hash.get_mut(&hash)?;
        let entry =
            entries.iter_mut().find(|entry| entry.what.is(what) && entry.builder == *builder)?;
        entry.last_used = self.now;
        Some(Arc::clone(&entry.plan))
    }

    fn keep(&mut self, hash: u64, builder: &PlanBuilder, what: What<&Shape>, plan: &Arc<Plan>) {
        let what = match what {
            What::Pack(shape) => What::Pack(shape.clone()),
            What::Unpack(shape) => What::Unpack(shape.clone()),
            What::Between(from, to) => What::Between(from.clone(), to.clone()),
        };
        let (builder, plan) = (builder.clone(), Arc::clone(plan));
        let entry = Entry { builder, what, plan, last_used: self.now };
        self.by_hash.entry(hash).or_default().push(entry);
        self.count += 1;
    }

    /// Forgets what was not used for longest.
    fn forget_one(&mut self) {
        let oldest = self
            .by_hash
            .iter()
            .flat_map(|(&hash, entries)| entries.iter().map(move |e| (e.last_used, hash)))
            .min();
        let Some((last_used, hash)) = oldest else { return };
        if let Some(entries) = self.by_hash.get_mut(&hash) {
            entries.retain(|entry| entry.last_used != last_used);
            if entries.is_empty() {
                self.by_hash.remove(&hash);
            }
        }
        self.count -= 1;
    }
}

impl What<Shape> {
    fn is(&self, other: What<&Shape>) -> bool {
        match (self, other) {
            (What::Pack(a), What::Pack(b)) | (What::Unpack(a), What::Unpack(b)) => a == b,
            (What::Between(a, b), What::Between(c, d)) => a == c && b == d,
            _ => false,
        }
    }
}
