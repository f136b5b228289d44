//! What a run does at an adapter: it asks for the settings, writes what differs, and reads back
//! what the adapter has then, which alone counts.

use std::io;

use super::answer::{Answer, Lacks, ToolOutput, lacking};
use super::judge::{Past, judge, to_write};
use super::record::Written;
use super::{CPU_MODEL, CPU_OFFLOAD, shown};
use crate::config::FirmwareSetting;
use crate::model::{
    Finding,
    firmware::{CardSettings, Setting, State, shown_value},
};
use crate::names::{FirmwareName, PciAddress, harmless};

/// What a task needs of the host.
pub trait Host {
    /// Runs the tool with `args`.
    ///
    /// # Errors
    /// It cannot be run, or does not end; a sentence.
    fn tool(&mut self, args: &[String]) -> Result<ToolOutput, String>;

    /// Goes over to the tool's other name for this adapter; false if there is none.
    fn change_tool(&mut self) -> bool;

    /// Keeps in the record what was written to the adapter.
    ///
    /// # Errors
    /// It cannot be kept; a sentence.
    fn keep(&mut self, written: &[Written]) -> Result<(), String>;

    /// Prints what is about to be written.
    ///
    /// # Errors
    /// Standard output is gone.
    fn announce(&mut self, text: &str) -> io::Result<()>;
}

/// An adapter, and what is to be done there.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// One of its functions.
    pub pci: PciAddress,
    /// What is configured for it.
    pub wanted: &'a [FirmwareSetting],
    pub ports: u8,
    pub is_bluefield: bool,
    pub boot_id: &'a str,
    /// Seconds since 1970.
    pub now: u64,
    /// What differs is written,
    pub apply: bool,
    /// and so is what was written before without effect.
    pub again: bool,
}

