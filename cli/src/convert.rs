//! `relayout pack`, `unpack` and `convert`: arrays into images and back.

use std::path::{Path, PathBuf};

use clap::Args;
use npyz::{Order, TypeChar};
use relayout::{Layout, Shape};
use serde_json::json;

use crate::explain::grouped;
use crate::failure::Failure;
use crate::files::{self, Bytes, Input, Output};
use crate::{element, npy, parse, plan};

/// What the three commands share.
#[derive(Args)]
struct OutputArguments {
    /// Where the result goes; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Go back from the result and compare
    #[arg(long)]
    verify: bool,
    /// Replace the output if it exists
    #[arg(long)]
    force: bool,
    /// Report as a JSON object
    #[arg(long)]
    json: bool,
}

/// Write the image of a NumPy array
///
/// The file may be in C or Fortran order, little- or big-endian, of version 1
/// to 3. bf16 and f8 stand in it as NumPy stores them (V2, V1) or as unsigned
/// integers of that width, types below a byte one value a byte.
#[derive(Args)]
#[command(after_help = "\
Examples:
  relayout pack w.npy --to '{1,0:T(8,128)(2,1)}' -o w.image --verify
  relayout pack - --to 's4[64,300]{1,0:T(8,128)(8,1)E(4)}' -o - < q.npy > q.image")]
pub(crate) struct PackArguments {
    /// A NumPy file (.npy)
    #[arg(value_name = "IN.npy")]
    input: PathBuf,
    /// What the image shall be; a layout alone takes type and bounds from the file
    #[arg(long, value_name = "SHAPE|LAYOUT")]
    to: String,
    #[command(flatten)]
    output: OutputArguments,
}

/// Write the NumPy array whose image is given
///
/// bf16 and f8 are written as NumPy stores them (V2, V1), types below a byte
/// one value a byte, signed ones as int8.
#[derive(Args)]
#[command(after_help = "\
Examples:
  relayout unpack w.image --from 'bf16[100,300]{1,0:T(8,128)(2,1)}' -o w.npy")]
pub(crate) struct UnpackArguments {
    /// The bytes of an image
    #[arg(value_name = "IMAGE")]
    input: PathBuf,
    /// What the image is
    #[arg(long, value_name = "SHAPE")]
    from: String,
    #[command(flatten)]
    output: OutputArguments,
}

/// Write an array's image in one layout from that in another
#[derive(Args)]
#[command(after_help = "\
Examples:
  relayout convert a.image --from 'bf16[64,300]{1,0:T(8,128)(2,1)}' \\
      --to '{1,0:T(16,128)(2,1)}' -o b.image")]
