//! Types whose values are a few words.

/// A type that is one of a few words, which strum derives from its variants. Its parser, what
/// its errors say that is possible, and the configuration's schema all come from this one list.
pub trait Words: Copy + Into<&'static str> + 'static {
    /// Every value, in the order in which users are told them.
    const ALL: &'static [Self];

    /// The word for it, as users type it, or as the kernel writes it.
    fn typed(self) -> &'static str {
        self.into()
    }

    /// The value with this word.
    fn from_typed(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.typed() == text)
    }

    /// All words that users may type, in the order of [`Words::ALL`].
    fn all_typed() -> Vec<&'static str> {
        Self::ALL.iter().map(|value| value.typed()).collect()
    }

    /// All words for a sentence: `"follow", "up" or "down"`.
    fn quoted() -> String {
        let quoted: Vec<String> =
            Self::ALL.iter().map(|value| format!("\"{}\"", value.typed())).collect();
        match quoted.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

impl<T: strum::VariantArray + Copy + Into<&'static str>> Words for T {
    const ALL: &'static [Self] = Self::VARIANTS;
}