impl Task<'_> {
    /// Does it. `written` is what the record has of this adapter.
    ///
    /// # Errors
    /// Standard output is gone.
    pub fn run(
        &self,
        card: &mut CardSettings,
        written: Vec<Written>,
        host: &mut impl Host,
    ) -> io::Result<()> {
        let answer = match self.query(Lacks::new(), host) {
            Ok(answer) => answer,
            Err(why) => {
                self.unreadable(card, why);
                return Ok(());
            }
        };
        card.device_type.clone_from(&answer.device_type);
        if self.wanted.is_empty() {
            card.settings = answer.settings;
            return Ok(());
        }
        let past = Past { written: &written, boot_id: self.boot_id };
        card.settings = judge(self.wanted, &answer, past);
        if self.is_bluefield && answer.is(CPU_MODEL, 1) && answer.is(CPU_OFFLOAD, 0) {
            let why = "the BlueField is in DPU mode: set these from the BlueField's own system";
            card.problem = Some(why.to_owned());
            return Ok(());
        }
        let due = to_write(self.wanted, &card.settings, past, self.again);
        if self.apply && !due.is_empty() {
            host.announce(&self.difference(&due, &card.settings))?;
            self.write(card, &due, answer.lacks, written, host);
        }
        Ok(())
    }

    /// Nothing of the settings of `card` is known, because of this.
    pub fn unreadable(&self, card: &mut CardSettings, why: String) {
        card.problem = Some(why);
        let one = |setting: &FirmwareSetting| Setting {
            wanted: Some(setting.value.clone()),
            state: State::Unreadable,
            ..Setting::shown(setting.name.clone(), None, None)
        };
        card.settings = self.wanted.iter().map(one).collect();
    }

    /// The settings to ask for.
    fn names(&self) -> Vec<FirmwareName> {
        let mut names: Vec<_> = match self.wanted {
            [] => shown(self.ports),
            wanted => wanted.iter().map(|setting| setting.name.clone()).collect(),
        };
        let has = |name: &str| names.iter().any(|n| n.as_str() == name);
        let mut also = Vec::new();
        if has(FirmwareName::NUM_OF_VFS) {
            also.push(FirmwareName::PER_PF);
        }
        if self.is_bluefield {
            also.extend([CPU_MODEL, CPU_OFFLOAD]);
        }
        also.retain(|name| !has(name));
        names.extend(also.into_iter().filter_map(|name| name.parse().ok()));
        names
    }

    fn call(&self, words: &[&str], more: impl Iterator<Item = String>) -> Vec<String> {
        let head = ["-d".to_owned(), self.pci.to_string()].into_iter();
        head.chain(words.iter().map(ToString::to_string)).chain(more).collect()
    }

    /// Asks for the settings but those that are lacking; what is found to be is left out of the
    /// next try.
    fn query(&self, mut lacks: Lacks, host: &mut impl Host) -> Result<Answer, String> {
        let mut version = None;
        loop {
            let mut names = self.names();
            names.retain(|name| !lacks.contains_key(name));
            if names.is_empty() {
                return Ok(Answer { lacks, ..Answer::default() });
            }
            let args = self.call(&["-e", "q"], names.iter().map(ToString::to_string));
            let mut said = host.tool(&args)?;
            if said.is_unreachable() && host.change_tool() {
                said = host.tool(&args)?;
            }
            match said.answer().errors.iter().find_map(|error| lacking(error)) {
                Some((name, state)) if names.contains(&name) => {
                    let why = (state == State::UnknownName).then(|| {
                        let version = version.get_or_insert_with(|| version_of(host));
                        format!("its database lacks the name: {version}")
                    });
                    lacks.insert(name, (state, why));
                }
                _ => return said.good().map(|answer| Answer { lacks, ..answer }),
            }
        }
    }

    /// What is about to be written.
    fn difference(&self, due: &[FirmwareSetting], settings: &[Setting]) -> String {
        let line = |setting: &FirmwareSetting| {
            let judged = settings.iter().find(|judged| judged.name == setting.name);
            let next = judged.and_then(|judged| judged.next.as_deref()).unwrap_or("unknown");
            let (pci, name, wanted) = (self.pci, &setting.name, shown_value(&setting.value));
            format!("{pci}: {name} of the next boot: {next} -> {wanted}\n")
        };
        due.iter().map(line).collect()
    }

    /// Writes `due`, and reads back what the adapter has then.
    fn write(
        &self,
        card: &mut CardSettings,
        due: &[FirmwareSetting],
        lacks: Lacks,
        mut written: Vec<Written>,
        host: &mut impl Host,
    ) {
        let is_due = |name: &FirmwareName| due.iter().any(|setting| setting.name == *name);
        let not_set = |card: &mut CardSettings, why: &str| {
            for setting in card.settings.iter_mut().filter(|setting| is_due(&setting.name)) {
                (setting.state, setting.reason) = (State::NotSet, Some(why.to_owned()));
            }
        };
        let is_in = |card: &CardSettings, name: &FirmwareName, state| {
            card.settings.iter().any(|setting| setting.name == *name && setting.state == state)
        };
        // What has had effect since needs no record.
        written.retain(|old| !is_due(&old.name) && !is_in(card, &old.name, State::AsWanted));
        let new = due.iter().map(|setting| Written {
            name: setting.name.clone(),
            value: setting.value.clone(),
            boot_id: self.boot_id.to_owned(),
            time: self.now,
            said: None,
        });
        written.extend(new);
        if let Err(why) = host.keep(&written) {
            return not_set(card, &why);
        }
        let pairs = due.iter().map(|setting| format!("{}={}", setting.name, setting.value));
        let said = match host.tool(&self.call(&["-y", "set"], pairs)) {
            Ok(said) => said,
            Err(why) => {
                card.problem = Some(why);
                return not_set(card, "it is not known whether the tool has written it");
            }
        };
        card.effect = said.answer().effect;
        for new in written.iter_mut().filter(|new| is_due(&new.name)) {
            new.said.clone_from(&card.effect);
        }
        let keep = |card: &mut CardSettings, host: &mut _, written: &[Written]| {
            if let Err(why) = Host::keep(host, written) {
                card.findings.push(Finding::not_read(why).about(card.pci));
            }
        };
        keep(card, host, &written);
        let answer = match self.query(lacks, host) {
            Ok(answer) => answer,
            Err(why) => {
                card.problem = Some(format!("after the write, {why}"));
                return not_set(card, "it is not known whether the adapter has it");
            }
        };
        let past = Past { written: &written, boot_id: self.boot_id };
        card.settings = judge(self.wanted, &answer, past);
        let refused = said.good().err();
        let lost = "the tool reported success, and the adapter does not have it for the next boot";
        for setting in card.settings.iter_mut().filter(|setting| is_due(&setting.name)) {
            if setting.state != State::ToBeSet {
                card.written.push(setting.name.clone());
                continue;
            }
            setting.state = State::NotSet;
            setting.reason = Some(refused.clone().unwrap_or_else(|| lost.to_owned()));
        }
        // What was refused was not written.
        if refused.is_some() {
            written.retain(|new| !is_in(card, &new.name, State::NotSet));
            keep(card, host, &written);
        }
    }
}