pub(crate) struct ConvertArguments {
    /// The bytes of an image
    #[arg(value_name = "IMAGE")]
    input: PathBuf,
    /// What the image is
    #[arg(long, value_name = "SHAPE")]
    from: String,
    /// What it shall be; a layout alone keeps type and bounds
    #[arg(long, value_name = "SHAPE|LAYOUT")]
    to: String,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn pack(arguments: &PackArguments) -> Result<(), Failure> {
    let target = Target::parse(&arguments.to)?;
    let output = Output::new(&arguments.output.output, arguments.output.force)?;
    let array = npy::read(Input::open(&arguments.input)?)?;
    let to = target.for_array(&arguments.input, &array)?;
    let dimensions = 0..array.bounds.len();
    let minor_to_major: Vec<usize> = match array.order {
        Order::C => dimensions.rev().collect(),
        Order::Fortran => dimensions.collect(),
    };
    let from = to.with_layout(Layout::new(minor_to_major)?)?;

    let (element_type, mut host) = (to.element_type(), array.data);
    let lost = element::reduce(element_type, array.type_str.type_char(), &mut host);
    if let Some((k, before)) = lost.filter(|_| arguments.output.verify) {
        return Err(Failure::work(format!(
            "the round trip would not be exact: element {k} of {} is {before:#04x} in its byte, \
             and {}",
            files::name(&arguments.input),
            element::range(element_type)
        )));
    }
    let image = converted(&from, &to, &host)?;
    if arguments.output.verify {
        let back = converted(&to, &from, &image)?;
        if let Some(i) = (0..host.len()).find(|&i| host[i] != back[i]) {
            let (host, back) = (host[i], back[i]);
            return Err(inexact(&arguments.input, "data byte", i, host, back));
        }
    }
    let done = Done { what: "packed", input: &arguments.input, from: &from, to: &to };
    done.deliver(host.len(), &[], &image, &output, &arguments.output)
}

pub(crate) fn unpack(arguments: &UnpackArguments) -> Result<(), Failure> {
    let from: Shape = arguments.from.parse()?;
    let to = from.in_host_layout();
    let output = Output::new(&arguments.output.output, arguments.output.force)?;
    let image = read_image(&arguments.input, &from)?;

    let mut data = converted(&from, &to, &image)?;
    element::reduce(to.element_type(), TypeChar::RawData, &mut data);
    element::extend_sign(to.element_type(), &mut data);
    if arguments.output.verify {
        verify_image(&arguments.input, &from, &to, &image, &data)?;
    }
    let header = npy::header(element::to_numpy(to.element_type())?, &to.bounds()?)?;
    let done = Done { what: "unpacked", input: &arguments.input, from: &from, to: &to };
    done.deliver(image.len(), &header, &data, &output, &arguments.output)
}

pub(crate) fn convert(arguments: &ConvertArguments) -> Result<(), Failure> {
    let from: Shape = arguments.from.parse()?;
    let to = match Target::parse(&arguments.to)? {
        Target::Shape(shape) => shape,
        Target::Layout(layout) => from.with_layout(layout)?,
    };
    from.check_same_array(&to).map_err(Failure::usage)?;
    let output = Output::new(&arguments.output.output, arguments.output.force)?;
    let image = read_image(&arguments.input, &from)?;
    let result = converted(&from, &to, &image)?;
    if arguments.output.verify {
        verify_image(&arguments.input, &from, &to, &image, &result)?;
    }
    let done = Done { what: "converted", input: &arguments.input, from: &from, to: &to };
    done.deliver(image.len(), &[], &result, &output, &arguments.output)
}

/// What `--to` says: a whole shape, or the layout alone.
enum Target {
    Shape(Shape),
    Layout(Layout),
}

impl Target {
    fn parse(text: &str) -> Result<Self, Failure> {
        match (text.parse(), text.parse()) {
            (Ok(shape), _) => Ok(Target::Shape(shape)),
            (_, Ok(layout)) => Ok(Target::Layout(layout)),
            (Err(shape), Err(layout)) => Err(parse::further(shape, layout).into()),
        }
    }

