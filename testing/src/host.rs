//! Host arrays, as whoever has only their strides sees them.

use relayout::{BitOrder, Conversion, ElementType, Host, Layout, Plan, PlanBuilder, Shape, Tier};

use crate::Choices;

/// A host array, and where its elements are.
pub struct HostModel {
    /// What the library is told.
    pub host: Host,
    /// Bytes of its buffer, of which there may be some behind its last element.
    pub length: u64,
    /// Whether it is the whole of its buffer.
    pub is_dense: bool,
    /// Where the first element is, and what the dimensions add to that, in bits.
    start: i128,
    strides: Vec<i128>,
    pub(crate) element_bits: u32,
    most_first: bool,
    /// What converts a single element, which is not done here.
    convert: Option<Plan>,
}

impl HostModel {
    /// One with these strides in bytes.
    #[must_use]
    pub fn strided(shape: &Shape, strides: &[i64], start: u64, behind: u64) -> Self {
        let bounds = shape.bounds().unwrap();
        let bits = 8 * shape.element_type().host_bytes();
        let bit_strides = strides.iter().map(|&stride| 8 * i128::from(stride)).collect();
        let host = Host::strided(strides).starting_at(start);
        let model = HostModel::new(host, 8 * i128::from(start), bit_strides, bits, &bounds);
        HostModel { length: model.length + behind, is_dense: false, ..model }
    }

    fn new(host: Host, start: i128, strides: Vec<i128>, bits: u32, bounds: &[u64]) -> Self {
        let mut model = HostModel {
            host,
            length: 0,
            is_dense: true,
            start,
            strides,
            element_bits: bits,
            most_first: false,
            convert: None,
        };
        model.length = u64::try_from(model.reach(bounds).1).unwrap().div_ceil(8);
        model
    }

    /// A host array for an array, or a window of one, with these bounds, whose image has
    /// elements of this type and so many bits. One that is read may have elements that
    /// share memory.
    pub fn made_up(
        choices: &mut Choices<'_>,
        shape: &Shape,
        bounds: &[u64],
        is_source: bool,
    ) -> Self {
        let convert = choices.one_in(4).then(|| conversion(choices, shape, is_source)).flatten();
        let element_type = convert.as_ref().map_or(shape.element_type(), |(t, ..)| *t);
        let packable = matches!(element_type.bits(), 1 | 2 | 4);
        let packed = (packable && choices.one_in(2))
            .then(|| *choices.pick(&[BitOrder::LeastFirst, BitOrder::MostFirst]));
        let bits = match packed {
            Some(_) => element_type.bits(),
            None => 8 * element_type.host_bytes(),
        };
        let kind = choices.below(4);
        let (mut host, mut start, strides) = match kind {
            0 => (Host::dense(), 0, dense_strides(bounds, bits)),
            1 => {
                let start: Vec<u64> = bounds.iter().map(|_| choices.below(3)).collect();
                let behind: Vec<u64> = bounds.iter().map(|_| choices.below(3)).collect();
                let whole: Vec<u64> =
                    (0..bounds.len()).map(|d| bounds[d] + start[d] + behind[d]).collect();
                let strides = dense_strides(&whole, bits);
                let at =
                    start.iter().zip(&strides).map(|(&i, stride)| i128::from(i) * stride).sum();
                (Host::window(whole, start), at, strides)
            }
            _ => nested_strides(choices, bounds, bits, packed.is_some(), is_source),
        };
        let mut is_dense = kind == 0;
        if kind <= 1 && choices.one_in(2) {
            let ahead = choices.below(20);
            is_dense &= ahead == 0;
            host = host.starting_at(ahead);
            start += 8 * i128::from(ahead);
        }
        if let Some(order) = packed {
            host = host.packed(order);
        }
        let convert = convert.map(|(element_type, is_rest, plan)| {
            host = if is_rest { host.clone().of_f64_rest() } else { host.clone().of(element_type) };
            plan
        });
        // What is not dense may have something behind it.
        let behind = if is_dense { 0 } else { choices.below(2) * choices.below(20) };
        let model = HostModel::new(host, start, strides, bits, bounds);
        HostModel {
            length: model.length + behind,
            is_dense,
            most_first: packed == Some(BitOrder::MostFirst),
            convert,
            ..model
        }
    }