/// The line in which the tool tells its version.
fn version_of(host: &mut impl Host) -> String {
    let said = match host.tool(&["-v".to_owned()]) {
        Ok(said) => said.stdout,
        Err(why) => why,
    };
    harmless(said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::model::firmware::FirmwareReport;
    use crate::names::FirmwareValue;
    use crate::show::{self, screen::Screen};

    /// Stands for the tool and the adapter: it answers as mstconfig 4.21 prints.
    #[derive(Default)]
    struct StandIn {
        /// Name, current value, next value; a name alone is not printed.
        settings: Vec<Vec<&'static str>>,
        unknown: &'static [&'static str],
        lacking: &'static [&'static str],
        /// What a set prints instead of doing it, and how it ends.
        set: Option<(&'static str, Option<&'static str>)>,
        /// Nothing answers from this call on.
        hangs_at: Option<usize>,
        keeps_no_record: bool,
        /// What mstconfig prints of any query, and to standard error.
        unreachable: Option<(&'static str, &'static str)>,
        /// mlxconfig is installed too, and is used from now on.
        others: bool,
        other: bool,
        calls: Vec<String>,
        kept: Vec<Vec<Written>>,
        announced: String,
    }

    impl StandIn {
        fn query(&self, names: &[String]) -> (String, Option<&'static str>) {
            let mut text =
                "Device type:    ConnectX6\n\nConfigurations:   Default   Current   Next Boot\n"
                    .to_owned();
            for name in names.iter().map(String::as_str) {
                if self.unknown.contains(&name) {
                    return (format!("-E- Unknown Parameter: {name}\n"), Some("exit code 3"));
                }
                if self.lacking.contains(&name) {
                    let text = format!("-E- The Device doesn't support {name} parameter\n");
                    return (text, Some("exit code 3"));
                }
                let of_it = self.settings.iter().find(|setting| setting[0] == name);
                let of_it = of_it.map_or_else(|| vec![name, "0", "0"], Clone::clone);
                if let [name, current, next] = of_it[..] {
                    text += &format!("*    {name}   0   {current}   {next}\n");
                }
            }
            (text, None)
        }

        fn set(&mut self, pairs: &[String]) -> (String, Option<&'static str>) {
            if let Some((said, failure)) = self.set {
                return (said.to_owned(), failure);
            }
            for pair in pairs {
                let (name, value) = pair.split_once('=').expect("a value");
                let of_it = self.settings.iter_mut().find(|setting| setting[0] == name);
                of_it.expect(name)[2] = value.to_owned().leak();
            }
            (format!("Applying... Done!\n{REBOOT}\n"), None)
        }
    }

    const REBOOT: &str = "-I- Please reboot machine to load new configurations.";

    impl Host for StandIn {
        fn tool(&mut self, args: &[String]) -> Result<ToolOutput, String> {
            let name = if self.other { "mlxconfig" } else { "mstconfig" };
            let command = format!("{name} {}", args.join(" "));
            self.calls.push(command.clone());
            if self.hangs_at.is_some_and(|at| self.calls.len() > at) {
                return Err(format!("{command}: process 7 has not ended"));
            }
            if let Some((stdout, stderr)) = self.unreachable.filter(|_| !self.other) {
                let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
                return Ok(ToolOutput {
                    command,
                    stdout,
                    stderr,
                    failure: Some("exit code 3".into()),
                });
            }
            let (stdout, failure) = match args {
                [_, _, _, verb, names @ ..] if verb == "q" => self.query(names),
                [_, _, _, verb, pairs @ ..] if verb == "set" => self.set(pairs),
                [version] if version == "-v" => ("\nmstconfig, mstflint 4.21.0\n".to_owned(), None),
                other => panic!("{other:?}"),
            };
            let failure = failure.map(str::to_owned);
            Ok(ToolOutput { command, stdout, stderr: String::new(), failure })
        }

        fn change_tool(&mut self) -> bool {
            std::mem::replace(&mut self.other, self.others) != self.others
        }

        fn keep(&mut self, written: &[Written]) -> Result<(), String> {
            self.kept.push(written.to_vec());
            let why = "cannot write the record: ENOSPC (No space left on device)";
            if self.keeps_no_record { Err(why.to_owned()) } else { Ok(()) }
        }

        fn announce(&mut self, text: &str) -> io::Result<()> {
            self.announced += text;
            Ok(())
        }
    }

    fn setting(name: &str, value: FirmwareValue) -> FirmwareSetting {
        FirmwareSetting { name: name.parse().expect("name"), value, origin: String::new() }
    }

    fn number(name: &str, number: u64) -> FirmwareSetting {
        setting(name, FirmwareValue::Number(number))
    }

    fn before(setting: &FirmwareSetting) -> Written {
        let (name, value) = (setting.name.clone(), setting.value.clone());
        Written { name, value, boot_id: "before".to_owned(), time: 1, said: None }
    }

    fn task(wanted: &[FirmwareSetting]) -> Task<'_> {
        Task {
            pci: "0000:4b:00.0".parse().expect("address"),
            wanted,
            ports: 1,
            is_bluefield: false,
            boot_id: "now",
            now: 2,
            apply: true,
            again: false,
        }
    }

    fn run(task: Task<'_>, record: Vec<Written>, host: &mut StandIn) -> CardSettings {
        let mut card = CardSettings::new(task.pci, None);
        task.run(&mut card, record, host).expect("standard output");
        card
    }

    /// What is printed of the adapter, the messages, and the exit code.
    fn told(card: CardSettings, expected: &Expect) {
        let report = FirmwareReport { tool: "mstconfig".to_owned(), adapters: vec![card] };
        let told = report.to_report();
        let findings = told.findings.iter().map(|finding| format!("{finding}\n"));
        let text = format!(
            "{}{}exit {}\n",
            show::firmware::text(&report, Screen::default()),
            findings.collect::<String>(),
            told.exit_code
        );
        expected.assert_eq(&text);
    }

    #[test]
    fn where_mstconfig_does_not_get_at_the_settings_mlxconfig_is_asked() {
        let wanted = [number("NUM_OF_VFS", 8)];
        let host = |stdout, stderr, others| StandIn {
            settings: vec![vec!["NUM_OF_VFS", "0", "0"]],
            unreachable: Some((stdout, stderr)),
            others,
            ..StandIn::default()
        };
        for (stdout, stderr) in [
            ("-E- Error when trying to check if NV access registers are supported\n", ""),
            ("-E- Failed to open the device\n", "-E- crspace read failed\n"),
        ] {
            let mut both = host(stdout, stderr, true);
            let card = run(task(&wanted), Vec::new(), &mut both);
            assert_eq!(card.problem, None);
            assert!(both.calls[0].starts_with("mstconfig -d") && both.calls.len() > 2);
            assert!(both.calls[1..].iter().all(|call| call.starts_with("mlxconfig -d")));
            let mut one = host(stdout, stderr, false);
            assert!(run(task(&wanted), Vec::new(), &mut one).problem.is_some());
            assert_eq!(one.calls.len(), 1);
        }
        // A tool that is refused for another reason is refused by either name.
        let mut refused = host("-E- Failed to open the device\n", "", true);
        assert!(run(task(&wanted), Vec::new(), &mut refused).problem.is_some());
        assert_eq!(refused.calls.len(), 1);
    }

    #[test]
    fn each_state_is_told_with_its_message() {
        let wanted = [
            setting("SRIOV_EN", FirmwareValue::Flag(true)),
            number("NUM_OF_VFS", 8),
            number("FPP_EN", 1),
            setting("LINK_TYPE_P1", FirmwareValue::Word("IB".to_owned())),
            number("KEEP_IB_LINK_UP_P1", 1),
            number("KEEP_ETH_LINK_UP_P1", 1),
            number("ATS_ENABLED", 1),
            number("NOSUCH", 1),
            number("UNTOLD", 1),
        ];
        let mut host = StandIn {
            settings: vec![
                vec!["SRIOV_EN", "True(1)", "True(1)"],
                vec!["NUM_OF_VFS", "0", "8"],
                vec!["PF_NUM_OF_VF_VALID", "True(1)", "True(1)"],
                vec!["FPP_EN", "False(0)", "False(0)"],
                vec!["LINK_TYPE_P1", "ETH(2)", "IB(1)"],
                vec!["KEEP_IB_LINK_UP_P1", "False(0)", "True(1)"],
                vec!["KEEP_ETH_LINK_UP_P1", "False(0)", "False(0)"],
                vec!["UNTOLD"],
            ],
            unknown: &["NOSUCH"],
            lacking: &["ATS_ENABLED"],
            ..StandIn::default()
        };
        let record = vec![before(&wanted[4]), before(&wanted[5])];
        let card = run(Task { apply: false, ..task(&wanted) }, record, &mut host);
        told(
            card,
            &expect![[r#"
            0000:4b:00.0  ConnectX6
              setting              current   next boot  wanted  state
              SRIOV_EN             True(1)   True(1)    true    as wanted
              NUM_OF_VFS           0         8          8       no effect
              FPP_EN               False(0)  False(0)   1       to be set
              LINK_TYPE_P1         ETH(2)    IB(1)      IB      pending reboot
              KEEP_IB_LINK_UP_P1   False(0)  True(1)    1       pending power cycle
              KEEP_ETH_LINK_UP_P1  False(0)  False(0)   1       to be set
              ATS_ENABLED          -         -          1       not supported
              NOSUCH               -         -          1       unknown name
              UNTOLD               -         -          1       unreadable
                NUM_OF_VFS: each PF has a number of VFs of its own (PF_NUM_OF_VF_VALID is True, which devlink sets), and NUM_OF_VFS does not count
                KEEP_ETH_LINK_UP_P1: it was written before this boot, and the adapter did not keep it: it is not written again without --again
                NOSUCH: its database lacks the name: mstconfig, mstflint 4.21.0
                UNTOLD: the tool did not print it

            to set what differs: ibprov firmware --apply
            what is pending takes effect at the next reboot
            what is pending a power cycle was written, and is not written again: power the host off and on (after a kexec, a reboot is enough)
            error: 0000:4b:00.0: UNTOLD could not be read: the tool did not print it
            warning: 0000:4b:00.0: NUM_OF_VFS = 8 has no effect: each PF has a number of VFs of its own (PF_NUM_OF_VF_VALID is True, which devlink sets), and NUM_OF_VFS does not count
            warning: 0000:4b:00.0: FPP_EN is to be 1, and is False(0) for the next boot
            warning: 0000:4b:00.0: LINK_TYPE_P1 = IB is written, and takes effect at the next reboot
            warning: 0000:4b:00.0: KEEP_IB_LINK_UP_P1 = 1 is written, and takes effect after a power cycle (a reboot, if the last one was by kexec): do not write it again
            warning: 0000:4b:00.0: KEEP_ETH_LINK_UP_P1 is to be 1, and is False(0) for the next boot: it was written before this boot, and the adapter did not keep it: it is not written again without --again
            warning: 0000:4b:00.0: the adapter does not support ATS_ENABLED, or not as it is set up
            warning: 0000:4b:00.0: the tool does not know NOSUCH: its database lacks the name: mstconfig, mstflint 4.21.0
            exit 3
        "#]],
        );
        // What is lacking is asked for once.
        assert_eq!(host.calls.len(), 4, "{:#?}", host.calls);
        assert!(host.kept.is_empty() && host.announced.is_empty());
    }

    #[test]
    fn what_is_lacking_under_another_name_ends_the_run() {
        let mut host = StandIn { lacking: &["NUM_OF_VFS"], ..StandIn::default() };
        let wanted = [number("NUM_OF_VFS", 8), number("A", 0)];
        let card = run(task(&wanted), vec![], &mut host);
        let states: Vec<_> = card.settings.iter().map(|setting| setting.state).collect();
        assert_eq!(states, [State::NotSupported, State::AsWanted]);
        assert_eq!(host.calls.len(), 2, "{:#?}", host.calls);
        // All of it is lacking: the adapter is not asked for nothing, which would be for all.
        let mut host = StandIn { lacking: &["A"], ..StandIn::default() };
        run(task(&wanted[1..]), vec![], &mut host);
        assert_eq!(host.calls, ["mstconfig -d 0000:4b:00.0 -e q A"]);
    }

    #[test]
    fn what_differs_is_recorded_written_and_read_back() {
        let wanted = [number("A", 1), number("B", 2), number("C", 3)];
        let mut host = StandIn {
            settings: vec![vec!["A", "1", "1"], vec!["B", "0", "0"], vec!["C", "0", "0"]],
            ..StandIn::default()
        };
        let record = vec![before(&wanted[0])];
        told(
            run(task(&wanted), record, &mut host),
            &expect![[r#"
            0000:4b:00.0  ConnectX6
              setting  current  next boot  wanted  state
              A        1        1          1       as wanted
              B        0        2          2       pending reboot
              C        0        3          3       pending reboot
              the tool says: Please reboot machine to load new configurations.

            what is pending takes effect at the next reboot
            warning: 0000:4b:00.0: B = 2 is written, and takes effect at the next reboot
            warning: 0000:4b:00.0: C = 3 is written, and takes effect at the next reboot
            exit 1
        "#]],
        );
        assert_eq!(
            host.announced,
            "0000:4b:00.0: B of the next boot: 0 -> 2\n0000:4b:00.0: C of the next boot: 0 -> 3\n"
        );
        assert_eq!(host.calls[1..2], ["mstconfig -d 0000:4b:00.0 -y set B=2 C=3"]);
        assert_eq!(host.calls[2], "mstconfig -d 0000:4b:00.0 -e q A B C");
        // Before the write and after it; what has had effect is not in it any more.
        let said = Some(REBOOT.trim_start_matches("-I- ").to_owned());
        let new = |wanted, said: &Option<String>| Written {
            boot_id: "now".to_owned(),
            time: 2,
            said: said.clone(),
            ..before(wanted)
        };
        let record = |said| vec![new(&wanted[1], &said), new(&wanted[2], &said)];
        assert_eq!(host.kept, [record(None), record(said)]);
    }

    #[test]
    fn a_write_that_is_refused_or_lost_is_told_and_only_the_lost_one_is_recorded() {
        let wanted = [number("A", 1)];
        let refusal = "Applying... Failed!\n-E- Failed to set A settings Firmware internal error\n";
        let mut host = StandIn { set: Some((refusal, Some("exit code 3"))), ..StandIn::default() };
        told(
            run(task(&wanted), vec![], &mut host),
            &expect![[r#"
            0000:4b:00.0  ConnectX6
              setting  current  next boot  wanted  state
              A        0        0          1       not set
                A: mstconfig -d 0000:4b:00.0 -y set A=1: Failed to set A settings Firmware internal error
            error: 0000:4b:00.0: A = 1 was not set: mstconfig -d 0000:4b:00.0 -y set A=1: Failed to set A settings Firmware internal error
            exit 3
        "#]],
        );
        assert_eq!((host.kept[0].len(), host.kept.last().map(Vec::len)), (1, Some(0)));
        let lost = "Applying... Done!\n-I- Please reboot machine to load new configurations.\n";
        let mut host = StandIn { set: Some((lost, None)), ..StandIn::default() };
        told(
            run(task(&wanted), vec![], &mut host),
            &expect![[r#"
            0000:4b:00.0  ConnectX6
              setting  current  next boot  wanted  state
              A        0        0          1       not set
                A: the tool reported success, and the adapter does not have it for the next boot
              the tool says: Please reboot machine to load new configurations.
            error: 0000:4b:00.0: A = 1 was not set: the tool reported success, and the adapter does not have it for the next boot
            exit 3
        "#]],
        );
        assert_eq!(host.kept.last().map(Vec::len), Some(1));
    }

    #[test]
    fn an_end_that_is_not_seen_is_told_at_each_call() {
        let wanted = [number("A", 1)];
        for (at, expected) in [
            (
                0,
                expect![[r#"
                0000:4b:00.0
                  setting  current  next boot  wanted  state
                  A        -        -          1       unreadable
                  error: mstconfig -d 0000:4b:00.0 -e q A: process 7 has not ended
                error: 0000:4b:00.0: mstconfig -d 0000:4b:00.0 -e q A: process 7 has not ended
                exit 3
            "#]],
            ),
            (
                1,
                expect![[r#"
                0000:4b:00.0  ConnectX6
                  setting  current  next boot  wanted  state
                  A        0        0          1       not set
                    A: it is not known whether the tool has written it
                  error: mstconfig -d 0000:4b:00.0 -y set A=1: process 7 has not ended
                error: 0000:4b:00.0: mstconfig -d 0000:4b:00.0 -y set A=1: process 7 has not ended
                error: 0000:4b:00.0: A = 1 was not set: it is not known whether the tool has written it
                exit 3
            "#]],
            ),
            (
                2,
                expect![[r#"
                0000:4b:00.0  ConnectX6
                  setting  current  next boot  wanted  state
                  A        0        0          1       not set
                    A: it is not known whether the adapter has it
                  error: after the write, mstconfig -d 0000:4b:00.0 -e q A: process 7 has not ended
                  the tool says: Please reboot machine to load new configurations.
                error: 0000:4b:00.0: after the write, mstconfig -d 0000:4b:00.0 -e q A: process 7 has not ended
                error: 0000:4b:00.0: A = 1 was not set: it is not known whether the adapter has it
                exit 3
            "#]],
            ),
        ] {
            let mut host = StandIn {
                settings: vec![vec!["A", "0", "0"]],
                hangs_at: Some(at),
                ..StandIn::default()
            };
            told(run(task(&wanted), vec![], &mut host), &expected);
            // It may have been written.
            assert_eq!(host.kept.last().map(Vec::len), [None, Some(1), Some(1)][at]);
        }
    }

    #[test]
    fn nothing_is_written_that_cannot_be_recorded() {
        let wanted = [number("A", 1)];
        let mut host = StandIn { keeps_no_record: true, ..StandIn::default() };
        told(
            run(task(&wanted), vec![], &mut host),
            &expect![[r#"
            0000:4b:00.0  ConnectX6
              setting  current  next boot  wanted  state
              A        0        0          1       not set
                A: cannot write the record: ENOSPC (No space left on device)
            error: 0000:4b:00.0: A = 1 was not set: cannot write the record: ENOSPC (No space left on device)
            exit 3
        "#]],
        );
        assert_eq!(host.calls.len(), 1, "{:?}", host.calls);
    }

    #[test]
    fn what_was_written_in_vain_is_written_again_only_when_asked() {
        let wanted = [number("A", 1)];
        let record = || vec![before(&wanted[0])];
        let stand_in = || StandIn { settings: vec![vec!["A", "0", "0"]], ..StandIn::default() };
        let mut host = stand_in();
        told(
            run(task(&wanted), record(), &mut host),
            &expect![[r#"
            0000:4b:00.0  ConnectX6
              setting  current  next boot  wanted  state
              A        0        0          1       to be set
                A: it was written before this boot, and the adapter did not keep it: it is not written again without --again
            warning: 0000:4b:00.0: A is to be 1, and is 0 for the next boot: it was written before this boot, and the adapter did not keep it: it is not written again without --again
            exit 1
        "#]],
        );
        assert_eq!(host.calls.len(), 1, "{:?}", host.calls);
        let mut host = stand_in();
        let card = run(Task { again: true, ..task(&wanted) }, record(), &mut host);
        assert_eq!(card.settings[0].state, State::PendingReboot);
    }

    #[test]
    fn a_bluefield_in_dpu_mode_is_set_by_its_own_system() {
        let wanted = [number("NUM_OF_VFS", 8)];
        let stand_in = |model, engine| StandIn {
            settings: vec![
                vec!["NUM_OF_VFS", "0", "0"],
                vec!["INTERNAL_CPU_MODEL", model, model],
                vec!["INTERNAL_CPU_OFFLOAD_ENGINE", engine, engine],
            ],
            ..StandIn::default()
        };
        let bluefield = Task { is_bluefield: true, ..task(&wanted) };
        let mut host = stand_in("EMBEDDED_CPU(1)", "ENABLED(0)");
        told(
            run(bluefield, vec![], &mut host),
            &expect![[r#"
            0000:4b:00.0  ConnectX6
              setting     current  next boot  wanted  state
              NUM_OF_VFS  0        0          8       to be set
              error: the BlueField is in DPU mode: set these from the BlueField's own system
            error: 0000:4b:00.0: the BlueField is in DPU mode: set these from the BlueField's own system
            warning: 0000:4b:00.0: NUM_OF_VFS is to be 8, and is 0 for the next boot
            exit 3
        "#]],
        );
        assert_eq!(
            host.calls,
            [
                "mstconfig -d 0000:4b:00.0 -e q NUM_OF_VFS PF_NUM_OF_VF_VALID INTERNAL_CPU_MODEL INTERNAL_CPU_OFFLOAD_ENGINE"
            ]
        );
        // In NIC mode, and with a CPU that is separated from the host, it is as any adapter.
        for (model, engine) in
            [("EMBEDDED_CPU(1)", "DISABLED(1)"), ("SEPERATED_HOST(0)", "ENABLED(0)")]
        {
            let card = run(bluefield, vec![], &mut stand_in(model, engine));
            assert_eq!(card.settings[0].state, State::PendingReboot, "{model} {engine}");
        }
    }
}
