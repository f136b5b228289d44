//! Secrets in texts that leave the host, left out as far as they can be known by what
//! stands before them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::evidence::words::secrets::{
    ARGUMENTS, NAMES, PROGRAMS, PUBLIC, QUALIFIED, SCHEMES, USER_INFO,
};

/// What a word means for the text after it. Upper and lower case are the same.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mark {
    /// The end of the name of a secret: `name=value`, `"name": "value"`, `--name value`. In a
    /// sentence a value has a digit or quotes: "password for root" has none.
    Name,
    /// The same, if the name has more before it: `api_key: value`. The bare word is too
    /// common: only `key=value`.
    Qualified,
    /// Before `user:password@`.
    UserInfo,
    /// Arguments of a command follow the next blank, in any form.
    Arguments,
    /// A program, with the letters of the options whose values are secrets.
    Program(&'static str),
    /// An option of such a program.
    Option,
}

/// The words, each with what it means.
static MARKS: LazyLock<Vec<(&str, Mark)>> = LazyLock::new(|| {
    let all = |words: &'static [&str], mark| words.iter().map(move |word| (*word, mark));
    let program = |row: &&'static str| {
        let (name, letters) = row.split_once(" -")?;
        Some((name, Mark::Program(letters)))
    };
    all(NAMES, Mark::Name)
        .chain(all(QUALIFIED, Mark::Qualified))
        .chain(all(USER_INFO, Mark::UserInfo))
        .chain(all(ARGUMENTS, Mark::Arguments))
        .chain(PROGRAMS.iter().filter_map(program))
        .chain([(" -", Mark::Option)])
        .collect()
});

/// No name of a secret, and no user with a password, is longer, bytes: what a long line is
/// searched for does not grow with its square.
const LONGEST: usize = 256;

/// Characters of base64 in one word at the end of a line which may be of a private key: a line
/// of one has 64 or 70.
const ENCODED: usize = 60;

static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).match_kind(MatchKind::LeftmostLongest);
    builder.build(MARKS.iter().map(|(word, _)| word)).ok()
});

/// `text` with `***` for each secret that can be known; it keeps its lines.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut done, mut begin, mut is_private_key) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        for secret in secrets(body, &mut is_private_key).into_iter().filter(|s| !s.is_empty()) {
            out.push_str(text.get(done..begin + secret.start).unwrap_or_default());
            out.push_str("***");
            done = begin + secret.end;
        }
        begin += line.len();
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// The secrets of a line, in their order. `is_private_key`: within a block of PEM (RFC 7468).
fn secrets(line: &str, is_private_key: &mut bool) -> Vec<Range<usize>> {
    if *is_private_key {
        *is_private_key = !line.contains("-----END ");
        return vec![Range { start: 0, end: line.len() }];
    }
    if let Some((_, kind)) = line.split_once("-----BEGIN ")
        && let Some((_, key)) = kind.split_once("PRIVATE KEY-----")
    {
        *is_private_key = !key.contains("-----END ");
        return vec![Range { start: line.len() - key.len(), end: line.len() }];
    }
    let Some(finder) = FINDER.as_ref() else { return vec![Range { start: 0, end: line.len() }] };
    let mut found: Vec<Range<usize>> = Vec::new();
    let (mut done, mut letters) = (0, "");
    for word in finder.find_iter(line) {
        let (head, rest) = line.split_at(word.end());
        let mark = MARKS.get(word.pattern().as_usize()).map(|(_, mark)| *mark);
        let value = match mark {
            _ if word.start() < done => None,
            Some(Mark::Name | Mark::Qualified) => named(head, rest, mark == Some(Mark::Name)),
            Some(Mark::UserInfo) => user_info(rest),
            Some(Mark::Arguments) => {
                let ends = |(at, c): &(usize, char)| *at >= LONGEST || c.is_whitespace();
                let end = rest.char_indices().find(ends);
                end.map(|(at, c)| at + c.len_utf8()..rest.len())
            }
            Some(Mark::Program(of)) => {
                letters = of;
                None
            }
            Some(Mark::Option) if rest.starts_with(|c: char| letters.contains(c)) => {
                Some(value(rest, 1 + blanks(rest.get(1..).unwrap_or_default())))
            }
            Some(Mark::Option) | None => None,
        };
        if let Some(value) = value {
            done = word.end() + value.end;
            found.push(word.end() + value.start..done);
        }
    }
    let last = line.rfind([' ', '\t']).map_or(0, |at| at + 1);
    let encoded = line.get(last..).unwrap_or_default();
    let is_base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
    // A longer word that begins so is a path.
    if last >= done
        && encoded.len() >= ENCODED
        && !encoded.starts_with('/')
        && encoded.bytes().all(is_base64)
    {
        found.push(last..line.len());
    }
    found
}

