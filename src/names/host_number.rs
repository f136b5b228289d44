//! The host's number, for GUID templates: by a stated rule, from stated sources.

use super::shown;

/// Where the host's number comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostNumber {
    /// From the host's name, by this rule.
    Name(NameRule),
    Given(u64),
    /// A decimal number alone in the file at this absolute path.
    File(String),
}

/// Which digits of a host's name are its number. The name is looked at up to
/// its first dot; leading zeros count for nothing, and no number is octal.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case", suffix = "-digits")]
pub enum NameRule {
    /// The last run of digits: 14 of `rack2-node14`.
    Last,
    /// The first run of digits: 2 of `rack2-node14`.
    First,
    /// The only run of digits: `rack2-node14` has no number.
    Only,
}

/// True for a name that identifies no host, because an image has it as long as nobody names
/// the host: `localhost`, `localhost.localdomain`, `localhost4.localdomain4` and the like,
/// and the empty name.
pub fn is_placeholder(name: &str) -> bool {
    let head = name.get(.."localhost".len());
    name.is_empty() || head.is_some_and(|head| head.eq_ignore_ascii_case("localhost"))
}

/// The number of the host that is called `name`.
///
/// # Errors
/// Why it has none, for people. The name is quoted and escaped.
pub fn of_name(name: &str, rule: NameRule) -> Result<u64, String> {
    let shown = shown(name);
    if is_placeholder(name) {
        return Err(format!("the name {shown} identifies no host, so that it has no number"));
    }
    let short = name.split('.').next().unwrap_or_default();
    let mut runs = short.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
    let run = match rule {
        NameRule::Last => runs.next_back(),
        NameRule::First => runs.next(),
        NameRule::Only => {
            let first = runs.next();
            if runs.next().is_some() {
                return Err(format!(
                    "the host name {shown} has more than one number, and host.number-rule is \"only-digits\" (\"first-digits\" or \"last-digits\" takes one of them)"
                ));
            }
            first
        }
    };
    let run = run.ok_or_else(|| format!("the host name {shown} has no digits"))?;
    run.parse().map_err(|_| format!("the number in the host name {shown} is too large"))
}

/// The number in a file's text: decimal digits alone, with white space around.
///
/// # Errors
/// What it holds instead, for people.
pub fn of_text(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = plain.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| format!("{} is not a decimal number", shown(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Words as _;
    use proptest::prelude::*;

    #[test]
    fn the_rule_says_which_digits() {
        let rack = "rack2-node14.cluster7.example";
        assert_eq!(of_name(rack, NameRule::Last), Ok(14));
        assert_eq!(of_name(rack, NameRule::First), Ok(2));
        assert_eq!(
            of_name(rack, NameRule::Only),
            Err("the host name \"rack2-node14.cluster7.example\" has more than one number, and host.number-rule is \"only-digits\" (\"first-digits\" or \"last-digits\" takes one of them)".into())
        );
        for &rule in NameRule::ALL {
            assert_eq!(of_name("c08", rule), Ok(8), "not octal");
            assert_eq!(of_name("c112", rule), Ok(112));
            assert_eq!(of_name("c007x", rule), Ok(7));
            assert_eq!(of_name("login", rule), Err("the host name \"login\" has no digits".into()));
            assert_eq!(NameRule::from_typed(&rule.to_string()), Some(rule));
        }
        // The 4 of an image's /etc/hostname is the same on each host.
        for name in ["localhost", "localhost4.localdomain4", "LocalHost6"] {
            assert!(is_placeholder(name));
            let why = format!("the name \"{name}\" identifies no host, so that it has no number");
            assert_eq!(of_name(name, NameRule::Only), Err(why));
        }
        assert!(is_placeholder("") && !is_placeholder("local") && !is_placeholder("xlocalhost"));
        assert_eq!(
            of_name("n99999999999999999999", NameRule::Last),
            Err("the number in the host name \"n99999999999999999999\" is too large".into())
        );
    }

    #[test]
    fn a_file_holds_the_number_alone() {
        assert_eq!(of_text("0112\n"), Ok(112));
        for text in ["", "0x10", "-1", "1 2", "1e3", "99999999999999999999", "\u{1b}[2J"] {
            let why = of_text(text).expect_err(text);
            assert!(why.ends_with("is not a decimal number"), "{why}");
            assert!(!why.contains('\u{1b}'), "{why:?}");
        }
    }

    proptest! {
        #[test]
        fn no_name_panics(name in "(?s).{0,70}") {
            for &rule in NameRule::ALL {
                let _number = of_name(&name, rule);
            }
            let _number = of_text(&name);
        }
    }
}
