//! The header is the one that the source makes.

use std::path::Path;

#[test]
fn the_header_is_in_step() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::Builder::new()
        .with_src(root.join("src/lib.rs"))
        .with_config(config)
        .generate()
        .unwrap()
        .write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = root.join("include/relayout.h");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let header = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        header == made,
        "{} is not what capi/src/lib.rs makes; run UPDATE_HEADER=1 cargo test -p relayout-capi",
        path.display()
    );
}
