use serde::{Deserialize, Serialize};

/// What is at a path, all that is needed to have it so again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum PathState {
    #[strum(to_string = "nothing")]
    Absent,
    /// A directory, whatever is in it.
    #[strum(to_string = "a directory")]
    Directory,
    #[strum(to_string = "a link to {target}")]
    Link {
        /// Its target, as it is written.
        target: String,
    },
    #[strum(to_string = "a file")]
    File {
        text: String,
        /// Its permissions, the lower 12 bits of st_mode.
        mode: u32,
        /// User and group; `null` for those of who writes it.
        owner: Option<FileOwner>,
        /// When it was last modified; `null` for when it is written.
        modified: Option<FileTime>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileOwner {
    pub user: u32,
    pub group: u32,
}

/// A time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileTime {
    /// Seconds since 1970.
    pub sec: i64,
    /// Nanoseconds beside them.
    pub nsec: i64,
}

impl PathState {
    /// A file of ibprov's own that everybody may read.
    pub fn own_file(text: impl Into<String>) -> Self {
        Self::File { text: text.into(), mode: 0o644, owner: None, modified: None }
    }

    pub fn link(target: impl Into<String>) -> Self {
        Self::Link { target: target.into() }
    }

    /// True if both are the same to who reads them: of a file the time does not count, and
    /// the owner only where both have one.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { text, mode, owner, .. },
                Self::File { text: text_2, mode: mode_2, owner: owner_2, .. },
            ) => {
                let owners = owner.zip(*owner_2);
                text == text_2 && mode == mode_2 && owners.is_none_or(|(one, two)| one == two)
            }
            _ => self == other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_same_by_content_mode_and_a_known_owner() {
        let file = |text: &str, mode, owner| PathState::File {
            text: text.to_owned(),
            mode,
            owner,
            modified: Some(FileTime { sec: 1, nsec: 2 }),
        };
        let own = PathState::own_file("x");
        let seven = Some(FileOwner { user: 7, group: 7 });
        assert!(own.is_same(&file("x", 0o644, seven)));
        assert!(!own.is_same(&file("y", 0o644, None)) && !own.is_same(&file("x", 0o600, None)));
        assert!(
            !file("x", 0o644, Some(FileOwner { user: 0, group: 0 }))
                .is_same(&file("x", 0o644, seven))
        );
        assert!(!PathState::Absent.is_same(&PathState::Directory));
    }
}
