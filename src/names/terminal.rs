//! What a terminal is given. Characters that it would obey, or that hide or turn what stands
//! beside them, are in no name, and what is printed has a mark in their place.

/// When text is coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// True for control characters, for those that are invisible or turn the direction of text
/// (Unicode's format characters, the separators of lines and paragraphs), and for what is no
/// character.
pub const fn is_hostile(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// `c` as it may be printed within a line: a blank for line ends and tabs, U+FFFD for every
/// other hostile character.
pub const fn mark(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' => ' ',
        c if is_hostile(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// As [`mark`], but line ends and tabs stay.
pub const fn mark_in_lines(c: char) -> char {
    if matches!(c, '\n' | '\t') { c } else { mark(c) }
}

/// `text` as it may be printed within a line ([`mark`]).
pub fn harmless(text: &str) -> String {
    text.chars().map(mark).collect()
}

/// The same text of JSON, with `\uXXXX` for every hostile character in its strings.
pub fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        // Between the strings.
        if !is_hostile(c) || c == '\n' {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_obeys_is_marked_and_what_people_write_stays() {
        assert_eq!(
            harmless("a\x1b[31m\u{202e}b\n\tc\r\u{9b}"),
            "a\u{fffd}[31m\u{fffd}b  c \u{fffd}"
        );
        for hidden in ["\u{200b}", "\u{2066}", "\u{feff}", "\u{ad}", "\u{e0041}", "\u{ffff}"] {
            assert_eq!(harmless(hidden), "\u{fffd}", "{hidden:?}");
        }
        for good in ["K\u{f6}ln 1", "\u{65e5}\u{672c}", "e\u{301}", "\u{1f600}", "~ !"] {
            assert_eq!(harmless(good), good);
        }
    }

    proptest! {
        #[test]
        fn json_means_the_same_and_has_no_hostile_character(text in any::<String>()) {
            let json = serde_json::to_string_pretty(&[&text, "\u{202e}\u{9b}\u{7f}\u{e0041}"]).expect("JSON");
            let escaped = escaped(&json);
            prop_assert!(!escaped.chars().any(|c| is_hostile(c) && c != '\n'), "{:?}", escaped);
            let read: Vec<String> = serde_json::from_str(&escaped).expect("JSON");
            prop_assert_eq!(&read[0], &text);
            prop_assert_eq!(read[1].as_str(), "\u{202e}\u{9b}\u{7f}\u{e0041}");
        }
    }
}
