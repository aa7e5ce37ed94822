//! Any bytes are an error, or an array whose data is as long as its bounds say: how the
//! tool reads NumPy files.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use relayout::{Plan, Shape};

// The modules of the tool, which is no library.
#[allow(dead_code)]
#[path = "../../cli/src/element.rs"]
mod element;
#[allow(dead_code)]
#[path = "../../cli/src/failure.rs"]
mod failure;
#[allow(dead_code)]
#[path = "../../cli/src/files.rs"]
mod files;
#[allow(dead_code)]
#[path = "../../cli/src/npy.rs"]
mod npy;

fuzz_target!(|bytes: &[u8]| {
    let lengths = [None, Some(bytes.len() as u64)];
    let results = lengths.map(|length| {
        let reader = Box::new(Cursor::new(bytes.to_vec()));
        npy::read(files::Input::new(Path::new("fuzzed.npy"), reader, length))
    });
    let array = match results {
        [Ok(one), Ok(other)] => {
            assert!(*one.data == *other.data && one.bounds == other.bounds);
            one
        }
        [Err(one), Err(other)] => {
            assert!(!one.to_string().is_empty() && !other.to_string().is_empty());
            return;
        }
        _ => panic!("a file is read where a pipe is not, or the other way round"),
    };
    let elements: u64 = array.bounds.iter().product();
    assert_eq!(array.data.len() as u64, elements * array.type_str.size_field());

    // As `relayout pack` goes on.
    let Ok(element_type) = element::from_numpy(&array.type_str) else { return };
    assert!(element::suits(element_type, &array.type_str));
    let Ok(shape) = Shape::row_major(element_type, &array.bounds) else { return };
    let mut host = array.data;
    element::reduce(element_type, array.type_str.type_char(), &mut host);
    let image = Plan::pack(&shape).unwrap().run_to_vec(&host).unwrap();
    assert!(Plan::unpack(&shape).unwrap().run_to_vec(&image).unwrap() == *host);
    npy::header(array.type_str, &array.bounds).unwrap();
});
