//! Pieces of texts from outside, fit to be shown in a message.

/// The start of a text that came from outside, fit to be shown in a message.
pub fn excerpt(text: &str) -> String {
    const MOST: usize = 24;
    let mut excerpt: String = text.chars().take(MOST).map(printable).collect();
    if text.chars().nth(MOST).is_some() {
        excerpt.push('…');
    }
    excerpt
}

/// A character that can do nothing to a terminal, in the place of any.
pub fn printable(c: char) -> char {
    // What Debug would escape, but for quotes and backslashes, does not print
    // as itself: controls, direction marks, separators, what is unassigned.
    let prints = c.is_ascii_graphic() || c == ' ' || c.escape_debug().count() == 1;
    if prints { c } else { '\u{fffd}' }
}
