//! One rule of udev: what it is for, and what it does.

/// `KEY{attribute}OPERATOR"value"`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) key: &'a str,
    pub(super) attribute: &'a str,
    /// It compares, and does nothing.
    pub(super) compares: bool,
    pub(super) value: &'a str,
}

impl Token<'_> {
    pub(super) fn is_run(&self) -> bool {
        matches!(
            (self.key, self.attribute),
            ("RUN", "" | "program") | ("PROGRAM", _) | ("IMPORT", "program")
        )
    }
}

/// The tokens of a rule (udev(7)); what is no token is left out.
pub(super) fn tokens(rule: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = rule;
    while let Some((left, after)) = rest.split_once('"') {
        // A quote in the value has a backslash before it.
        let mut from = 0;
        let end = loop {
            let Some(at) = after.get(from..).and_then(|rest| rest.find('"')) else {
                return tokens;
            };
            if !after.get(..from + at).is_some_and(|value| value.ends_with('\\')) {
                break from + at;
            }
            from += at + 1;
        };
        let left = left.trim_start_matches([',', ' ', '\t']).trim_end_matches('e');
        let name = left.trim_end_matches(['=', '!', '+', '-', ':', ' ']);
        let (key, attribute) = name.split_once('{').unwrap_or((name, ""));
        tokens.push(Token {
            key,
            attribute: attribute.trim_end_matches('}'),
            compares: left.ends_with("==") || left.ends_with("!="),
            value: after.get(..end).unwrap_or_default(),
        });
        rest = after.get(end + 1..).unwrap_or_default();
    }
    tokens
}

/// True of a rule whose program says by its name that it is for InfiniBand.
fn runs_ours(tokens: &[Token<'_>]) -> bool {
    let mut runs = tokens.iter().filter(|token| token.is_run());
    runs.any(|run| ["mlnx", "mlx", "infiniband", "rdma"].iter().any(|w| run.value.contains(w)))
}

/// True unless the rule is for devices of a driver or vendor that has no InfiniBand.
pub(super) fn may_be_infiniband(tokens: &[Token<'_>]) -> bool {
    let is_other = |token: &Token<'_>| {
        let values = || token.value.split('|');
        token.compares
            && match (token.key, token.attribute) {
                ("DRIVER" | "DRIVERS", _) | ("ENV", "ID_NET_DRIVER") => !values().any(|driver| {
                    driver.contains('*')
                        || ["mlx", "ib", "hfi", "qib"].iter().any(|b| driver.starts_with(b))
                }),
                ("ATTR" | "ATTRS", "vendor") => !values()
                    .any(|v| matches!(v, "0x15b3" | "0x8086" | "0x1077") || v.contains('*')),
                ("SUBSYSTEM" | "SUBSYSTEMS", _) => !values().any(|subsystem| {
                    subsystem.contains('*')
                        || ["pci", "net", "infiniband", "module", "drivers", "aux"]
                            .iter()
                            .any(|b| subsystem.starts_with(b))
                }),
                _ => false,
            }
    };
    !tokens.iter().any(is_other) || runs_ours(tokens)
}

/// True of a rule that is for InfiniBand alone.
pub(super) fn is_infiniband(tokens: &[Token<'_>]) -> bool {
    let is_its = |token: &Token<'_>| {
        token.compares
            && match token.key {
                "SUBSYSTEM" | "SUBSYSTEMS" => token.value.starts_with("infiniband"),
                "DRIVER" | "DRIVERS" => token.value.contains("mlx"),
                "KERNEL" | "KERNELS" | "NAME" => ["ib", "mlx", "umad", "uverbs", "issm"]
                    .iter()
                    .any(|b| token.value.starts_with(b)),
                _ => token.value == "0x15b3",
            }
    };
    tokens.iter().any(is_its) || runs_ours(tokens)
}
