//! Variables of a shell script, as far as they are plain: a path or a name is often kept in one.

use std::collections::BTreeMap;

/// No value is kept that is longer, bytes.
const LIMIT: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Variables(BTreeMap<String, String>);

impl Variables {
    /// `line` with the values that earlier lines have given, which it may change.
    pub(super) fn expanded(&mut self, line: &str) -> String {
        let line = self.replaced(line);
        let mut words = line.split_whitespace();
        let first = words.find(|w| !matches!(*w, "export" | "local" | "readonly" | "declare"));
        match first {
            // As if the loop ran once, with all of its words.
            Some("for") => {
                if let (Some(name), Some("in")) = (words.next(), words.next()) {
                    let all = words.take_while(|word| *word != "do").collect::<Vec<_>>().join(" ");
                    self.keep(name, all.split(';').next().unwrap_or_default());
                }
            }
            Some(word) => {
                if let Some((name, _)) = word.split_once('=') {
                    let value = line.split_once('=').map_or("", |(_, value)| value.trim_start());
                    let value = match value.strip_prefix(['"', '\'']) {
                        Some(quoted) => quoted.split(['"', '\'']).next(),
                        None => {
                            value.split(|c: char| c.is_whitespace() || ";&|".contains(c)).next()
                        }
                    };
                    self.keep(name, value.unwrap_or_default());
                }
            }
            None => {}
        }
        without_inner_quotes(&self.replaced(&line))
    }

    fn keep(&mut self, name: &str, value: &str) {
        let is_plain = !value.is_empty() && value.len() <= LIMIT && !value.contains(['`', '$']);
        if !is_plain {
            self.0.remove(name);
        } else if name_end(name) == name.len() {
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }

    fn replaced(&self, line: &str) -> String {
        let mut text = String::with_capacity(line.len());
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('$') {
            let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let (inner, behind) = braced.unwrap_or_else(|| after.split_at(name_end(after)));
            let (name, operation) = inner.split_at(name_end(inner));
            let default = operation.strip_prefix(":-").or_else(|| operation.strip_prefix('-'));
            let value = self.0.get(name).map(String::as_str).or(default);
            let is_known = operation.is_empty() || default.is_some();
            let raw = after.get(..after.len() - behind.len()).unwrap_or_default();
            text.push_str(before);
            match value.filter(|_| is_known) {
                Some(value) => text.push_str(value),
                None => text.extend(["$", raw]),
            }
            rest = behind;
        }
        text.push_str(rest);
        text
    }
}

/// `a"b"c` is one word, `abc`.
pub(super) fn without_inner_quotes(line: &str) -> String {
    let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let mut before = None;
    let mut rest = line.chars();
    let mut text = String::with_capacity(line.len());
    while let Some(c) = rest.next() {
        let is_inner = !is_space(before) && !is_space(rest.clone().next());
        before = Some(c);
        if !(is_inner && matches!(c, '"' | '\'')) {
            text.push(c);
        }
    }
    text
}

/// Where the name of a variable ends that `text` begins with; a parameter is one of a digit.
fn name_end(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 1;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(lines: &[&str]) -> String {
        let mut variables = Variables::default();
        lines.iter().map(|line| variables.expanded(line)).last().unwrap_or_default()
    }

    #[test]
    fn what_is_kept_is_put_in_where_it_is_used() {
        for (lines, want) in [
            (&["D=mlx5", "P=${D}_0", "echo 4 >/x/$P/y"][..], "echo 4 >/x/mlx5_0/y"),
            (&["local d='a b'; x", "e $d."], "e a b."),
            (&["for d in /x/*/n; do", "echo >\"$d\""], "echo >/x/*/n\""),
            (&["D=\"m_0\"", "e \"4\" >/x/\"$D\"/y 'a b'"], "e \"4\" >/x/m_0/y 'a b'"),
            (&["for i in ib0 ib1", "do ip link set $i up"], "do ip link set ib0 ib1 up"),
            (&["N=${1:-8} # how many", "e $N ${2-ib0} ${3}"], "e 8 ib0 ${3}"),
            // What a program prints is not known, and no longer what was kept before.
            (&["P=x", "P=$(ls /x)", "e $P"], "e $P"),
            (&["e ${a[$i]} $((i+1)) $1 $ $"], "e ${a[$i]} $((i+1)) $1 $ $"),
        ] {
            assert_eq!(last(lines), want, "{lines:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "([$]|[{]|[}]|:-|=|for i in |\"|[ -~]|é|\n)*") {
            let mut variables = Variables::default();
            text.lines().for_each(|line| { variables.expanded(line); });
        }
    }
}
