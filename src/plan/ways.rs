//! In which ways the sides of a nest are brought to kernels.
//!
//! Directly if that is fast; otherwise those whose elements are below a byte, or of another type, are planned as kernels
//! see them, and staged (`staged.rs`): in one pass or, where these are quicker, in two (`hop.rs`).

use std::borrow::Cow;

use relayout_kernels::{BlockOp, Conversion};

use super::choose::{self, Elements, Leaf, Room};
use super::cost::{self, cost};
use super::hop;
use super::nest::{Loop, Nest};
use super::staged::{LONG_RUN_BITS, SCRATCH_BYTES, small};
use super::stores::Stores;
use super::word_columns;
use crate::Tier;
use crate::error::Side;

/// Which of the sides count their elements from the most significant bit on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MostFirst {
    pub(crate) source: bool,
    pub(crate) destination: bool,
}

impl MostFirst {
    /// None of them does.
    fn is_least(self) -> bool {
        !self.source && !self.destination
    }
}

/// What is done to the elements on the way from the source, or to the destination.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conversions {
    pub(crate) source: Option<Conversion>,
    pub(crate) destination: Option<Conversion>,
}

impl Conversions {
    /// Whether a side is converted.
    pub(super) fn are_there(self) -> bool {
        self.source.is_some() || self.destination.is_some()
    }

    /// The ways of the two sides: direct, where they are not converted.
    pub(super) fn ways(self) -> Ways {
        let bits = |bytes: usize| u32::try_from(8 * bytes).unwrap_or(0);
        let way = |conversion, (array, seen)| Way::Staged {
            op: BlockOp::Convert { conversion },
            array: bits(array),
            seen: bits(seen),
        };
        let source =
            self.source.map_or(Way::Direct, |conversion| way(conversion, conversion.widths()));
        let destination = self.destination.map_or(Way::Direct, |conversion| {
            let (from, to) = conversion.widths();
            way(conversion, (to, from))
        });
        Ways { source, destination }
    }
}

/// The kernels that carry out a nest of data: directly if that is fast, otherwise with
/// those sides staged whose elements are narrower than a byte.
pub(super) fn data(
    nest: Nest,
    elements: &Elements,
    order: MostFirst,
    conversions: Conversions,
) -> Option<Vec<Leaf>> {
    let Elements { source_bits, destination_bits, .. } = *elements;
    let [widen, narrow] = widen_and_narrow(elements, order);
    let converted = conversions.ways();
    let sources = match converted.source {
        Way::Direct => Way::all(source_bits, order.source, widen),
        way => vec![way],
    };
    let destinations = match converted.destination {
        Way::Direct => Way::all(destination_bits, order.destination, narrow),
        way => vec![way],
    };
    let mut best: Option<(usize, Vec<Leaf>)> = None;
    let converts = conversions.are_there();
    if let Some(leaves) = of_rows_most_first(&nest, elements, order).filter(|_| !converts) {
        return Some(leaves);
    }
    let both = destinations
        .iter()
        .flat_map(|&destination| sources.iter().map(move |&source| Ways { source, destination }));
    let both = both.flat_map(|ways| match ways {
        Ways::DIRECT => vec![(ways, true)],
        // Rows that are not to be cut may have no room.
        _ => vec![(ways, true), (ways, false)],
    });
    for (ways, has_matrices) in both {
        let leaves = match ways {
            Ways::DIRECT => choose::data(nest.clone(), elements),
            _ => ways.leaves(&nest, &Elements { has_matrices, ..*elements }),
        };
        let Some(leaves) = leaves else { continue };
        let slowness_of = |leaf| slowness(leaf, elements.stores.tier);
        let slowness = leaves.iter().map(slowness_of).max().unwrap_or(0);
        if best.as_ref().is_none_or(|(least, _)| slowness < *least) {
            best = Some((slowness, leaves));
        }
        if slowness == 0 {
            break;
        }
    }
    let leaves = match best {
        Some((_, leaves)) => leaves,
        None if converts => return None,
        // The ops on bits know any order.
        None => choose::data_on_bits(nest.clone(), elements)?,
    };
    let passes = if !elements.are_few {
        None
    } else if elements.passes == Room::Near {
        hop::data(&nest, elements, converted, &leaves)
    } else if converts {
        converted_passes(&nest, elements, converted, &leaves).filter(|_| order.is_least())
    } else {
        let passes = if source_bits.max(destination_bits) < 8 {
            packed_passes(&nest, elements, order, &leaves)
        } else if order.is_least() {
            hop::data(&nest, elements, converted, &leaves)
        } else {
            None
        };
        let beside = beside_padding(&nest, elements, order, &leaves);
        let passes = quicker(passes, beside, elements);
        let so_far = passes.as_deref().unwrap_or(&leaves);
        other_passes_in_order(&nest, elements, order, so_far).or(passes)
    };
    Some(passes.unwrap_or(leaves))
}

