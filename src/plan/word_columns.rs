//! Columns that words have several of, where their number is no multiple of that: `bf16[1000,3]` in words of two.
//!
//! Whole words and the rest of a row are regions of their own, because their loops differ. Where the array
//! is dense, or rows are short, or elements are narrower than the bytes of the host, one kernel does both.

use relayout_kernels::{BlockOp, has_word_columns};

use super::choose::{self, Elements, Leaf, WORD_BITS as WORD};
use super::nest::{Loop, Nest};

/// Rows that are not dense have a word and more, but no more words than this, as those are transposed as such; and there
/// are as many of them as a vector has words.
const MOST_WORDS: u64 = 16;
const LEAST_ROWS: u64 = 16;

/// Without masks, whole words are turned in vectors of so many, of as many rows at least.
const LEAST_WORDS: u64 = 4;

/// The kernels of the rest of each row, and of the whole words before it, if there are some.
pub(super) fn leaves(whole: Option<&Nest>, rest: &Nest, elements: &Elements) -> Option<Vec<Leaf>> {
    let Elements { source_bits, destination_bits, stores, .. } = *elements;
    let (packs, unpacks) = match (source_bits, destination_bits) {
        (8, 8) | (16, 16) => (true, true),
        (8, ..8) => (true, false),
        (..8, 8) => (false, true),
        _ => return None,
    };
    if !stores.tier.shuffles() {
        return None;
    }
    let pack = || Rows::of(whole, rest, elements)?.pack(elements);
    let unpack = || {
        let mut loops = whole.into_iter().chain([rest]).flat_map(|nest| &nest.loops);
        if loops.any(|l| l.is_padded()) {
            return None;
        }
        let whole = whole.map(mirrored);
        Rows::of(whole.as_ref(), &mirrored(rest), elements)?.unpack(elements)
    };
    let packed = if packs { pack() } else { None };
    packed.or_else(|| if unpacks { unpack() } else { None })
}

/// The same nest, its source and its destination in each other's place.
fn mirrored(nest: &Nest) -> Nest {
    let mut nest = nest.clone();
    std::mem::swap(&mut nest.source, &mut nest.destination);
    nest.loops.iter_mut().for_each(|l| std::mem::swap(&mut l.source, &mut l.destination));
    nest
}

/// A nest that packs words, each of columns of one row.
struct Words {
    columns: Loop,
    /// Those of a row.
    words: Loop,
    rows: Loop,
    others: Vec<Loop>,
}

impl Words {
    /// Of elements of so many bits in the array, and in the image.
    fn of(nest: &Nest, host_bits: u64, bits: u64) -> Option<Words> {
        let mut others: Vec<Loop> = nest.loops.iter().copied().filter(|l| l.full > 1).collect();
        let mut take =
            |which: &dyn Fn(&Loop) -> bool| others.iter().position(which).map(|i| others.remove(i));
        let columns = take(&|l| (l.source, l.destination) == (host_bits, bits));
        let rows = take(&|l| l.destination == WORD)?;
        let row_step = (WORD / bits).checked_mul(host_bits)?;
        let words = take(&|l| l.source == row_step);
        Some(Words {
            columns: columns.unwrap_or(Loop::new(1, host_bits, bits)),
            words: words.unwrap_or(Loop::new(1, row_step, 0)),
            rows,
            others,
        })
    }
}

/// Rows, and where the words of each go when they are packed.
struct Rows {
    source: u64,
    destination: u64,
    ways: u64,
    bits: u64,
    columns: u64,
    /// The last word of each row has all its padding.
    is_full: bool,
    words: Loop,
    rows: Loop,
    others: Vec<Loop>,
}

