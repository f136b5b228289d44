//! Types whose values are a few words.

/// A type that is one of a few words. Its parser, what its errors say that is
/// possible, and the configuration's schema all come from this one list.
pub trait Words: Copy + 'static {
    /// Every value, in the order in which users are told them.
    const ALL: &'static [Self];

    /// The word for it, as users type it.
    fn typed(self) -> &'static str;

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

/// A text is none of the words that are possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {possible}")]
pub struct WordError {
    possible: String,
}

impl WordError {
    /// A text is no word of `T`.
    pub fn of<T: Words>() -> Self {
        Self { possible: T::quoted() }
    }
}
