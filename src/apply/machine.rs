//! What boot has of its machine beside the tree that it looks at: the clock, its children and the
//! kernel's log. Behind this door is [`Live`], or the world of a test.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

use crate::host::lock::Held;
use crate::host::process::{self, Ended, Running};
use crate::host::{KernelLine, clock, kernel_log};
use crate::names::Moment;

/// A program that was started.
pub(super) trait Child: Debug {
    fn pid(&self) -> u32;

    /// When it was started.
    fn started(&self) -> Moment;

    /// As [`Running::ended`].
    fn ended(&mut self) -> io::Result<Option<Ended>>;

    /// As [`Running::ask_to_end`].
    fn ask_to_end(&self);
}

pub(super) trait Machine: Debug {
    /// The present, by CLOCK_MONOTONIC.
    fn now(&self) -> Moment;

    /// As [`process::find`].
    fn find(&self, program: &str) -> Option<PathBuf>;

    /// As [`process::start`].
    fn start(
        &self,
        program: &Path,
        args: &[String],
        lock: Option<Held>,
    ) -> io::Result<Box<dyn Child>>;

    /// As [`process::start_self`].
    fn start_self(&self, args: &[String]) -> io::Result<Box<dyn Child>>;

    /// As [`kernel_log`].
    fn kernel_log(&self) -> io::Result<Vec<KernelLine>>;
}

#[derive(Debug)]
pub(super) struct Live;

impl Machine for Live {
    fn now(&self) -> Moment {
        clock::now()
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        process::find(program)
    }

    fn start(
        &self,
        program: &Path,
        args: &[String],
        lock: Option<Held>,
    ) -> io::Result<Box<dyn Child>> {
        Ok(Box::new(process::start(program, args, lock)?))
    }

    fn start_self(&self, args: &[String]) -> io::Result<Box<dyn Child>> {
        Ok(Box::new(process::start_self(args)?))
    }

    fn kernel_log(&self) -> io::Result<Vec<KernelLine>> {
        kernel_log()
    }
}

impl Child for Running {
    fn pid(&self) -> u32 {
        Self::pid(self)
    }

    fn started(&self) -> Moment {
        self.started
    }

    fn ended(&mut self) -> io::Result<Option<Ended>> {
        Self::ended(self)
    }

    fn ask_to_end(&self) {
        Self::ask_to_end(self);
    }
}