/// The name that `head` ends with, in lower case.
fn name(head: &str) -> String {
    let is_part = |b: &&u8| b.is_ascii_alphanumeric() || b"_-.".contains(b);
    let name = head.as_bytes().iter().rev().take(LONGEST).take_while(is_part);
    let name: Vec<u8> = name.map(u8::to_ascii_lowercase).collect();
    name.into_iter().rev().map(char::from).collect()
}

/// The value in `rest` of the name that `head` ends with: whatever else the name has if
/// `is_secret`.
fn named(head: &str, rest: &str, is_secret: bool) -> Option<Range<usize>> {
    let name = name(head);
    // `"NAME=value with blanks"`.
    let quote = head.as_bytes().iter().rev().nth(name.len()).filter(|b| b"\"'".contains(b));
    let quote = quote.filter(|_| rest.starts_with('=')).map(|b| char::from(*b));
    let ends_with = |word: &str| {
        name.strip_suffix(word).is_some_and(|head| !head.ends_with(|c: char| c.is_alphanumeric()))
    };
    if PUBLIC.iter().any(|word| ends_with(word)) {
        return None;
    }
    let is_option = name.starts_with('-');
    let is_secret =
        is_secret || is_option || ["key", "pass"].iter().any(|w| ends_with(w) && name != *w);
    let text_at = |at: usize| rest.get(at..).unwrap_or_default();
    // `wep-key0`, `"password"`, `\"password\"`.
    let end = skipped(rest, |c| c.is_ascii_digit());
    let end = end + skipped(text_at(end), |c| "\\\"'".contains(c));
    let next = end + blanks(text_at(end));
    let tail = text_at(next);
    if tail.starts_with(['=', ':']) && !tail.starts_with("::") {
        // `password => "value"`.
        let at = next + skipped(tail, |c| "=:>".contains(c));
        let at = at + blanks(text_at(at));
        if !is_secret && !rest.starts_with('=') {
            return None;
        }
        let closed = quote.and_then(|quote| text_at(at).find(quote)).filter(|length| *length > 0);
        if let Some(length) = closed {
            return Some(at..at + length);
        }
        let scheme = text_at(at).split(' ').next().unwrap_or_default();
        let is_scheme = SCHEMES.contains(&scheme.to_ascii_lowercase().as_str());
        return Some(value(rest, if is_scheme { at + scheme.len() + 1 } else { at }));
    }
    if !is_secret || next == end {
        return None;
    }
    let value = value(rest, next);
    let is_value = is_option
        || tail.starts_with(['"', '\''])
        || rest.get(value.clone())?.contains(|c: char| c.is_ascii_digit());
    is_value.then_some(value)
}

/// The user and password that `rest` begins with, up to their `@`.
fn user_info(rest: &str) -> Option<Range<usize>> {
    let ends = |(at, b): &(usize, u8)| *at >= LONGEST || b" \t/\"'@".contains(b);
    let (end, b) = rest.bytes().enumerate().find(ends)?;
    (b == b'@').then_some(0..end)
}

/// The value that begins at `at` of `text`: up to its closing quote, or as far as a word goes.
fn value(text: &str, at: usize) -> Range<usize> {
    let rest = text.get(at..).unwrap_or_default();
    let quote = skipped(rest, |c| c == '\\');
    let Some('"' | '\'') = rest.get(quote..).and_then(|rest| rest.chars().next()) else {
        let ends = |c: char| c.is_whitespace() || ",;\"'&)}]".contains(c);
        return at..at + rest.find(ends).unwrap_or(rest.len());
    };
    let (open, inner) = rest.split_at(quote + 1);
    let closes = |at: &usize| inner.get(..*at).is_some_and(|inner| !inner.ends_with('\\'));
    let end = inner.match_indices(open).map(|(at, _)| at).find(closes);
    let begin = at + open.len();
    begin..begin + end.unwrap_or(inner.len())
}

fn blanks(text: &str) -> usize {
    skipped(text, |c| c == ' ' || c == '\t')
}

