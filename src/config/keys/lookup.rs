//! Which key a name in a file means: what is called so, or nearly so.

use super::Key;
use crate::names::nearest;

/// What stands at `path` in `keys`: a key, a section, or nothing.
pub(crate) enum Found {
    Key(&'static Key),
    Section,
    Nothing,
}

/// Looks `path` (with dots) up in `keys`.
pub(crate) fn find(keys: &'static [Key], path: &str) -> Found {
    if let Some(key) = keys.iter().find(|key| key.path == path) {
        return Found::Key(key);
    }
    let inside = |key: &Key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    if keys.iter().any(inside) { Found::Section } else { Found::Nothing }
}

/// The names of the keys and sections of `keys` right below `section` (empty at the top).
pub(crate) fn inside(keys: &'static [Key], section: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> = keys
        .iter()
        .filter_map(|key| match section {
            "" => Some(key.path),
            _ => key.path.strip_prefix(section)?.strip_prefix('.'),
        })
        .filter_map(|rest| rest.split('.').next())
        .collect();
    names.dedup();
    names
}

/// The key or section of `keys` that was probably meant by `name`, written
/// below `section` (empty at the top).
pub(crate) fn meant(keys: &'static [Key], section: &str, name: &str) -> Option<String> {
    if name.len() > 64 {
        return None;
    }
    let wanted = name.to_lowercase().replace('_', "-");
    let near = nearest(&wanted, inside(keys, section));
    let join = |name: &str| match section {
        "" => name.to_owned(),
        _ => format!("{section}.{name}"),
    };
    // A good name in the wrong section is the other common slip.
    let elsewhere = || keys.iter().find(|key| key.path.rsplit('.').next() == Some(&wanted));
    near.map(join).or_else(|| elsewhere().map(|key| key.path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::{KEYS, interface, port};

    #[test]
    fn a_slip_finds_its_key() {
        let meant = |section, name| super::meant(KEYS, section, name);
        assert_eq!(meant("boot", "timeot").as_deref(), Some("boot.timeout"));
        assert_eq!(meant("boot", "adapter_timeout").as_deref(), Some("boot.adapter-timeout"));
        assert_eq!(meant("", "module").as_deref(), Some("modules"));
        assert_eq!(meant("", "timeout").as_deref(), Some("boot.timeout"));
        assert_eq!(meant("boot", "exclude").as_deref(), Some("modules.exclude"));
        assert_eq!(meant("boot", "colour"), None);
        assert_eq!(super::meant(port::KEYS, "", "portguid").as_deref(), Some("port-guid"));
        assert_eq!(super::meant(interface::KEYS, "match", "nme").as_deref(), Some("match.name"));
    }
}
