//! `relayout explain`: what a shape's image is made of.

use std::io::{self, Write};

use clap::Args;
use relayout::{Plan, Shape, ShapeError, Sizes, Step, Warning};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{files, plan};

/// Tell the sizes, the padding and the making of a shape's image
///
/// A line that is no shape is reported, and the others are explained all the
/// same. In JSON, `array_size_bytes` is null where it has 2^64 bits or more.
#[derive(Args)]
#[command(after_help = "\
Examples:
  relayout explain 'bf16[1000,300]{1,0:T(8,128)(2,1)}'
  relayout explain --plan 'pred[64,300]{1,0:T(32,128)(32,1)E(1)}'
  relayout explain --json - < shapes.txt")]
pub(crate) struct Arguments {
    /// Shapes; `-` reads one a line from standard input, passing over blank lines
    #[arg(value_name = "SHAPE", required = true)]
    shapes: Vec<String>,
    /// Tell how it is packed and unpacked too: loops, kernels, slow parts
    #[arg(long)]
    plan: bool,
    /// Write one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut all_well = true;
    for (i, text) in files::texts(&arguments.shapes).enumerate() {
        let (text, place) = text?;
        if text.trim().is_empty() && !place.is_empty() {
            continue;
        }
        match Explanation::new(&text, arguments.plan) {
            Ok(explanation) if arguments.json => writeln!(out, "{}", explanation.json())?,
            Ok(explanation) => {
                if i > 0 {
                    writeln!(out)?;
                }
                explanation.write(&mut out)?;
            }
            // One bad line does not keep the others from their answer.
            Err(e) => {
                all_well = false;
                e.report(&place);
            }
        }
    }
    out.flush()?;
    if all_well { Ok(()) } else { Err(Failure::Reported) }
}

/// All that there is to say about a shape.
struct Explanation {
    shape: Shape,
    sizes: Sizes,
    /// `None` where it does not fit; a warning says so.
    array_size_bytes: Option<u64>,
    physical_bounds: Vec<u64>,
    steps: Vec<Step>,
    warnings: Vec<Warning>,
    /// How to pack and unpack it, if that was asked for.
    plans: Option<[(&'static str, Plan); 2]>,
}

impl Explanation {
    fn new(text: &str, plan: bool) -> Result<Self, Failure> {
        let shape: Shape = text.parse()?;
        let wrong = |e: &dyn std::fmt::Display| Failure::usage(format!("{text}: {e}"));
        let mut explanation = Explanation::of(shape).map_err(|e| wrong(&e))?;
        if plan {
            let (builder, shape) = (plan::builder()?, &explanation.shape);
            let pack = builder.pack(shape).map_err(|e| wrong(&e))?;
            let unpack = builder.unpack(shape).map_err(|e| wrong(&e))?;
            explanation.plans = Some([("pack", pack), ("unpack", unpack)]);
        }
        Ok(explanation)
    }

    fn of(shape: Shape) -> Result<Self, ShapeError> {
        Ok(Explanation {
            sizes: shape.sizes()?,
            physical_bounds: shape.physical_bounds()?,
            array_size_bytes: shape.array_size_bytes().ok(),
            steps: shape.steps()?,
            warnings: shape.warnings()?,
            plans: None,
            shape,
        })
    }

    fn json(&self) -> Value {
        let step = |step: &Step| match step {
            Step::PadTo(bounds) => json!({ "pad_to": bounds }),
            Step::ReshapeTo(bounds) => json!({ "reshape_to": bounds }),
            Step::TransposeBy(dimensions) => json!({ "transpose_by": dimensions }),
        };
        let mut object = json!({
            "shape": self.shape.to_string(),
            "element_bits": self.sizes.element_bits,
            "elements": self.sizes.elements,
            "image_elements": self.sizes.image_elements,
            "image_bytes": self.sizes.image_bytes,
            "array_size_bytes": self.array_size_bytes,
            "data_bytes": self.sizes.data_bytes,
            "padding_ratio": self.sizes.padding_ratio(),
            "physical_dims": self.physical_bounds,
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
            "warnings": self.warnings.iter().map(Warning::to_string).collect::<Vec<_>>(),
        });
        if let Some(plans) = &self.plans {
            let plans = plans.iter().map(|(direction, p)| plan::json(direction, &p.explain()));
            object["plans"] = plans.collect();
        }
        object
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Sizes { elements, element_bits, image_elements, .. } = self.sizes;
        writeln!(out, "{}", self.shape)?;
        writeln!(
            out,
            "  elements         {}, {element_bits} bits each in the image",
            grouped(elements)
        )?;
        writeln!(
            out,
            "  data             {} bytes without padding",
            grouped(self.sizes.data_bytes)
        )?;
        writeln!(
            out,
            "  image            {} bytes in {} elements",
            grouped(self.sizes.image_bytes),
            grouped(image_elements)
        )?;
        if let Some(bytes) = self.array_size_bytes {
            writeln!(out, "  XLA ArraySize    {} bytes", grouped(bytes))?;
        }
        writeln!(
            out,
            "  padding ratio    {:.3} image elements for each element",
            self.sizes.padding_ratio()
        )?;
        writeln!(out, "  physical dims    {:?}, major to minor", self.physical_bounds)?;
        if self.steps.is_empty() {
            writeln!(out, "  the image is the row-major array as it is")?;
        } else {
            writeln!(out, "  the image is the row-major array after these steps:")?;
        }
        for (i, step) in self.steps.iter().enumerate() {
            writeln!(out, "    {}. {step}", i + 1)?;
        }
        for warning in &self.warnings {
            writeln!(out, "  warning: {warning}")?;
        }
        for (direction, plan) in self.plans.iter().flatten() {
            let text = plan.explain().to_string().replace('\n', "\n  ");
            writeln!(out, "  {direction}: {}", text.trim_end())?;
        }
        Ok(())
    }
}

/// A number with a comma at each thousand.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_grouped() {
        let texts = [0, 7, 999, 1000, 123_456, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "7", "999", "1,000", "123,456", "1,234,567"]);
    }
}