/// The length of what `text` begins with and `is_skipped`.
fn skipped(text: &str, is_skipped: impl Fn(char) -> bool) -> usize {
    text.len() - text.trim_start_matches(is_skipped).len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secrets_are_left_out_in_every_form_that_they_are_written_in() {
        for (text, want) in [
            ("vers=3,password=geheim,uid=0", "vers=3,password=***,uid=0"),
            ("x --token='a b' --y", "x --token='***' --y"),
            ("PASSWORD=\"\" a", "PASSWORD=\"\" a"),
            ("psk=ä password=", "psk=*** password="),
            ("{\"password\":\"x\\\"y\", \"n\": 1}", "{\"password\":\"***\", \"n\": 1}"),
            (r#"{\"token\": \"x y\",\"n\":1}"#, r#"{\"token\": \"***\",\"n\":1}"#),
            ("password: x", "password: ***"),
            ("chap.password = x\nb = c", "chap.password = ***\nb = c"),
            ("password => 'x'", "password => '***'"),
            (
                "Environment=DB_PASSWORD=x \"API_TOKEN=y z\"",
                "Environment=DB_PASSWORD=*** \"API_TOKEN=***\"",
            ),
            ("AWS_SECRET_ACCESS_KEY=x PGPASS=y", "AWS_SECRET_ACCESS_KEY=*** PGPASS=***"),
            ("wep-key0=x luks_passphrase=y pwd=z", "wep-key0=*** luks_passphrase=*** pwd=***"),
            ("api-key: x; apikey=y, key=z", "api-key: ***; apikey=***, key=***"),
            ("--password x --token y --key=z", "--password *** --token *** --key=***"),
            ("Password 7x", "Password ***"),
            ("Authorization: Bearer x' -k", "Authorization: Bearer ***' -k"),
            ("Authorization: x", "Authorization: ***"),
            ("got Bearer x7", "got Bearer ***"),
            ("https://u:x@h/p?api_key=y&b=c", "https://***@h/p?api_key=***&b=c"),
            ("netroot=iscsi:u:x@10.1.2.3::3260::iqn", "netroot=iscsi:***@10.1.2.3::3260::iqn"),
            (
                "rd.luks.key=x systemd.set_credential=a:x",
                "rd.luks.key=*** systemd.set_credential=***",
            ),
            ("ipmitool -U ADMIN -P x lan", "ipmitool -U ADMIN -P *** lan"),
            ("mysql -u root -px; mkdir -p y", "mysql -u root -p***; mkdir -p ***"),
            ("curl -u a:x h\nmkdir -u y", "curl -u *** h\nmkdir -u y"),
            ("m_key 0x12\nsm_key = \"0x0\"", "m_key ***\nsm_key = \"***\""),
            ("PWD=/a ; COMMAND=/bin/mysql -p x 'y'", "PWD=*** ; COMMAND=/bin/mysql ***"),
            ("EXECVE argc=2 a0=\"x\" a1=\"y\"", "EXECVE argc=2 ***"),
            ("CMD (MYSQL_PWD=x backup)", "CMD (MYSQL_PWD=*** backup)"),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nx\ny\n-----END RSA PRIVATE KEY-----\nb\n",
                "a\n-----BEGIN RSA PRIVATE KEY-----\n***\n***\n***\nb\n",
            ),
        ] {
            assert_eq!(without_secrets(text), want);
        }
        let encoded = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz";
        assert_eq!(without_secrets(&format!("x: {encoded}")), "x: ***");
    }

    #[test]
    fn what_a_diagnosis_needs_stays() {
        for text in [
            "no secret here, Failed password for root, Password Requests to Wall",
            "P_Key 0x8001, pkey = 0x8001, partition_pkey: 0x7fff, Q_Key 0x80010000",
            "mlx5_0: mkey 0x1234, rkey=0x7, lkey: 5",
            "M_Key violation, m_key_lease_period 60, key: 5, wrong key \"timeuot\"",
            "[pf.vfs] = { pkeys = [\"0x8001\"] }",
            "Pass 1: checking, bypass: on, tokio::token::x",
            "Accepted publickey for bob from 10.1.2.3",
            "https://docs.example.org/a?b=c@d file:///x iscsi: done",
            "mkdir -p /a; ibstat -p",
            "/sys/devices/pci0000/4b/00/infiniband/mlx5/ports/1/gids/and/so/on/and/on",
        ] {
            assert_eq!(without_secrets(text), text);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_lines_stay(text in "([ -~\nä]|key|pass|token|://|-----BEGIN PRIVATE KEY-----| -){0,80}") {
            let new = without_secrets(&text);
            prop_assert_eq!(new.lines().count(), text.lines().count());
        }
    }
}