/// What is staged beside padding that is filled by itself, where all else goes bit by bit.
fn beside_padding(
    nest: &Nest,
    elements: &Elements,
    order: MostFirst,
    direct: &[Leaf],
) -> Option<Vec<Leaf>> {
    if !direct.iter().any(|leaf| matches!(leaf.op, BlockOp::Bits { .. })) {
        return None;
    }
    with_bytes(elements, order).find_map(|ways| ways.leaves_beside_padding(nest, elements))
}

/// Which of two is estimated as quicker, if there are both.
fn quicker(a: Option<Vec<Leaf>>, b: Option<Vec<Leaf>>, elements: &Elements) -> Option<Vec<Leaf>> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let [cost_a, cost_b] = [&a, &b].map(|leaves| cost(leaves, elements.stores));
            Some(if cost_b < cost_a { b } else { a })
        }
        (a, b) => a.or(b),
    }
}

/// What makes bytes of the elements of a source, and elements of a destination of bytes, if these are below a byte.
fn widen_and_narrow(elements: &Elements, order: MostFirst) -> [BlockOp; 2] {
    let Elements { source_bits, destination_bits, truth, .. } = *elements;
    let widen = BlockOp::WidenBits { bits: source_bits, most_first: order.source };
    let narrow =
        BlockOp::NarrowBits { bits: destination_bits, truth, most_first: order.destination };
    [widen, narrow]
}

/// The ways in which one side, whose elements are below a byte, has a byte for each of them.
fn with_bytes(elements: &Elements, order: MostFirst) -> impl Iterator<Item = Ways> {
    let Elements { source_bits, destination_bits, .. } = *elements;
    let [widen, narrow] = widen_and_narrow(elements, order);
    let staged = |bits, op| Some(Way::Staged { op, array: bits, seen: 8 }).filter(|_| bits < 8);
    let source = staged(source_bits, widen).map(|source| Ways { source, ..Ways::DIRECT });
    let destination =
        staged(destination_bits, narrow).map(|destination| Ways { destination, ..Ways::DIRECT });
    source.into_iter().chain(destination).filter(move |ways| ways.know(order))
}

/// Two passes, one of which only brings elements in the order of their array, or takes them away: such as are less than a
/// byte, or go down in memory. `None` if what there is is as quick.
fn other_passes_in_order(
    nest: &Nest,
    elements: &Elements,
    order: MostFirst,
    so_far: &[Leaf],
) -> Option<Vec<Leaf>> {
    if !cost::is_slow(so_far, elements) {
        return None;
    }
    let goes_by_elements = |leaf: &Leaf| slowness(leaf, elements.stores.tier) > 0;
    let narrow = with_bytes(elements, order)
        .filter(|_| !so_far.iter().all(|leaf| is_direct(leaf, elements.stores.tier)))
        .filter_map(|ways| ways.placed(nest, elements, hop::in_order_of_stage));
    // Wide elements are not made into words.
    let may_turn =
        order.is_least() && (elements.source_bits < 64 || so_far.iter().any(goes_by_elements));
    let reversed = if may_turn { hop::in_order_of_reversed(nest, elements) } else { None };
    let all = narrow.chain(reversed);
    let all = all.filter_map(|leaves| Some((cost(&leaves, elements.stores)?, leaves)));
    let (least, leaves) = all.min_by_key(|(cost, _)| *cost)?;
    (least < cost(so_far, elements.stores)? / 3 * 2).then_some(leaves)
}

