#![allow(clippy::disallowed_methods, reason = "files of udev's that are ours to write")]

//! Names that udev gives interfaces by port GUID.
//!
//! By rules of udev, which every udev has obeyed for this since 2012. `systemd.link(5)`
//! can match a whole address only, and of an IPoIB address the first 4 bytes change at
//! every probe; and a `[Match]` that an older systemd does not understand fits every
//! netdev there is (`Property=` before 243).

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{clock, process};
use crate::names::{Guid, IfName};

const RULES: &str = "/run/udev/rules.d/61-ibprov-names.rules";
/// Where ibprov has written .link files for this in former releases.
const LINKS: &str = "/run/systemd/network";
const PREFIX: &str = "60-ibprov-";

/// The file, path and content, that makes udev give these names; none for none.
#[must_use]
pub fn file(names: &[(Guid, IfName)]) -> Option<(PathBuf, String)> {
    let mut rules = "# Written by ibprov boot from ibprov.toml.\n".to_owned();
    for (guid, name) in names {
        let tail = guid.value().to_be_bytes().map(|b| format!("{b:02x}")).join(":");
        // P_Key children have the same GUID and no PCI function above them. What has a
        // name by now is not named by 80-net-setup-link.rules.
        rules.push_str(&format!(
            "ACTION!=\"remove\", SUBSYSTEM==\"net\", ATTR{{type}}==\"32\", SUBSYSTEMS==\"pci\", ATTR{{address}}==\"*:{tail}\", NAME=\"{name}\"\n"
        ));
    }
    (!names.is_empty()).then(|| (PathBuf::from(RULES), rules))
}

/// Make udev give these names, and no others of ours, to what appears from now
/// on. Nothing is done if it does so already.
///
/// # Errors
/// The path that failed, with the system's answer, or udev could not be told.
pub fn establish(names: &[(Guid, IfName)]) -> Result<(), String> {
    let wanted = file(names);
    let mut changed = false;
    let failed = |path: &Path, e: &io::Error| format!("{}: {}", path.display(), super::answer(e));
    let ours = |path: &Path| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        name.starts_with(PREFIX) && name.ends_with(".link")
    };
    let there = fs::read_dir(LINKS).into_iter().flatten().flatten().map(|e| e.path());
    let stale = there.filter(|path| ours(path)).chain([PathBuf::from(RULES)]);
    for path in stale.filter(|path| wanted.iter().all(|(w, _)| w != path)) {
        match fs::remove_file(&path) {
            Ok(()) => changed = true,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(&path, &e)),
        }
    }
    if let Some((path, content)) = wanted
        && !fs::read_to_string(&path).is_ok_and(|old| old == content)
    {
        changed = true;
        let dir = path.parent().unwrap_or(Path::new("/run"));
        fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
        fs::write(&path, content).map_err(|e| failed(&path, &e))?;
    }
    if !changed {
        return Ok(());
    }
    // udevd looks for new files every 3 s only.
    let args = ["control", "--reload"];
    let until = clock::monotonic_usec() + 5_000_000;
    let told =
        process::output_until("udevadm", &args, until).and_then(|o| o.into_text("udevadm", &args));
    told.map(drop).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_with_a_port_guid() {
        let guid = "0002:c903:000e:8acd".parse().expect("GUID");
        let (path, rules) = file(&[(guid, "ib7".parse().expect("name"))]).expect("a file");
        assert_eq!(path.display().to_string(), RULES);
        assert!(
            rules.contains("ATTR{address}==\"*:00:02:c9:03:00:0e:8a:cd\", NAME=\"ib7\""),
            "{rules}"
        );
        assert_eq!(file(&[]), None);
    }
}
