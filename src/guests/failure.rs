//! How a child of the service came to nothing. What virsh says is told apart
//! here, where it comes in; after that nobody reads its words to decide.

use std::io;

use crate::host;
use crate::host::process::Ended;
use crate::names::harmless;
use crate::workers;

/// Why there is no answer from a child, and what that means for what is done next. Printed as a
/// reason within a sentence, on one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) enum Failure {
    /// libvirt cannot be reached, or went away: nothing is known of the domain.
    LibvirtGone(String),
    /// The domain has no channel for a guest agent, so none will ever answer.
    NoAgentChannel(String),
    /// The child ended by itself and in failure, and said nothing.
    Silent(String),
    /// Anything else: it is about this one domain or unit.
    Other(String),
}

/// Texts that libvirt and virsh print if the connection cannot be made or is
/// lost, each with its file in libvirt's sources. All with LC_ALL=C.
const LIBVIRT_GONE: [(&str, &str); 10] = [
    ("failed to connect to the hypervisor", "tools/virsh.c"),
    ("Disconnected from", "tools/virsh.c"),
    ("Failed to connect socket", "src/rpc/virnetsocket.c"),
    ("End of file while reading data", "src/rpc/virnetsocket.c"),
    ("Cannot recv data", "src/rpc/virnetsocket.c"),
    ("Cannot write data", "src/rpc/virnetsocket.c"),
    ("client socket is closed", "src/rpc/virnetclient.c"),
    ("internal error: client socket", "src/rpc/virnetclient.c"),
    ("connection closed", "src/rpc/virkeepalive.c"),
    ("Connection reset by peer", "strerror(ECONNRESET), behind any of them"),
];

/// VIR_ERR_ARGUMENT_UNSUPPORTED of `qemuDomainAgentAvailable` in libvirt's
/// src/qemu/qemu_domain.c: the domain was started without that channel.
const NO_AGENT_CHANNEL: &str = "guest agent is not configured";

impl Failure {
    /// It could not be started, or not be waited for.
    pub(super) fn not_started(e: &io::Error) -> Self {
        Self::Other(host::answer(e))
    }

    /// It was killed at its deadline, as far as that went.
    pub(super) fn late(command: &str, killed: io::Result<()>) -> Self {
        let alive = killed.err().map(|e| format!(", and cannot be ended: {e}"));
        let alive = alive.unwrap_or_default();
        Self::Other(format!("{command} has not answered before the timeout{alive}"))
    }

    /// virsh said so itself, on standard error.
    fn said(text: String) -> Self {
        if LIBVIRT_GONE.iter().any(|(gone, _)| text.contains(gone)) {
            Self::LibvirtGone(text)
        } else if text.contains(NO_AGENT_CHANNEL) {
            Self::NoAgentChannel(text)
        } else {
            Self::Other(text)
        }
    }

    /// Of the child that starts a unit.
    pub(super) fn of_worker(failure: workers::Failure) -> Self {
        Self::Other(match failure {
            workers::Failure::Refused(refusal) => on_one_line(&refusal.said),
            other => other.to_string(),
        })
    }
}

/// What was said, which may quote what comes from anywhere.
fn on_one_line(said: &str) -> String {
    let lines = said.lines().map(str::trim).filter(|l| !l.is_empty());
    let lines: Vec<&str> = lines.map(|l| l.strip_prefix("error: ").unwrap_or(l)).collect();
    harmless(&lines.join("; "))
}