/// Two passes where both sides have several elements in a byte: the quickest of those that move rows which begin within
/// bytes, that have elements below a byte throughout, and that have a side in one of these ways.
fn packed_passes(
    nest: &Nest,
    elements: &Elements,
    order: MostFirst,
    direct: &[Leaf],
) -> Option<Vec<Leaf>> {
    let with_cost = |leaves: Vec<Leaf>| Some((cost(&leaves, elements.stores)?, leaves));
    let mut of_rows = hop::of_rows_within_bytes(nest, elements, order, direct).and_then(with_cost);
    // Nothing else is looked at, which takes time, where these are much quicker.
    let direct_cost = cost(direct, elements.stores)?;
    if let Some((_, leaves)) = of_rows.take_if(|(cost, _)| *cost < direct_cost / 2) {
        return Some(leaves);
    }
    let ways = Some(Ways::DIRECT).filter(|ways| ways.know(order));
    let ways = ways.into_iter().chain(with_bytes(elements, order));
    let staged = ways.map(|ways| staged_passes(nest, elements, ways, direct));
    let all = staged.flatten().filter_map(with_cost).chain(of_rows);
    let (least, leaves) = all.min_by_key(|(cost, _)| *cost)?;
    (least < direct_cost).then_some(leaves)
}

/// Two passes, of which the first one converts what it reads, or the second one what it writes.
fn converted_passes(
    nest: &Nest,
    elements: &Elements,
    ways: Ways,
    direct: &[Leaf],
) -> Option<Vec<Leaf>> {
    // With the shortest vectors nothing of this was measured, and swapped arrays would go so, too.
    if elements.stores.tier.vector_bytes() < 32 {
        return None;
    }
    let passes = staged_passes(nest, elements, ways, direct);
    let in_order = passes_in_order(nest, elements, ways, passes.as_deref(), direct);
    in_order.or(passes)
}

/// Passes in the order of an array have to take so much less than a stage with long runs: one that brings these, from L3 or
/// from nearer, and one that takes them away within the caches.
const TENTHS_OF_FAR: u64 = 6;
const TENTHS_OF_BROUGHT: u64 = 8;
const TENTHS_OF_TAKEN: u64 = 9;

/// What passes in the order of an array may cost, one of which brings it or takes it away in these ways, if they are to be
/// quicker than what is there.
pub(super) fn most_in_order(ways: Ways, elements: &Elements, so_far: &[Leaf]) -> Option<u64> {
    // Long runs that are converted are better kept in L1, above all such as are brought from far.
    let tenths = match ways.source.is_staged() {
        _ if !ways.convert() || !so_far.iter().all(cost::has_long_runs) => 10,
        true if elements.stores.are_in_l3() => TENTHS_OF_FAR,
        true => TENTHS_OF_BROUGHT,
        false if elements.stores.of_runs() => 10,
        false => TENTHS_OF_TAKEN,
    };
    Some(cost(so_far, elements.stores)? / 10 * tenths)
}

/// Two passes, one of which only converts: from the order of the array, or into it. `None` if others, or one pass, are as
/// quick.
fn passes_in_order(
    nest: &Nest,
    elements: &Elements,
    ways: Ways,
    passes: Option<&[Leaf]>,
    direct: &[Leaf],
) -> Option<Vec<Leaf>> {
    let least = match passes {
        Some(passes) => cost(passes, elements.stores)? / 4 * 3,
        // What is converted on the way is not slow.
        None if !direct.iter().any(|leaf| leaf.stages.are_there()) => return None,
        None => most_in_order(ways, elements, direct)?,
    };
    let leaves = ways.placed(nest, elements, hop::in_order_of_stage)?;
    (cost(&leaves, elements.stores)? < least).then_some(leaves)
}

/// Two passes, of which the first one stages what it reads, or the second one what it writes.
fn staged_passes(
    nest: &Nest,
    elements: &Elements,
    ways: Ways,
    direct: &[Leaf],
) -> Option<Vec<Leaf>> {
    // Padding is filled by itself beside these.
    let is_data = |leaf: &&Leaf| !matches!(leaf.op, BlockOp::Fill | BlockOp::FillBits);
    let data: Vec<Leaf>;
    let direct = if ways.destination.is_staged() {
        data = direct.iter().filter(is_data).cloned().collect();
        &data
    } else {
        direct
    };
    ways.placed(nest, elements, |nest, elements, ways| hop::data(nest, elements, ways, direct))
}