impl Rows {
    fn of(whole: Option<&Nest>, rest: &Nest, elements: &Elements) -> Option<Rows> {
        let Elements { source_bits, destination_bits, stores, .. } = *elements;
        let bits = u64::from(source_bits.min(destination_bits));
        let host_bits = u64::from(source_bits.max(destination_bits));
        let ways = WORD / bits;
        let last = Words::of(rest, host_bits, bits)?;
        let (mut count, mut first, mut stride) = (0, rest, last.words.destination);
        if let Some(nest) = whole {
            let all = Words::of(nest, host_bits, bits)?;
            (count, first) = (all.words.extent, nest);
            let apart = rest.destination.wrapping_sub(nest.destination);
            stride = apart.checked_div(count)?;
            let goes_on = |words: Loop| words.full == 1 || words.destination == stride;
            let is_next = Some(rest.source.wrapping_sub(nest.source))
                == count.checked_mul(ways)?.checked_mul(host_bits)
                && stride.checked_mul(count) == Some(apart)
                && goes_on(all.words)
                && goes_on(last.words);
            let are_whole = (all.columns.extent, all.columns.full) == (ways, ways)
                && !all.words.is_padded()
                && (all.rows, all.others) == (last.rows, last.others.clone());
            if !is_next || !are_whole {
                return None;
            }
        }
        let columns = count.checked_mul(ways)?.checked_add(last.columns.extent)?;
        let row = columns.checked_mul(bits)?;
        let has_masks = stores.tier.has_masks() && last.rows.extent >= LEAST_ROWS;
        let has_kernel = if bits < host_bits {
            // Rows of less than a word have other ways.
            count >= LEAST_WORDS && last.rows.extent >= LEAST_WORDS || has_masks && count > 0
        } else {
            let is_dense = last.rows.source == row && has_word_columns(columns);
            is_dense || has_masks && (WORD + 1..=MOST_WORDS * WORD).contains(&row)
        };
        if last.words.extent > 1 || last.columns.extent > ways || !has_kernel {
            return None;
        }
        let full = count.checked_add(last.words.full)?;
        Some(Rows {
            source: first.source,
            destination: first.destination,
            ways,
            bits,
            columns,
            is_full: last.columns.full == ways,
            words: Loop { full, ..Loop::new(count + 1, 0, stride) },
            rows: last.rows,
            others: last.others,
        })
    }

    fn pack(self, elements: &Elements) -> Option<Vec<Leaf>> {
        let (ways, bits) = (u32::try_from(self.ways).ok()?, u32::try_from(self.bits).ok()?);
        let op = if elements.source_bits > bits {
            BlockOp::NarrowTranspose { bits, truth: elements.truth }
        } else {
            BlockOp::InterleaveColumns { ways, bits }
        };
        if !self.is_full || !choose::exists(op) {
            return None;
        }
        let Rows { source, destination, bits, columns, words, rows, others, .. } = self;
        // Padding behind the rows, the words and all else; that within words is written with them.
        let word = Loop::new(self.ways, 0, bits);
        let loops: Vec<Loop> = others.iter().copied().chain([rows, words]).collect();
        let padding = choose::paddings(&loops, &[word], destination, bits, elements)?;
        let nest = Nest { source, destination, loops: others };
        let leaf = choose::rows_of_words(op, nest, rows, columns, words, elements)?;
        Some([vec![leaf], padding].concat())
    }

    /// The other way, of the mirrored nests.
    fn unpack(self, elements: &Elements) -> Option<Vec<Leaf>> {
        let (ways, bits) = (u32::try_from(self.ways).ok()?, u32::try_from(self.bits).ok()?);
        let op = if elements.destination_bits > bits {
            BlockOp::TransposeWiden { bits }
        } else {
            BlockOp::DeinterleaveColumns { ways, bits }
        };
        // Words are read as a whole, whatever is in them besides.
        let mut places = self.others.iter().map(|l| l.destination);
        let is_at_word = |at: u64| at.is_multiple_of(WORD);
        let are_readable = is_at_word(self.destination)
            && is_at_word(self.words.destination)
            && is_at_word(elements.source_end)
            && places.all(is_at_word);
        if !choose::exists(op) || !are_readable {
            return None;
        }
        let Rows { source, destination, columns, words, rows, others, .. } = self;
        let nest = mirrored(&Nest { source, destination, loops: others });
        let leaf = choose::rows_of_words(op, nest, rows, columns, words, elements)?;
        Some(vec![leaf])
    }
}
