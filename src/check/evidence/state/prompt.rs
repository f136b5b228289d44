//! What was typed at a prompt, and what came of it.

use super::super::event::Origin;
use super::LIMIT;
use crate::check::ledger::words::is_program;
use crate::check::pattern::word;

/// What was typed at a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    pub text: String,
    /// What came of it, line by line.
    pub output: Vec<(Origin, String)>,
    pub origin: Origin,
}

impl Command {
    /// The first line of output, trimmed.
    pub fn answer(&self) -> &str {
        self.output.first().map_or("", |(_, text)| text.trim())
    }
}

/// Lines of output that are kept with a command.
const OUTPUT: usize = 16;

#[derive(Debug, Default)]
pub(super) struct PromptReader {
    in_command: bool,
    /// The program that prints what follows; empty where that is not known.
    pub(super) program: String,
}

impl PromptReader {
    pub(super) fn typed(&mut self, typed: &str, origin: Origin, commands: &mut Vec<Command>) {
        self.in_command = commands.len() < LIMIT;
        let first = typed.split(['|', '&', ';', '<', '>']).next().unwrap_or_default();
        let program = Line::parse(first).program;
        self.program = Some(program).filter(|name| is_program(name)).unwrap_or_default().into();
        if self.in_command {
            commands.push(Command { text: typed.to_owned(), output: Vec::new(), origin });
        }
    }

    pub(super) fn line(&mut self, text: &str, origin: Origin, commands: &mut [Command]) {
        if text.starts_with("hca_id:") {
            "ibv_devinfo".clone_into(&mut self.program);
        }
        if self.in_command
            && let Some(command) = commands.last_mut()
            && command.output.len() < OUTPUT
        {
            command.output.push((origin, text.to_owned()));
        }
    }
}

/// What was typed behind a shell's prompt: `# x`, `$ x`, `[root@n1 ~]# x`,
/// `root@n1:/sys# x`.
pub fn typed(text: &str) -> Option<&str> {
    let text = text.trim();
    let bare = text.strip_prefix("# ").or_else(|| text.strip_prefix("$ "));
    let typed = bare.or_else(|| {
        let (head, rest) = text.split_once("# ").or_else(|| text.split_once("$ "))?;
        let prompt = head.contains('@') || head.ends_with(['~', ']']);
        (prompt && head.len() < 128).then_some(rest)
    })?;
    // `# ` also begins a comment in a configuration file.
    let first = word(typed);
    let program = !first.is_empty() && !first.starts_with(|c: char| c.is_ascii_uppercase());
    program.then_some(typed.trim())
}

/// A program that was typed, and its arguments; neither if the shell does more with the
/// line than start it: what comes of it may then be any part of what the program prints.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Without its path and `sudo`.
    pub program: &'a str,
    pub arguments: Vec<&'a str>,
}

impl<'a> Line<'a> {
    pub(super) fn parse(typed: &'a str) -> Self {
        if typed.contains(['|', '&', ';', '<', '>', '(', '`']) {
            return Self::default();
        }
        let mut words = typed.split_whitespace().skip_while(|word| *word == "sudo");
        let path = words.next().unwrap_or_default();
        let program = path.rsplit('/').next().unwrap_or_default();
        Self { program, arguments: words.collect() }
    }
}

/// Each line of a dump: one that was typed as what it means, or as it is.
#[cfg(test)]
pub(super) fn feed<'a>(dump: &'a str, mut take: impl FnMut(Result<Line<'a>, &'a str>)) {
    for line in dump.lines() {
        take(typed(line).map(Line::parse).ok_or(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_typed_is_told_from_what_is_printed() {
        for (line, expected) in [
            ("# lsmod", Some("lsmod")),
            ("[root@n1 ~]# ip link", Some("ip link")),
            ("root@n1:/sys# cat x", Some("cat x")),
            ("deb:~$ ibstat", Some("ibstat")),
            ("# A comment", None),
            ("ib_core 1 2", None),
        ] {
            assert_eq!(typed(line), expected, "{line}");
        }
    }

    #[test]
    fn only_a_program_alone_is_understood() {
        for (typed, program, arguments) in [
            ("lsmod", "lsmod", ""),
            ("sudo /sbin/ip -br a", "ip", "-br a"),
            ("lsmod|grep mlx", "", ""),
            ("lsmod > modules.txt", "", ""),
            ("ibstat && ip -br a; uptime", "", ""),
            ("echo $(lsmod)", "", ""),
            ("", "", ""),
        ] {
            let line = Line::parse(typed);
            assert_eq!((line.program, line.arguments.join(" ").as_str()), (program, arguments));
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(text in r#"[ '"\\|&;<>#$@~\[\]a-z2Ä]{0,60}"#) {
            let _ = typed(&text);
            let _ = Line::parse(&text);
        }
    }
}