/// The kernels of words that have several columns each, as [`word_columns::leaves`], of elements that are converted perhaps,
/// or of less than a byte each.
pub(super) fn words_of_columns(
    whole: Option<&Nest>,
    rest: &Nest,
    elements: &Elements,
    order: MostFirst,
    conversions: Conversions,
) -> Option<Vec<Leaf>> {
    let all = if conversions.are_there() {
        vec![conversions.ways()]
    } else {
        // Between elements below a byte whole words are better moved as such.
        let has_words = elements.source_bits.max(elements.destination_bits) < 8;
        let direct = Some(Ways::DIRECT).filter(|ways| ways.know(order));
        let staged = with_bytes(elements, order).filter(|_| !has_words);
        direct.into_iter().chain(staged).collect()
    };
    all.into_iter().find_map(|ways| {
        let whole = match whole {
            Some(nest) => Some(ways.nest(nest)?),
            None => None,
        };
        let (rest, as_seen) = (ways.nest(rest)?, ways.elements(elements)?);
        ways.staged(word_columns::leaves(whole.as_ref(), &rest, &as_seen)?, elements.stores)
    })
}

/// The leaves of a nest with one side whose elements go from the most significant bits on, where a
/// kernel knows such rows.
fn of_rows_most_first(nest: &Nest, elements: &Elements, order: MostFirst) -> Option<Vec<Leaf>> {
    if order.source == order.destination {
        return None;
    }
    let mut leaves = choose::data(nest.clone(), elements)?;
    for leaf in &mut leaves {
        match &mut leaf.op {
            BlockOp::Interleave { bits, most_first, .. }
                if order.source && *bits == elements.source_bits =>
            {
                *most_first = true;
            }
            BlockOp::Deinterleave { bits, most_first, .. }
                if order.destination && *bits == elements.source_bits =>
            {
                *most_first = true;
            }
            BlockOp::Fill | BlockOp::FillBits => continue,
            _ => return None,
        }
        if slowness(leaf, elements.stores.tier) > 0 || !choose::exists(leaf.op) {
            return None;
        }
    }
    Some(leaves)
}

/// How a side of a kernel call is brought to it, or taken from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Direct,
    /// By an op that makes elements of `seen` bits, which is what the kernel sees, of
    /// those of `array` bits, or the other way round.
    Staged {
        op: BlockOp,
        array: u32,
        seen: u32,
    },
}

impl Way {
    /// The ways for elements of so many bits, the best first.
    fn all(bits: u32, most_first: bool, widen_or_narrow: BlockOp) -> Vec<Way> {
        let widened = Way::Staged { op: widen_or_narrow, array: bits, seen: 8 };
        // Kernels take the first element to have the least significant bits.
        let reversed = Way::Staged { op: BlockOp::Reverse { bits }, array: 8, seen: 8 };
        match (bits < 8, most_first) {
            (false, _) => vec![Way::Direct],
            (true, false) => vec![Way::Direct, widened],
            (true, true) => vec![reversed, widened],
        }
    }

    /// Whether a call can go through so much scratch memory.
    pub(super) fn fits(self, scratch_bytes: usize) -> bool {
        match self {
            Way::Direct => true,
            Way::Staged { .. } => scratch_bytes <= SCRATCH_BYTES,
        }
    }

    /// How many runs there is room for that are long in the array.
    pub(super) fn long_runs(self) -> Option<u64> {
        let Way::Staged { array, seen, .. } = self else { return None };
        let run = scaled(LONG_RUN_BITS, seen, array)?;
        u64::try_from(8 * SCRATCH_BYTES).ok()?.checked_div(run)
    }

    /// The bytes of an element as kernels see it.
    pub(super) fn seen_bytes(self) -> Option<usize> {
        let Way::Staged { seen, .. } = self else { return None };
        usize::try_from(seen / 8).ok()
    }

    pub(super) fn is_staged(self) -> bool {
        matches!(self, Way::Staged { .. })
    }

    /// A place or a step as the kernel sees it, from one in the array, in bits. `None`
    /// where it is between elements.
    fn seen(self, at: u64) -> Option<u64> {
        match self {
            Way::Direct => Some(at),
            Way::Staged { array, seen, .. } => scaled(at, seen, array),
        }
    }
}

/// A number modulo 2^64 that may be negative, times one number and by another one.
pub(super) fn scaled(at: u64, times: u32, by: u32) -> Option<u64> {
    let product = i128::from(at.cast_signed()) * i128::from(times);
    let by = i128::from(by);
    if product % by != 0 {
        return None;
    }
    i64::try_from(product / by).ok().map(i64::cast_unsigned)
}

/// A step of so many bytes, as a kernel sees it, in bits of the array.
pub(super) fn in_array(bytes: usize, array: u32, seen: u32) -> Option<u64> {
    let bits = i64::try_from(bytes.cast_signed()).ok()?.checked_mul(8)?;
    scaled(bits.cast_unsigned(), array, seen)
}

