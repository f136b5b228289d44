#![allow(clippy::disallowed_methods, reason = "the kernel log is a device, not a file of the tree")]

use crate::names::Moment;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// One record of the kernel log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelLine {
    pub at: Moment,
    /// Severity, 0 (emergency) to 7 (debug).
    pub level: u8,
    /// The text, without the structured part that follows it.
    pub text: String,
}

/// The kernel log, read record by record as it grows (`/dev/kmsg`,
/// Documentation/ABI/testing/dev-kmsg).
#[derive(Debug)]
pub struct KernelLog {
    file: File,
}

impl KernelLog {
    /// Open it at its oldest record.
    ///
    /// # Errors
    /// EPERM without CAP_SYSLOG where `kernel.dmesg_restrict` is set.
    pub fn open() -> io::Result<Self> {
        let flags = nix::libc::O_NONBLOCK;
        let file = File::options().read(true).custom_flags(flags).open("/dev/kmsg")?;
        Ok(Self { file })
    }

    /// Open it behind its newest record.
    ///
    /// # Errors
    /// As [`KernelLog::open`].
    pub fn open_at_end() -> io::Result<Self> {
        let mut log = Self::open()?;
        log.file.seek(io::SeekFrom::End(0))?;
        Ok(log)
    }

    /// The records that came since the last call.
    ///
    /// # Errors
    /// The device cannot be read.
    pub fn drain(&mut self) -> io::Result<Vec<KernelLine>> {
        drain(&mut self.file)
    }
}

fn drain(device: &mut impl Read) -> io::Result<Vec<KernelLine>> {
    let mut lines = Vec::new();
    // A record is at most 8 KiB (CONSOLE_EXT_LOG_MAX); one read gives one.
    let mut record = [0_u8; 8192];
    loop {
        match device.read(&mut record) {
            Ok(0) => return Ok(lines),
            Ok(n) => {
                let bytes = record.get(..n).unwrap_or_default();
                lines.extend(parse(&String::from_utf8_lossy(bytes)));
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(lines),
            // EPIPE: records were overwritten before we came; go on with the oldest left.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

impl AsFd for KernelLog {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// `PRIORITY,SEQUENCE,USEC,FLAGS[,...];TEXT\n KEY=VALUE\n...`
pub(super) fn parse(record: &str) -> Option<KernelLine> {
    let (prefix, rest) = record.split_once(';')?;
    let mut fields = prefix.split(',');
    let priority: u32 = fields.next()?.parse().ok()?;
    let at = Moment::from_usec(fields.nth(1)?.parse().ok()?);
    let text = rest.lines().next().unwrap_or_default().to_owned();
    Some(KernelLine { at, level: u8::try_from(priority & 7).unwrap_or(7), text })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn no_record_panics(record in "(?s).{0,200}") {
            parse(&record);
        }
    }

    #[test]
    fn records_that_were_overwritten_end_nothing() {
        /// Gives what /dev/kmsg gives to who reads too slowly.
        struct Device(Vec<Result<&'static [u8], ErrorKind>>);
        impl Read for Device {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.pop().unwrap_or(Err(ErrorKind::WouldBlock))?.read(buffer)
            }
        }
        let mut device = Device(vec![
            Ok(b"6,9,3,-;new\n"),
            Err(ErrorKind::BrokenPipe),
            Err(ErrorKind::Interrupted),
            Ok(b"6,1,2,-;old\n"),
        ]);
        let lines = drain(&mut device).expect("lines");
        assert_eq!(lines.iter().map(|line| &*line.text).collect::<Vec<_>>(), ["old", "new"]);
        device.0.push(Err(ErrorKind::PermissionDenied));
        assert!(drain(&mut device).is_err());
    }

    #[test]
    fn a_record_is_taken_apart() {
        let record = "4,339,5140900,-;mlx5_core: probe of 0000:4b:00.0 failed with error -110\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4b:00.0\n";
        let text = "mlx5_core: probe of 0000:4b:00.0 failed with error -110".to_owned();
        assert_eq!(
            parse(record),
            Some(KernelLine { at: Moment::from_usec(5_140_900), level: 4, text })
        );
        assert_eq!(parse("30,1,2,-;systemd[1]: x").map(|l| l.level), Some(6));
        assert_eq!(parse("garbage"), None);
        assert_eq!(parse("x,y,z;"), None);
    }
}