    /// The shape for the array of a NumPy file, which must not disagree with it.
    fn for_array(self, path: &Path, array: &npy::Array) -> Result<Shape, Failure> {
        let file = files::name(path);
        let shape = match self {
            Target::Shape(shape) => shape,
            Target::Layout(layout) => {
                let element_type = element::from_numpy(&array.type_str)?;
                let array = Shape::row_major(element_type, &array.bounds)?;
                return Ok(array.with_layout(layout)?);
            }
        };
        let element_type = shape.element_type();
        if !element::suits(element_type, &array.type_str) {
            let written = element::to_numpy(element_type)?;
            return Err(Failure::work(format!(
                "{file} holds elements of NumPy type {}, --to says {element_type}, \
                 for which that would be {written}",
                array.type_str
            )));
        }
        let bounds = shape.bounds()?;
        if bounds != array.bounds {
            return Err(Failure::work(format!(
                "{file} has bounds {:?}, --to says {bounds:?}",
                array.bounds
            )));
        }
        Ok(shape)
    }
}

fn read_image(path: &Path, shape: &Shape) -> Result<Bytes, Failure> {
    let bytes = shape.sizes()?.image_bytes;
    Input::open(path)?.read_rest(bytes, &shape.to_string())
}

/// The image in layout `to` of the array whose image in layout `from` is given.
fn converted(from: &Shape, to: &Shape, source: &[u8]) -> Result<Bytes, Failure> {
    let plan = plan::builder()?.between(from, to).map_err(Failure::work)?;
    let mut image = files::allocate(to.sizes()?.image_bytes, &to.to_string())?;
    files::with_progress(&format!("converting to {to}"), || plan.run(source, &mut image))
        .map_err(Failure::work)?;
    Ok(image)
}

/// The failure of a verification: a byte of an input that came back as another.
fn inexact(path: &Path, what: &str, at: usize, before: u8, back: u8) -> Failure {
    Failure::work(format!(
        "the round trip is not exact: {what} {at} of {} is {before:#04x}, and came back as \
         {back:#04x}",
        files::name(path)
    ))
}

/// Goes back from `result` in layout `to` and compares with `image`, in layout
/// `from`, wherever that holds an element.
fn verify_image(
    path: &Path,
    from: &Shape,
    to: &Shape,
    image: &[u8],
    result: &[u8],
) -> Result<(), Failure> {
    let back = converted(to, from, result)?;
    // Where the image holds elements, not padding: ones that went the same way.
    let mut ones = files::allocate(to.sizes()?.image_bytes, &to.to_string())?;
    ones.fill(0xff);
    let elements = converted(to, from, &ones)?;

    let width = from.element_bits().min(8);
    let mask = 0xff >> (8 - width);
    let same = |i: usize| {
        (0..8).step_by(usize::try_from(width).unwrap_or(8)).all(|shift| {
            let part = |bytes: &[u8]| bytes[i] >> shift & mask;
            let (before, back) = (part(image), part(&back));
            let kind = TypeChar::RawData;
            part(&elements) == 0
                || before == back
                || element::same_value(from.element_type(), kind, width, before, back)
        })
    };
    match (0..image.len()).find(|&i| !same(i)) {
        None => Ok(()),
        Some(i) => Err(inexact(path, "byte", i, image[i], back[i])),
    }
}

/// A conversion that is done but for writing its result.
struct Done<'a> {
    what: &'a str,
    input: &'a Path,
    from: &'a Shape,
    to: &'a Shape,
}

impl Done<'_> {
    /// Writes `header` and `result`, and reports, to a person or a machine.
    fn deliver(
        &self,
        input_bytes: usize,
        header: &[u8],
        result: &[u8],
        output: &Output,
        arguments: &OutputArguments,
    ) -> Result<(), Failure> {
        output.write(&[header, result])?;
        let (from, to) = (self.from.sizes()?, self.to.sizes()?);
        let (from_padding, to_padding) =
            (from.image_bytes - from.data_bytes, to.image_bytes - to.data_bytes);
        let (what, input, output_name) = (self.what, files::name(self.input), output.name());
        let mut out = output.report_to();
        if arguments.json {
            let report = json!({
                "input": input,
                "from": self.from.to_string(),
                "input_bytes": input_bytes,
                "output": output_name,
                "to": self.to.to_string(),
                "output_bytes": result.len(),
                "input_padding_bytes": from_padding,
                "output_padding_bytes": to_padding,
                "verified": arguments.verify,
            });
            return Ok(writeln!(out, "{report}")?);
        }
        let bytes = |n: usize| grouped(u64::try_from(n).unwrap_or(u64::MAX));
        writeln!(out, "{what} {input}: {}, {} bytes", self.from, bytes(input_bytes))?;
        writeln!(out, "  into {output_name}: {}, {} bytes", self.to, bytes(result.len()))?;
        if from_padding > 0 {
            writeln!(out, "  {} bytes of padding were left behind", grouped(from_padding))?;
        }
        writeln!(
            out,
            "  padding costs {} of them ({:.3} image elements for each element)",
            grouped(to_padding),
            to.padding_ratio()
        )?;
        if arguments.verify {
            writeln!(
                out,
                "  round trip exact: all {} elements came back the same",
                grouped(to.elements)
            )?;
        }
        Ok(())
    }
}
