use super::{Code, Judge, Rule};

pub(super) const RULE: Rule = Rule {
    code: Code::RequiredUnitMissing,
    meaning: "a unit that uses InfiniBand requires a unit that is not there",
    page: "\
The unit has Requires= or BindsTo= for a unit that does not exist any more, is masked, or
has a file that systemd refuses. systemd then leaves it out of the boot, and logs nothing
if the other unit does not exist. It is seen after an update to a release of the vendor's
packages that has no openibd: opensmd and site units still require openibd.service.

Symptoms: `systemctl status UNIT` shows \"inactive (dead)\" for an enabled unit;
`systemctl start UNIT` says \"Unit openibd.service not found.\"

Remedy: remove the requirement, or order the unit after the ports:

    systemctl edit --full UNIT
    systemctl daemon-reload",
    needles: &[],
    judge: Judge::Host,
};