    /// The first bit of its elements, and the first one behind them; of no elements 0.
    fn reach(&self, bounds: &[u64]) -> (i128, i128) {
        reach(self.start, &self.strides, self.element_bits, bounds)
    }

    fn bit(&self, index: &[u64]) -> u64 {
        let at = index.iter().zip(&self.strides).map(|(&i, stride)| i128::from(i) * stride);
        u64::try_from(self.start + at.sum::<i128>()).unwrap()
    }

    /// The element at an index, as it is in an image in so many bits.
    pub(crate) fn get(&self, buffer: &[u8], index: &[u64], image_bits: u32) -> u128 {
        let value = get(buffer, self.bit(index), self.element_bits, self.most_first);
        self.converted(value, image_bits)
    }

    /// Puts an element of an image at an index.
    pub(crate) fn put(&self, buffer: &mut [u8], index: &[u64], value: u128) {
        let value = self.converted(value, self.element_bits);
        put(buffer, self.bit(index), self.element_bits, self.most_first, value);
    }

    fn converted(&self, value: u128, bits: u32) -> u128 {
        let Some(plan) = &self.convert else { return value };
        let source = value.to_le_bytes();
        let mut destination = [0; 16];
        let bytes = plan.destination_bytes() as usize;
        assert_eq!(8 * bytes, bits as usize);
        plan.run(&source[..plan.source_bytes() as usize], &mut destination[..bytes]).unwrap();
        u128::from_le_bytes(destination)
    }

    /// Puts this byte where the last byte of a dense packed array holds no element.
    pub(crate) fn pad_end(&self, buffer: &mut [u8], bounds: &[u64], byte: u8) {
        let end = self.reach(bounds).1 as u64;
        for at in end..end.next_multiple_of(8) {
            let value = byte >> (place(at, 1, self.most_first) % 8) & 1;
            put(buffer, at, 1, self.most_first, value.into());
        }
    }
}

/// Where elements at strides begin and end, in bits.
pub(crate) fn reach(start: i128, strides: &[i128], bits: u32, bounds: &[u64]) -> (i128, i128) {
    if bounds.contains(&0) {
        return (start, 0);
    }
    let (mut first, mut last) = (start, start);
    for (&stride, &bound) in strides.iter().zip(bounds) {
        let reach = stride * i128::from(bound - 1);
        if reach < 0 { first += reach } else { last += reach }
    }
    (first, last + i128::from(bits))
}

pub(crate) fn dense_strides(bounds: &[u64], bits: u32) -> Vec<i128> {
    let mut stride = i128::from(bits);
    let mut strides = vec![0; bounds.len()];
    for (entry, &bound) in strides.iter_mut().zip(bounds).rev() {
        *entry = stride;
        stride *= i128::from(bound);
    }
    strides
}

/// Each dimension beyond those before it, in any order and direction. Of what is read,
/// some beside or upon each other.
fn nested_strides(
    choices: &mut Choices<'_>,
    bounds: &[u64],
    bits: u32,
    is_packed: bool,
    is_source: bool,
) -> (Host, i128, Vec<i128>) {
    let rank = bounds.len();
    let mut order = choices.order(rank);
    let mut strides = vec![0; rank];
    let mut span = i128::from(bits.max(8));
    let mut given = rank;
    if is_packed && rank > 0 {
        given = rank - 1;
        order.retain(|&d| d != given);
        strides[given] = i128::from(bits);
        span = to_bytes((i128::from(bounds[given]) * strides[given]).max(1));
    }
    for d in order {
        strides[d] = span + 8 * i128::from(choices.below(3) * choices.below(5));
        span = to_bytes(span + strides[d] * i128::from(bounds[d].saturating_sub(1)));
        match choices.below(4) {
            1 => strides[d] = -strides[d],
            2 if is_source => strides[d] = 8 * (i128::from(choices.below(40)) - 20),
            3 if is_source => strides[d] = 0,
            _ => {}
        }
    }
    let ahead = 8 * i128::from(choices.below(3) * choices.below(9));
    let start = ahead - reach(0, &strides, bits, bounds).0;
    let bytes: Vec<i64> = strides[..given].iter().map(|&stride| (stride / 8) as i64).collect();
    (Host::strided(bytes).starting_at((start / 8) as u64), start, strides)
}

