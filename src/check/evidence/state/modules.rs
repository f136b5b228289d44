//! `lsmod`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::LIMIT;
use super::prompt::Line;

/// The kernel modules that a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modules {
    names: BTreeSet<String>,
    /// Every module is in it.
    whole: bool,
}

impl Modules {
    pub fn all(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().collect(), whole: true }
    }

    /// True if module `name` is shown to be loaded.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// True if module `name` is shown not to be loaded: the whole list has it not. That a
    /// part of a list lacks it proves nothing.
    pub fn lacks(&self, name: &str) -> bool {
        self.whole && !self.has(name)
    }

    fn add(&mut self, name: &str) {
        if self.names.len() < LIMIT && is_name(name) {
            self.names.insert(name.to_owned());
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

#[derive(Debug, Default)]
pub(super) struct LsmodReader {
    in_list: bool,
    /// It is not known what was typed: perhaps `lsmod | head`.
    part: bool,
}

impl LsmodReader {
    pub(super) fn gap(&mut self) {
        *self = Self::default();
    }

    pub(super) fn typed(&mut self, line: &Line<'_>) {
        self.in_list = line.program == "lsmod";
        self.part = line.program.is_empty();
    }

    pub(super) fn line(&mut self, text: &str, modules: &mut Option<Modules>) {
        let words: Vec<&str> = text.split_whitespace().take(4).collect();
        if let ["Module", "Size", "Used"] = words.get(..3).unwrap_or_default() {
            self.in_list = true;
            modules.get_or_insert_default().whole |= !self.part;
        } else if let (true, [name, size, uses, users @ ..]) = (self.in_list, words.as_slice())
            && let (Ok(_), Ok(_)) = (size.parse::<u64>(), uses.parse::<i64>())
        {
            let modules = modules.get_or_insert_default();
            modules.add(name);
            // What uses a module is a module that is loaded.
            for user in users.iter().flat_map(|u| u.split(',')) {
                modules.add(user);
            }
        } else {
            self.gap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::prompt::typed;
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<Modules> {
        let mut reader = LsmodReader::default();
        let mut modules = None;
        for line in text.lines() {
            if line.is_empty() {
                reader.gap();
            } else if let Some(typed) = typed(line) {
                reader.typed(&Line::parse(typed));
            } else {
                reader.line(line, &mut modules);
            }
        }
        modules
    }

    #[test]
    fn a_whole_list_proves_what_is_not_in_it() {
        let modules = read(
            "Module                  Size  Used by\nib_ipoib              131072  0\nib_core  425984  2 ib_ipoib,rdma_cm\nsome words\nmlx4_ib 10 0\n",
        )
        .expect("modules");
        assert!(modules.has("ib_ipoib") && modules.has("rdma_cm"));
        assert!(!modules.has("mlx4_ib"), "the list had ended");
        assert!(modules.lacks("mlx5_core") && !modules.lacks("ib_core"));
    }

    #[test]
    fn a_part_of_a_list_proves_only_what_is_in_it() {
        let rows = "mlx5_ib               397312  0\nmlx5_core            1830912  1 mlx5_ib\n";
        let list = format!("Module                  Size  Used by\n{rows}");
        let alone = read(&format!("[root@n1 ~]# lsmod\n{rows}")).expect("modules");
        assert!(alone.has("mlx5_core") && !alone.lacks("mlx4_core"), "its header was cut off");
        let head = read(&format!("$ lsmod | head\n{list}")).expect("modules");
        assert!(head.has("mlx5_ib") && !head.lacks("mlx4_core"));
        assert!(read(&format!("$ sudo lsmod\n{list}")).is_some_and(|m| m.lacks("mlx4_core")));
        assert_eq!(read(&format!("$ lsmod | grep mlx\n{rows}")), None, "no pipe is understood");
    }

    proptest! {
        #[test]
        fn no_list_panics(text in r"((# lsmod|\| grep |-[a-z] |Module Size Used by|[a-z_]{1,6} [0-9]{1,3} -?[0-9] |[a-z,|^ Ä]){0,5}\n){0,8}") {
            read(&text);
        }
    }
}