/// What a child that has ended wrote to standard output, or how it failed.
pub(super) fn output(ended: Ended, command: &str) -> Result<String, Failure> {
    let Some(status) = ended.failure else { return Ok(ended.stdout) };
    let said = on_one_line(&ended.stderr);
    Err(match status.is_by_signal() {
        _ if !said.is_empty() => Failure::said(said),
        true => Failure::Other(format!("{command}: {status}")),
        false => Failure::Silent(format!("{command}: {status}")),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Statuses as wait(2) gives them.
    const SUCCESS: i32 = 0;
    const EXIT_1: i32 = 0x100;
    const SIGKILL: i32 = 9;

    fn ended(status: i32, stderr: &str) -> Ended {
        Ended {
            failure: host::process::Failure::of_raw(status),
            stderr: stderr.to_owned(),
            stdout: "out".to_owned(),
            took: Duration::ZERO,
        }
    }

    fn meaning(stderr: &str) -> Failure {
        output(ended(EXIT_1, stderr), "virsh x").expect_err("failure")
    }

    fn is_libvirt_gone(stderr: &str) -> bool {
        matches!(meaning(stderr), Failure::LibvirtGone(_))
    }

    #[test]
    fn a_libvirt_that_cannot_be_reached_is_told_from_a_domain_that_fails() {
        for (gone, _) in LIBVIRT_GONE {
            assert!(is_libvirt_gone(&format!("error: {gone}: so")), "{gone}");
        }
        // As virsh prints them.
        for gone in [
            "error: failed to connect to the hypervisor\nerror: Failed to connect socket to '/var/run/libvirt/libvirt-sock': No such file or directory",
            "error: Disconnected from qemu:///system due to end of file\nerror: Failed to start domain 'vm'\nerror: End of file while reading data: Input/output error",
            "error: internal error: client socket is closed",
        ] {
            assert!(is_libvirt_gone(gone), "{gone}");
        }
        for domain in [
            "error: failed to get domain 'vm'",
            "error: Domain is already active",
            "error: Failed to start domain 'vm'\nerror: Hook script execution failed: internal error: Child process (/etc/libvirt/hooks/qemu vm prepare begin -) unexpected exit status 1: no",
            "error: Guest agent is not responding: QEMU guest agent is not connected",
        ] {
            assert!(matches!(meaning(domain), Failure::Other(_)), "{domain}");
        }
        let without = "error: argument unsupported: QEMU guest agent is not configured";
        assert!(matches!(meaning(without), Failure::NoAgentChannel(_)));
    }

    #[test]
    fn what_the_child_that_starts_a_unit_says_is_one_line() {
        let refusal = crate::model::Refusal {
            tried: "start a.service".to_owned(),
            errno: None,
            said: "its start failed\n\u{1b}[2J: End of file while reading data\n".to_owned(),
        };
        let failure = Failure::of_worker(refusal.into());
        assert_eq!(
            failure.to_string(),
            "its start failed; \u{fffd}[2J: End of file while reading data"
        );
        assert!(matches!(failure, Failure::Other(_)), "libvirt starts no units");
        let gone = workers::Failure::NoChild("the child was killed".to_owned());
        let gone = Failure::of_worker(gone).to_string();
        assert_eq!(gone, "cannot start a child process: the child was killed");
    }

    #[test]
    fn each_end_has_its_words() {
        let text = |result: Result<String, Failure>| result.expect_err("failure").to_string();
        assert_eq!(output(ended(SUCCESS, "warning"), "virsh x"), Ok("out".to_owned()));
        assert_eq!(
            text(output(ended(EXIT_1, "error: a\n\n error: b\u{1b}\nc\n"), "virsh x")),
            "a; b\u{fffd}; c"
        );
        let silent = output(ended(EXIT_1, "\n"), "virsh x");
        assert!(matches!(silent, Err(Failure::Silent(_))));
        assert_eq!(text(silent), "virsh x: exit status: 1");
        let killed = output(ended(SIGKILL, ""), "virsh x");
        assert!(matches!(killed, Err(Failure::Other(_))));
        assert_eq!(text(killed), "virsh x: signal: 9 (SIGKILL)");
        assert_eq!(
            Failure::late("virsh x", Ok(())).to_string(),
            "virsh x has not answered before the timeout"
        );
        let alive = Failure::late("virsh x", Err(io::Error::other("no")));
        assert_eq!(
            alive.to_string(),
            "virsh x has not answered before the timeout, and cannot be ended: no"
        );
    }
}