/// Padding that is filled by itself has so many bytes at least: a word.
const LEAST_FILL: usize = 4;

/// Runs of fewer bits that begin within bytes are taken to be as slow as elements that are widened and moved one by one.
const LEAST_RUN_BITS: usize = 8 * 16;

/// And of fewer elements, which are widened or narrowed alone, as slow as elements that are moved one by one.
const LEAST_RUN_OF_BYTES: usize = 16;

fn slowness(leaf: &Leaf, tier: Tier) -> usize {
    match leaf.op {
        BlockOp::Bits { .. } => 3,
        BlockOp::CopyBits { .. } if leaf.strip.columns < LEAST_RUN_BITS => 2,
        BlockOp::NarrowBits { .. } | BlockOp::WidenBits { .. }
            if leaf.strip.columns < LEAST_RUN_OF_BYTES =>
        {
            1
        }
        op if leaf.strip.is_reversed_run(op) => 0,
        BlockOp::Strided { .. } if leaf.stages.are_there() => 2,
        BlockOp::Strided { .. } => 1,
        op if leaf.strip.is_below_vectors(op, tier) => 1,
        _ => 0,
    }
}

/// Whether a kernel works on both sides, and not element by element.
pub(super) fn is_direct(leaf: &Leaf, tier: Tier) -> bool {
    leaf.hop.is_none() && !leaf.stages.are_there() && slowness(leaf, tier) == 0
}

/// How each side of a kernel call is brought to it, or taken from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Ways {
    pub(super) source: Way,
    pub(super) destination: Way,
}

impl Ways {
    /// Kernels work on both.
    pub(super) const DIRECT: Ways = Ways { source: Way::Direct, destination: Way::Direct };

    /// Those in which one side alone, of which several elements are in a byte, has what kernels know.
    pub(super) fn of_packed(side: Side, elements: &Elements, order: MostFirst) -> Vec<Ways> {
        let Elements { source_bits, destination_bits, .. } = *elements;
        let [widen, narrow] = widen_and_narrow(elements, order);
        let bits = side.of(source_bits, destination_bits);
        let most_first = side.of(order.source, order.destination);
        let all = Way::all(bits, most_first, side.of(widen, narrow)).into_iter();
        // Between bytes and elements below a byte these are widened or narrowed anyway.
        let is_of_use = |way: &Way| match way {
            Way::Direct => false,
            Way::Staged { op: BlockOp::Reverse { .. }, .. } => source_bits == destination_bits,
            Way::Staged { .. } => true,
        };
        let ways = all.filter(is_of_use).map(|way| match side {
            Side::Source => Ways { source: way, ..Ways::DIRECT },
            Side::Destination => Ways { destination: way, ..Ways::DIRECT },
        });
        ways.filter(|ways| ways.know(order)).collect()
    }

    /// Whether stages see to the order of elements within bytes where kernels do not know it.
    fn know(self, order: MostFirst) -> bool {
        order.source <= self.source.is_staged() && order.destination <= self.destination.is_staged()
    }

    /// For a pass into scratch memory, whose elements are as kernels see them, and one out of it.
    pub(super) fn of_passes(self) -> [Ways; 2] {
        [Ways { destination: Way::Direct, ..self }, Ways { source: Way::Direct, ..self }]
    }

    /// Whether a side has numbers of another type.
    pub(super) fn convert(self) -> bool {
        let converts = |way| matches!(way, Way::Staged { op: BlockOp::Convert { .. }, .. });
        converts(self.source) || converts(self.destination)
    }

    /// A nest as kernels see it.
    fn nest(self, nest: &Nest) -> Option<Nest> {
        let Ways { source, destination } = self;
        let loops = nest.loops.iter().map(|l| {
            let (source, destination) = (source.seen(l.source)?, destination.seen(l.destination)?);
            Some(Loop { source, destination, ..*l })
        });
        Some(Nest {
            source: source.seen(nest.source)?,
            destination: destination.seen(nest.destination)?,
            loops: loops.collect::<Option<_>>()?,
        })
    }

