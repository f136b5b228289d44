//! Lines of files that programs read.

/// The lines of a text with their numbers, those that end with a backslash joined with the next;
/// a comment is not.
pub fn joined_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        let (part, goes_on) = match line.strip_suffix('\\') {
            Some(part) if !line.trim_start().starts_with('#') => (part, true),
            _ => (line, false),
        };
        match lines.last_mut().filter(|_| is_open) {
            Some((_, whole)) => {
                whole.push(' ');
                whole.push_str(part.trim_start());
            }
            None => lines.push((number, part.to_owned())),
        }
        is_open = goes_on;
    }
    lines
}
