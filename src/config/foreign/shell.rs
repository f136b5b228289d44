//! Files of shell assignments, `KEY=value`: they are read, and never run.

use super::shown;

/// One line; `None` for a comment or an empty one.
///
/// # Errors
/// It is something else, or needs a shell; a sentence.
pub(crate) fn assignment(line: &str) -> Result<Option<(&str, String)>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let is_key =
        |key: &&str| !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let Some((key, rest)) = line.split_once('=').filter(|(key, _)| is_key(key)) else {
        return Err(format!("{} is not an assignment", shown(line)));
    };
    let quoted = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let value = match quoted {
        Some(quote) => rest.get(1..).and_then(|r| r.split_once(quote)).map(|(value, _)| value),
        None => Some(rest.split([' ', '\t', '#', ';']).next().unwrap_or_default()),
    };
    let value = value.ok_or_else(|| format!("{key} has a quote without an end"))?;
    if quoted != Some('\'') && value.contains(['$', '`']) {
        return Err(format!(
            "{key}={} is computed by a shell, which ibprov does not run",
            shown(value)
        ));
    }
    Ok(Some((key, value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_and_not_run() {
        let get =
            |line| assignment(line).map(|found| found.map(|(key, value)| format!("{key}|{value}")));
        assert_eq!(get("DEVICE=\"ib0\" # x"), Ok(Some("DEVICE|ib0".to_owned())));
        assert_eq!(get("  export A='$b c'"), Ok(Some("A|$b c".to_owned())));
        assert_eq!(get(" # DEVICE=ib0"), Ok(None));
        assert!(get("MTU=$(reboot)").is_err_and(|why| why.contains("does not run")));
        assert!(get("B C=1").is_err() && get("=x").is_err() && get("A='b").is_err());
    }
}
