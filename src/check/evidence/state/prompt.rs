//! What was typed at a prompt, and what came of it.

use super::super::event::Origin;
use super::limit::LIMIT;
use crate::check::pattern::word;

/// What was typed at a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// What was typed.
    pub text: String,
    /// What came of it, line by line.
    pub output: Vec<(Origin, String)>,
    /// Its line.
    pub origin: Origin,
}

impl Command {
    /// The first line of output, trimmed.
    #[must_use]
    pub fn answer(&self) -> &str {
        self.output.first().map_or("", |(_, text)| text.trim())
    }
}

/// Lines of output that are kept with a command.
const OUTPUT: usize = 16;

#[derive(Debug, Default)]
pub(super) struct PromptReader {
    in_command: bool,
}

impl PromptReader {
    pub(super) fn typed(&mut self, typed: &str, origin: Origin, commands: &mut Vec<Command>) {
        self.in_command = commands.len() < LIMIT;
        if self.in_command {
            commands.push(Command { text: typed.to_owned(), output: Vec::new(), origin });
        }
    }

    pub(super) fn line(&self, text: &str, origin: Origin, commands: &mut [Command]) {
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
#[must_use]
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

/// A program and its arguments.
pub(super) type Stage = Vec<String>;

/// What was typed, taken apart as a shell would; what is not understood of it
/// (variables, loops) stays as it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Programs that are piped together, for each of the commands that follow
    /// each other.
    pub pipelines: Vec<Vec<Stage>>,
    /// True if output went to a file.
    pub redirected: bool,
}

impl Line {
    pub(super) fn parse(typed: &str) -> Self {
        let mut parser = Parser::default();
        let mut chars = typed.chars().peekable();
        while let Some(c) = chars.next() {
            if let Some(quote) = parser.quote {
                if c == quote {
                    parser.quote = None;
                } else {
                    parser.word.push(c);
                }
                continue;
            }
            match c {
                '\'' | '"' => {
                    parser.quote = Some(c);
                    parser.in_word = true;
                }
                '\\' => {
                    parser.word.extend(chars.next());
                    parser.in_word = true;
                }
                '#' if !parser.in_word => break,
                '|' if chars.peek() != Some(&'|') => parser.end_stage(),
                '|' | '&' | ';' => parser.end_pipeline(),
                '>' | '<' => {
                    // Errors are no output.
                    parser.line.redirected |= c == '>' && parser.word != "2";
                    parser.word.clear();
                    parser.in_word = false;
                    while chars.next_if(|c| ['>', '&', ' '].contains(c)).is_some() {}
                    while chars.next_if(|c| !c.is_whitespace() && !";|&".contains(*c)).is_some() {}
                }
                c if c.is_whitespace() => parser.end_word(),
                c => {
                    parser.word.push(c);
                    parser.in_word = true;
                }
            }
        }
        parser.end_pipeline();
        parser.line
    }

    /// The pipelines that begin with `program`: its arguments, and what it is
    /// piped to.
    pub(super) fn of<'a>(
        &'a self,
        program: &'a str,
    ) -> impl Iterator<Item = (&'a [String], &'a [Stage])> {
        self.pipelines.iter().filter_map(move |pipeline| {
            let (first, rest) = pipeline.split_first()?;
            let first = match first.split_first() {
                Some((sudo, rest)) if sudo == "sudo" => rest,
                _ => first,
            };
            let (name, arguments) = first.split_first()?;
            (name.rsplit('/').next() == Some(program)).then_some((arguments, rest))
        })
    }
}

#[derive(Debug, Default)]
struct Parser {
    line: Line,
    pipeline: Vec<Stage>,
    stage: Stage,
    word: String,
    in_word: bool,
    quote: Option<char>,
}

impl Parser {
    fn end_word(&mut self) {
        if std::mem::take(&mut self.in_word) {
            self.stage.push(std::mem::take(&mut self.word));
        }
    }

    fn end_stage(&mut self) {
        self.end_word();
        self.pipeline.push(std::mem::take(&mut self.stage));
    }

    fn end_pipeline(&mut self) {
        self.end_word();
        if !self.stage.is_empty() || !self.pipeline.is_empty() {
            self.end_stage();
            self.line.pipelines.push(std::mem::take(&mut self.pipeline));
        }
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
    fn what_is_typed_is_taken_apart() {
        let parse = |text: &str| {
            let line = Line::parse(text);
            let stage = |s: &Stage| s.join("+");
            let pipelines: Vec<String> = line
                .pipelines
                .iter()
                .map(|p| p.iter().map(stage).collect::<Vec<_>>().join("|"))
                .collect();
            (pipelines.join(";"), line.redirected)
        };
        for (text, expected, redirected) in [
            ("lsmod|grep -E 'mlx|ib_'", "lsmod|grep+-E+mlx|ib_", false),
            ("sudo /sbin/lsmod 2>/dev/null | grep \"a b\"", "sudo+/sbin/lsmod|grep+a b", false),
            ("lsmod 2>&1 | grep x # all", "lsmod|grep+x", false),
            ("lsmod > modules.txt", "lsmod", true),
            ("ibstat && ip -br a; uptime", "ibstat;ip+-br+a;uptime", false),
            ("grep mlx\\|ib x", "grep+mlx|ib+x", false),
            ("| ''", "|", false),
        ] {
            assert_eq!(parse(text), (expected.to_owned(), redirected), "{text}");
        }
        let line = Line::parse("sudo /sbin/lsmod | grep x");
        assert_eq!(line.of("lsmod").count(), 1);
        assert_eq!(line.of("grep").count(), 0);
    }

    proptest! {
        #[test]
        fn no_line_panics(text in r#"[ '"\\|&;<>#$@~\[\]a-z2Ä]{0,60}"#) {
            let _ = typed(&text);
            let line = Line::parse(&text);
            prop_assert!(line.pipelines.iter().flatten().flatten().map(String::len).sum::<usize>() <= text.len());
        }
    }
}
