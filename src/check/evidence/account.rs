//! The reports that ibprov has left on a host: boot.json, and the outcomes of PFs,
//! interfaces, guests and wait-online, as files of the host or of an archive of it.

use serde::Deserialize;

use crate::model::BootReport;
use crate::model::check_schema;
use crate::model::common::{Finding, Kind};
use crate::model::node::Standing;
use crate::names::Object;

/// All reports of one boot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Accounts {
    /// boot.json.
    pub boot: Option<Box<BootReport>>,
    /// The others, and boot.json as one of them.
    pub all: Vec<Account>,
}

/// What every report says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The file, as it is quoted.
    pub source: String,
    pub kind: Kind,
    /// The PF or the interface, where there are several reports of a kind.
    pub object: Option<Object>,
    pub standing: Standing,
    /// What was not as it is meant to be.
    pub findings: Vec<Finding>,
}

/// No report is longer.
pub const LONGEST: u64 = 16 << 20;

/// More reports of one host are not kept: one for each PF and interface.
const MOST: usize = 4096;

/// The keys that tell what a report is about.
#[derive(Deserialize)]
struct Head {
    schema: u64,
    report: Kind,
    exit_code: u8,
    #[serde(default)]
    findings: Vec<Finding>,
    netdev: Option<String>,
    pf: Option<String>,
    verdict: Option<serde_json::Value>,
}

/// True if a JSON file that begins with `head` may be a report of ibprov's.
pub fn is_report(head: &[u8]) -> bool {
    begins_with_key(head, b"\"schema\"")
}

/// True of an object in JSON that has `key` among its first.
pub fn begins_with_key(head: &[u8], key: &[u8]) -> bool {
    let head = head.get(..64).unwrap_or(head);
    head.first() == Some(&b'{') && memchr::memmem::find(head, key).is_some()
}

impl Accounts {
    /// Take the report in `json`, which the file `source` holds; false if it is none of
    /// those that a boot leaves behind.
    ///
    /// # Errors
    /// It is one of another version, or a damaged one.
    pub fn take(&mut self, source: &str, json: &str) -> Result<bool, String> {
        let head: Head = serde_json::from_str(json).map_err(|e| e.to_string())?;
        check_schema(head.schema).map_err(|e| e.to_string())?;
        let kind = head.report;
        let object = match kind {
            Kind::Boot | Kind::Guests | Kind::WaitOnline => None,
            Kind::Iface => head.netdev.map(Object::from),
            Kind::ApplyPf => head.pf.map(Object::from),
            _ => return Ok(false),
        };
        if head.verdict.is_none() {
            return Ok(false);
        }
        if kind == Kind::Boot {
            let report: BootReport = crate::model::read(json).map_err(|e| e.to_string())?;
            self.boot = Some(Box::new(report));
        }
        self.all.retain(|known| (known.kind, &known.object) != (kind, &object));
        if self.all.len() < MOST {
            self.all.push(Account {
                source: source.to_owned(),
                kind,
                object,
                standing: Standing::of_exit(head.exit_code),
                findings: head.findings,
            });
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_that_a_boot_leaves_is_taken_and_no_other() {
        let mut accounts = Accounts::default();
        let mut take = |json: &str| accounts.take("x.json", json);
        let boot = r#"{"schema":1,"report":"boot","verdict":"not-ready","exit_code":3}"#;
        assert_eq!(take(boot), Ok(true));
        let iface = r#"{"schema":1,"report":"iface","verdict":"not-configured","exit_code":3,"netdev":"ib0","findings":[{"code":"interface-not-up","severity":"error","object":"ib0","message":"x","advice":[]}]}"#;
        assert_eq!(take(iface), Ok(true));
        assert_eq!(take(&iface.replace("\"exit_code\":3", "\"exit_code\":0")), Ok(true));
        let status = r#"{"schema":1,"report":"status","verdict":"ready","exit_code":0}"#;
        assert_eq!(take(status), Ok(false));
        assert!(take(&boot.replace(":1", ":2")).is_err_and(|e| e.contains("schema 2,")));
        assert!(take("{\"schema\":1").is_err());
        let kinds: Vec<_> = accounts.all.iter().map(|a| (a.kind, a.standing)).collect();
        assert_eq!(kinds, [(Kind::Boot, Standing::Missing), (Kind::Iface, Standing::Ready)]);
        assert!(accounts.boot.is_some());
    }

    #[test]
    fn a_report_is_known_by_its_beginning() {
        assert!(is_report(b"{\n  \"schema\": 1,\n"));
        assert!(!is_report(b"{\"_BOOT_ID\":\"b0\",\"MESSAGE\":\"x\"}"));
        assert!(!is_report(b"\"schema\""));
    }
}
