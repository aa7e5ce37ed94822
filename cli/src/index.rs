//! `relayout index`: where an element stands, and what stands at a place.

use std::io::{self, Write};

use clap::{ArgGroup, Args};
use relayout::Shape;
use relayout::index::ImageMap;
use serde_json::json;

use crate::failure::Failure;
use crate::files;

/// Tell where an element stands in the image, or what stands there
///
/// Of many values, each is answered by a line in its place; the first that
/// cannot be answered ends the run.
#[derive(Args)]
#[command(after_help = "\
Examples:
  relayout index 'f32[3,5]{1,0:T(2,2)}' --at 2,3               prints 17
  relayout index 'f32[3,5]{1,0:T(2,2)}' --image-element 17     prints 2,3
  relayout index 'f32[3,5]{1,0:T(2,2)}' --image-element 19     prints padding
  seq 0 23 | relayout index 'f32[3,5]{1,0:T(2,2)}' --image-element -")]
#[command(group = ArgGroup::new("place").required(true))]
pub(crate) struct Arguments {
    /// The array
    #[arg(value_name = "SHAPE")]
    shape: String,
    /// An index of the array, an entry for each dimension; `-` reads one a line
    #[arg(long, group = "place", value_name = "INDEX", allow_hyphen_values = true)]
    at: Option<String>,
    /// An element of the image, counted from 0; `-` reads one a line
    #[arg(long, group = "place", value_name = "NUMBER", allow_hyphen_values = true)]
    image_element: Option<String>,
    /// Write one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let shape: Shape = arguments.shape.parse()?;
    let map = ImageMap::new(&shape)?;
    let answer = match arguments.at {
        Some(_) => image_element,
        None => logical_index,
    };
    let value = arguments.at.iter().chain(&arguments.image_element).cloned();
    // Each line at once, for those who ask again after an answer.
    let mut out = io::stdout().lock();
    for text in files::texts(&value.collect::<Vec<_>>()) {
        let (text, place) = text?;
        match answer(&map, &text, arguments.json) {
            Ok(line) => writeln!(out, "{line}")?,
            Err(e) => return Err(Failure::usage(format!("{place}{e}"))),
        }
    }
    Ok(out.flush()?)
}

fn image_element(map: &ImageMap, text: &str, json: bool) -> Result<String, Failure> {
    let entries = text.split(',').filter(|_| !text.trim().is_empty());
    let index: Vec<u64> = entries.map(number).collect::<Result<_, _>>()?;
    let image_element = map.image_element(&index)?;
    Ok(if json {
        json!({ "at": index, "image_element": image_element, "bit_offset": map.bit_offset(&index)? })
            .to_string()
    } else {
        image_element.to_string()
    })
}

fn logical_index(map: &ImageMap, text: &str, json: bool) -> Result<String, Failure> {
    let image_element = number(text)?;
    let index = map.logical_index(image_element)?;
    Ok(match index {
        index if json => json!({ "image_element": image_element, "at": index }).to_string(),
        None => "padding".to_owned(),
        Some(index) => index.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
    })
}

fn number(text: &str) -> Result<u64, Failure> {
    text.trim()
        .parse()
        .map_err(|_| Failure::usage(format!("`{}` is no number from 0 up", text.trim())))
}
