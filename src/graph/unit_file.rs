//! One unit file, and drop-ins over it (systemd.syntax(7)).

use std::collections::BTreeMap;

use crate::names::unit_escape;

/// The assignments of a unit, file and drop-ins together, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Assignments(BTreeMap<(String, String), Vec<String>>);

impl Assignments {
    /// Read what is in `text` over what is there.
    pub(super) fn read(&mut self, text: &str) {
        let mut section = String::new();
        for line in joined(text) {
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                name.clone_into(&mut section);
            } else if let Some((key, value)) = line.split_once('=') {
                let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
                let all = self.0.entry((section.clone(), key.clone())).or_default();
                // An empty one takes back what was said; but orders and
                // requirements can only be added to (systemd.unit(5)).
                if value.is_empty() && !is_dependency(&key) {
                    all.clear();
                } else {
                    all.push(value);
                }
            }
        }
    }

    /// All values of a key, in order.
    pub(super) fn all(&self, section: &str, key: &str) -> &[String] {
        self.0.get(&(section.to_owned(), key.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// The value that counts where there can be only one.
    pub(super) fn last(&self, section: &str, key: &str) -> &str {
        self.all(section, key).last().map_or("", String::as_str)
    }
}

fn is_dependency(key: &str) -> bool {
    matches!(
        key,
        "After"
            | "Before"
            | "Requires"
            | "Wants"
            | "BindsTo"
            | "Requisite"
            | "Upholds"
            | "PartOf"
            | "Conflicts"
    )
}

/// The lines without comments, those that end with a backslash joined with the
/// next; comments in between are left out.
fn joined(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with(['#', ';']) {
            continue;
        }
        let mut whole = match open.take() {
            Some(begun) => format!("{begun} {trimmed}"),
            None => trimmed.to_owned(),
        };
        if whole.ends_with('\\') {
            whole.pop();
            open = Some(whole.trim_end().to_owned());
        } else if !whole.is_empty() {
            lines.push(whole);
        }
    }
    lines.extend(open);
    lines
}

/// A value with the specifiers of unit names put in (systemd.unit(5),
/// "SPECIFIERS"); none if there are others in it.
pub(super) fn expand(value: &str, unit: &str) -> Option<String> {
    let stem = unit.rsplit_once('.').map_or(unit, |(stem, _)| stem);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let last = |text: &str| text.rsplit('-').next().unwrap_or_default().to_owned();
    let mut out = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            '%' => out.push('%'),
            'n' => out.push_str(unit),
            'N' => out.push_str(stem),
            'p' => out.push_str(prefix),
            'P' => out.push_str(&unescape(prefix)),
            'i' => out.push_str(instance),
            'I' => out.push_str(&unescape(instance)),
            'j' => out.push_str(&last(prefix)),
            'J' => out.push_str(&unescape(&last(prefix))),
            _ => return None,
        }
    }
    Some(out)
}

/// What systemd-escape(1) did, taken back.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let hex = rest.strip_prefix("\\x").and_then(|r| r.get(..2));
        if let Some(code) = hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            out.push(char::from(code));
            rest = rest.get(4..).unwrap_or_default();
            continue;
        }
        out.push(if c == '-' { '/' } else { c });
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    out
}

/// A path as part of a unit's name (systemd-escape(1), --path).
pub(super) fn escape_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
    if parts.is_empty() {
        return "-".to_owned();
    }
    unit_escape(&parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_drop_ins_are_read_as_systemd_does() {
        let mut read = Assignments::default();
        read.read("[Unit]\nAfter=a.service \\\n# a comment\n  b.service\n; another\n[Service]\nExecStart=/bin/a\nType=simple\n");
        read.read("[Unit]\nAfter=\nAfter=c.service\n[Service]\nExecStart=\nExecStart=/bin/b\nType=oneshot\n");
        assert_eq!(read.all("Unit", "After"), ["a.service b.service", "", "c.service"]);
        assert_eq!(read.all("Service", "ExecStart"), ["/bin/b"]);
        assert_eq!(read.last("Service", "Type"), "oneshot");
        assert_eq!(read.last("Service", "None"), "");
    }

    #[test]
    fn specifiers_and_paths() {
        let unit = "srp_daemon_port@mlx5_0\\x2f1.service";
        assert_eq!(expand("sys-%i.device", unit).as_deref(), Some("sys-mlx5_0\\x2f1.device"));
        assert_eq!(expand("%p/%I 100%%", unit).as_deref(), Some("srp_daemon_port/mlx5_0/1 100%"));
        assert_eq!(expand("%H", unit), None);
        assert_eq!(escape_path("/"), "-");
        assert_eq!(escape_path("/mnt/my data/.x//"), "mnt-my\\x20data-.x");
        assert_eq!(escape_path("/.x"), "\\x2ex");
        assert_eq!(unescape("mnt-my\\x20data"), "mnt/my data");
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "(\\[Unit\\]|After=|\\\\|#|%[a-z]|\n|[ -~]|é)*") {
            Assignments::default().read(&text);
            expand(&text, &text);
            unescape(&text);
            escape_path(&text);
        }
    }
}