fn to_bytes(bits: i128) -> i128 {
    (bits + 7) / 8 * 8
}

/// Any strides in bytes and any start, which need not be within any buffer, with the
/// strides in bits.
pub fn wild_strides(choices: &mut Choices<'_>, rank: usize) -> (Host, i128, Vec<i128>) {
    let count = if choices.one_in(16) { choices.below(5) as usize } else { rank };
    let strides: Vec<i64> = (0..count)
        .map(|_| {
            let magnitude = match choices.below(4) {
                0..=2 => choices.below(70) as i64,
                _ => choices.number().cast_signed(),
            };
            if choices.one_in(3) { magnitude.wrapping_neg() } else { magnitude }
        })
        .collect();
    let start = if choices.one_in(4) { choices.number() } else { choices.below(500) };
    let bits = strides.iter().map(|&stride| 8 * i128::from(stride)).collect();
    (Host::strided(strides).starting_at(start), 8 * i128::from(start), bits)
}

/// The type of a host array whose elements are converted, whether it is what the high
/// part of a pair leaves, and a plan for a single element.
fn conversion(
    choices: &mut Choices<'_>,
    shape: &Shape,
    is_source: bool,
) -> Option<(ElementType, bool, Plan)> {
    let image = shape.element_type();
    let types: Vec<ElementType> = ElementType::ALL
        .iter()
        .copied()
        .filter(|&host| {
            let (from, to) = if is_source { (host, image) } else { (image, host) };
            Conversion::between(from, to).is_some()
        })
        .collect();
    if types.is_empty() {
        return None;
    }
    let element_type = *choices.pick(&types);
    let is_rest = is_source && element_type == ElementType::F64 && choices.one_in(2);
    let host = match is_rest {
        true => Host::dense().of_f64_rest(),
        false => Host::dense().of(element_type),
    };
    let builder = PlanBuilder::new().tier(Tier::SCALAR).host(host);
    let layout = Layout::row_major(1).unwrap().with_element_bits(shape.element_bits().into());
    let one = Shape::new(shape.element_type(), [1], layout.unwrap()).unwrap();
    let plan = if is_source { builder.pack(&one) } else { builder.unpack(&one) };
    plan.ok().map(|plan| (element_type, is_rest, plan))
}

/// The element of so many bits at a bit.
pub(crate) fn get(buffer: &[u8], at: u64, bits: u32, most_first: bool) -> u128 {
    (0..u64::from(bits)).fold(0, |value, i| {
        let bit = place(at, bits, most_first) + i;
        value | u128::from(buffer[(bit / 8) as usize] >> (bit % 8) & 1) << i
    })
}

pub(crate) fn put(buffer: &mut [u8], at: u64, bits: u32, most_first: bool, value: u128) {
    for i in 0..u64::from(bits) {
        let bit = place(at, bits, most_first) + i;
        let byte = &mut buffer[(bit / 8) as usize];
        *byte = *byte & !(1 << (bit % 8)) | ((value >> i & 1) as u8) << (bit % 8);
    }
}

fn place(at: u64, bits: u32, most_first: bool) -> u64 {
    match most_first && bits < 8 {
        true => at / 8 * 8 + (8 - at % 8 - u64::from(bits)),
        false => at,
    }
}