    /// And what they see of its elements.
    fn elements(self, elements: &Elements) -> Option<Elements> {
        let mut as_seen = Elements { is_staged: self != Ways::DIRECT, ..*elements };
        if let Way::Staged { array, seen, op } = self.source {
            if !matches!(op, BlockOp::Reverse { .. }) {
                as_seen.source_bits = seen;
            }
            as_seen.source_end =
                (elements.source_end / u64::from(array)).checked_mul(u64::from(seen))?;
        }
        if let Way::Staged { seen, op, .. } = self.destination
            && !matches!(op, BlockOp::Reverse { .. })
        {
            // The stage sees to truth.
            (as_seen.destination_bits, as_seen.truth) = (seen, false);
        }
        Some(as_seen)
    }

    /// Has the places of a leaf count in the arrays.
    fn scale_places(self, leaf: &mut Leaf) -> Option<()> {
        if matches!(leaf.op, BlockOp::Fill | BlockOp::FillBits) && self.destination.is_staged() {
            return None;
        }
        if let Way::Staged { array, seen, .. } = self.source {
            leaf.scale_places(true, array, seen)?;
        }
        if let Way::Staged { array, seen, .. } = self.destination {
            leaf.scale_places(false, array, seen)?;
        }
        Some(())
    }

    /// A nest without the padding that no stage takes to its place, and the kernels which fill that. `None` if they fill
    /// parts of words, one after the other, and not all before the data.
    fn without_padding<'a>(
        self,
        nest: &'a Nest,
        elements: &Elements,
    ) -> Option<(Cow<'a, Nest>, Vec<Leaf>)> {
        if !self.destination.is_staged() || !nest.loops.iter().any(|l| l.is_padded()) {
            return Some((Cow::Borrowed(nest), Vec::new()));
        }
        let upwards = nest.clone().upwards();
        let bits = elements.destination_bits.into();
        let padding = choose::paddings(&upwards.loops, &[], upwards.destination, bits, elements)?;
        let is_long = |leaf: &Leaf| leaf.op == BlockOp::Fill && leaf.strip.columns >= LEAST_FILL;
        if !padding.iter().all(is_long) {
            return None;
        }
        let loops = upwards.loops.into_iter().map(|l| Loop { full: l.extent, ..l }).collect();
        Some((Cow::Owned(Nest { loops, ..upwards }), padding))
    }

    /// The leaves of a nest that `passes` makes of what kernels see, with their places in the arrays. Passes count from where
    /// they begin.
    fn placed(
        self,
        nest: &Nest,
        elements: &Elements,
        passes: impl Fn(&Nest, &Elements, Ways) -> Option<Vec<Leaf>>,
    ) -> Option<Vec<Leaf>> {
        let (nest, padding) = self.without_padding(nest, elements)?;
        let mut leaves = passes(&self.nest(&nest)?, &self.elements(elements)?, self)?;
        for leaf in &mut leaves {
            self.scale_places(leaf)?;
        }
        leaves.extend(padding);
        Some(leaves)
    }

    /// The leaves of a nest.
    fn leaves(self, nest: &Nest, elements: &Elements) -> Option<Vec<Leaf>> {
        self.staged(choose::data(self.nest(nest)?, &self.elements(elements)?)?, elements.stores)
    }

    /// The same, with padding that is filled by itself.
    fn leaves_beside_padding(self, nest: &Nest, elements: &Elements) -> Option<Vec<Leaf>> {
        let (nest, padding) = self.without_padding(nest, elements)?;
        let mut leaves = self.leaves(&nest, elements)?;
        leaves.extend(padding);
        Some(leaves)
    }

    /// Leaves of what kernels see, behind or before stages that make it so.
    pub(super) fn staged(self, of_seen: Vec<Leaf>, stores: Stores) -> Option<Vec<Leaf>> {
        if self == Ways::DIRECT {
            return Some(of_seen);
        }
        let mut leaves = Vec::new();
        for leaf in of_seen {
            match leaf.op {
                BlockOp::Bits { .. } | BlockOp::CopyBits { .. } => return None,
                // Padding is no matter of stages; but of a staged side, its places are.
                BlockOp::Fill | BlockOp::FillBits if self.destination.is_staged() => return None,
                BlockOp::Fill | BlockOp::FillBits => leaves.push(leaf),
                _ => {
                    if let Some(leaf) = leaf.converted(self, stores) {
                        leaves.push(leaf);
                        continue;
                    }
                    for mut leaf in small(leaf, self)? {
                        leaf.stage_source(self.source)?;
                        leaf.stage_destination(self.destination)?;
                        leaves.push(leaf);
                    }
                }
            }
        }
        Some(leaves)
    }
}
