//! `relayout layout`: which layout a TPU gives to an array.

use std::io::{self, Write};

use clap::Args;
use relayout::tpu::{self, Chip};
use relayout::{Shape, ShapeError, Sizes};
use serde_json::{Value, json};

use crate::explain::grouped;
use crate::failure::Failure;
use crate::files;

/// Tell which layout XLA gives to an array on a TPU
///
/// Prints the shape with its layout, what the padding costs, and what the next
/// best order of the dimensions would cost. A layout that a shape has already
/// is passed over. A line that is no shape is reported, and the others get their
/// layout all the same. The rule stands in the documentation of
/// `relayout::tpu::default_layout`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  relayout layout 'bf16[1000,3]' --chip v5e
  relayout layout --chip 7x --json - < shapes.txt")]
pub(crate) struct Arguments {
    /// Shapes; `-` reads one a line from standard input, passing over blank lines
    #[arg(value_name = "SHAPE", required = true)]
    shapes: Vec<String>,
    /// The TPU: v4, v5e, v5p, v6e or 7x
    #[arg(long)]
    chip: Chip,
    /// Write one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut all_well = true;
    for text in files::texts(&arguments.shapes) {
        let (text, place) = text?;
        if text.trim().is_empty() && !place.is_empty() {
            continue;
        }
        match Choice::new(&text, arguments.chip) {
            Ok(choice) if arguments.json => writeln!(out, "{}", choice.json())?,
            Ok(choice) => choice.write(&mut out)?,
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

/// The layout of an array, and the one that would have been next.
struct Choice {
    chip: Chip,
    chosen: (Shape, Sizes),
    /// `None` where there is no other, or it would be too large to have a size.
    runner_up: Option<(Shape, Sizes)>,
}

impl Choice {
    fn new(text: &str, chip: Chip) -> Result<Self, Failure> {
        let array: Shape = text.parse()?;
        let wrong = |e: ShapeError| Failure::usage(format!("{text}: {e}"));
        let bounds = array.bounds().map_err(wrong)?;
        let with = |layout| {
            let shape = array.with_layout(layout)?;
            let sizes = shape.sizes()?;
            Ok((shape, sizes))
        };
        let chosen = tpu::default_layout(chip, array.element_type(), &bounds);
        let ranked = tpu::ranked_layouts(chip, array.element_type(), &bounds);
        Ok(Choice {
            chip,
            chosen: chosen.and_then(with).map_err(wrong)?,
            runner_up: ranked.ok().and_then(|all| with(all.into_iter().nth(1)?).ok()),
        })
    }

    fn json(&self) -> Value {
        let (shape, sizes) = &self.chosen;
        let runner_up = self.runner_up.as_ref().map(|(shape, sizes)| {
            json!({ "shape": shape.to_string(), "image_bytes": sizes.image_bytes })
        });
        json!({
            "shape": shape.to_string(),
            "chip": self.chip.name(),
            "image_bytes": sizes.image_bytes,
            "data_bytes": sizes.data_bytes,
            "padding_ratio": sizes.padding_ratio(),
            "runner_up": runner_up,
        })
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (shape, sizes) = &self.chosen;
        writeln!(out, "{shape}")?;
        let padding = sizes.image_bytes.saturating_sub(sizes.data_bytes);
        writeln!(
            out,
            "  {} bytes, of which {} are padding: padding ratio {:.2}",
            grouped(sizes.image_bytes),
            grouped(padding),
            sizes.padding_ratio(),
        )?;
        if let Some((other, other_sizes)) = &self.runner_up {
            writeln!(
                out,
                "  next best is {}: {} bytes, padding ratio {:.2}",
                other.layout(),
                grouped(other_sizes.image_bytes),
                other_sizes.padding_ratio(),
            )?;
        }
        Ok(())
    }
}
