//! Scripts that run at boot and bring InfiniBand up by themselves: rc.local, and what a line
//! of such a script does.

use crate::host::Root;
use crate::names::{UNIT_DIRS, is_ipoib_name};
use crate::report::migrate::Reason;

/// The file that old systems run at the end of a boot, where they have it.
pub const RC_LOCAL: [&str; 4] =
    ["/etc/rc.local", "/etc/rc.d/rc.local", "/etc/init.d/boot.local", "/etc/rc.d/boot.local"];

/// True if this host runs rc.local: by systemd's generator, which systemd 260 does not have any
/// more, or by a unit.
pub fn runs_rc_local(root: &Root) -> bool {
    let dirs = UNIT_DIRS.iter();
    root.has_generator("systemd-rc-local-generator")
        || dirs.map(|dir| format!("{dir}/rc-local.service")).any(|unit| root.exists(&unit))
}

/// The lines of rc.local files that bring InfiniBand up, if nothing runs these files: file and
/// numbers, or why the file cannot be read.
pub fn not_run(root: &Root) -> Vec<Result<(&'static str, Vec<usize>), String>> {
    if runs_rc_local(root) {
        return Vec::new();
    }
    let files = RC_LOCAL.into_iter().filter(|file| !root.is_link(file));
    let lines = files.filter_map(|file| {
        let text = match root.text(file, 1 << 20) {
            Ok(text) => text,
            Err(e) => return (!e.is_absent()).then(|| Err(e.to_string())),
        };
        let lines = (1..).zip(text.lines()).filter(|(_, line)| reason(line).is_some());
        let lines: Vec<usize> = lines.map(|(number, _)| number).collect();
        (!lines.is_empty()).then_some(Ok((file, lines)))
    });
    lines.collect()
}

/// What a line of a script does to InfiniBand, if anything.
pub fn reason(line: &str) -> Option<Reason> {
    if line.trim_start().starts_with('#') {
        return None;
    }
    let is_end = |c: char| c.is_whitespace() || ";&|()`\"'{}".contains(c);
    let words: Vec<&str> = line.split(is_end).filter(|word| !word.is_empty()).collect();
    let program = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let runs = |names: &[&str]| words.iter().any(|word| names.contains(&program(word).as_str()));
    let is_openibd = |word: &&str| {
        matches!(program(word).trim_end_matches(".service"), "openibd" | "mlnxofedctl")
    };
    if words.iter().any(is_openibd) {
        return Some(Reason::CallsOpenibd);
    }
    let vf_words = ["sriov_numvfs", "/sriov/", "mlx5_num_vfs", "node_guid", "port_guid"];
    let by_ip = runs(&["ip"]) && words.contains(&"vf");
    if by_ip || vf_words.iter().any(|word| line.contains(word)) {
        return Some(Reason::SetsVfs);
    }
    let by_rdma = runs(&["rdma"]) && ["dev", "set", "name"].iter().all(|word| words.contains(word));
    if by_rdma || words.iter().any(|word| program(word).starts_with("rdma_rename")) {
        return Some(Reason::RenamesRdma);
    }
    if runs(&["virsh"]) && words.contains(&"start") {
        return Some(Reason::StartsGuest);
    }
    if runs(&["modprobe", "insmod"]) && words.iter().any(|word| is_rdma_module(&program(word))) {
        return Some(Reason::LoadsModules);
    }
    let names = |word: &&str| is_ipoib_name(word);
    let brings_up = runs(&["ifup", "ifconfig", "ip", "nmcli"]) && words.iter().any(names);
    brings_up.then_some(Reason::BringsUp)
}

fn is_rdma_module(name: &str) -> bool {
    let begins = ["ib_", "mlx4_", "mlx5_", "rdma_", "rds_rdma", "hfi1", "qib", "opa_vnic"];
    let whole = ["rpcrdma", "xprtrdma", "svcrdma", "iw_cm"];
    begins.iter().any(|begin| name.starts_with(begin)) || whole.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::SYSV_GENERATOR;
    use crate::host::testing::tree;

    #[test]
    fn what_nothing_runs_is_told_apart() {
        let rc = ("etc/rc.local", "#!/bin/sh\nmodprobe ib_ipoib\ntrue\nifup ib0\n");
        let of = |file: &'static str| (file, "");
        let generators = "usr/lib/systemd/system-generators";
        let other: &str = &format!("{generators}/systemd-fstab-generator");
        let sysv: &str = &format!("{generators}/systemd-sysv-generator");
        let local: &str = &format!("{generators}/systemd-rc-local-generator");
        let of_a_folder = of("etc/rc.local/x");
        let unit = of("etc/systemd/system/rc-local.service");
        for (files, scripts, runs) in [
            (vec![rc], true, true),
            (vec![rc, (other, "")], false, false),
            (vec![rc, (sysv, "")], true, false),
            (vec![rc, (local, "")], false, true),
            (vec![rc, (other, ""), unit], false, true),
        ] {
            let dir = tree(&files, &[]);
            let root = Root::copy_at(dir.path()).expect("root");
            assert_eq!(
                (root.has_generator(SYSV_GENERATOR), runs_rc_local(&root)),
                (scripts, runs),
                "{files:?}"
            );
            let told = if runs { vec![] } else { vec![Ok(("/etc/rc.local", vec![2, 4]))] };
            assert_eq!(not_run(&root), told, "{files:?}");
        }
        // One that cannot be read may have such lines.
        let dir = tree(&[of_a_folder, (other, "")], &[]);
        let told = not_run(&Root::copy_at(dir.path()).expect("root"));
        assert!(matches!(&told[..], [Err(why)] if why.contains("/etc/rc.local")), "{told:?}");
    }

    #[test]
    fn lines_that_bring_infiniband_up_are_told_from_others() {
        for (line, why) in [
            ("/etc/init.d/openibd restart", Reason::CallsOpenibd),
            ("sleep 60; systemctl start openibd.service", Reason::CallsOpenibd),
            ("modprobe -a ib_umad ib_ipoib", Reason::LoadsModules),
            ("/sbin/modprobe mlx5_ib && sleep 1", Reason::LoadsModules),
            ("insmod /lib/modules/x/ib_ipoib.ko", Reason::LoadsModules),
            ("echo 4 > /sys/class/infiniband/mlx5_0/device/sriov_numvfs", Reason::SetsVfs),
            ("echo Follow >/sys/class/infiniband/mlx5_0/device/sriov/0/policy", Reason::SetsVfs),
            ("ip link set ib0 vf 0 node_guid 02:00:00:00:00:00:00:01", Reason::SetsVfs),
            ("ip link set dev ib0 vf 3 state auto", Reason::SetsVfs),
            ("/usr/sbin/rdma_rename_55.0 mlx5_0 NAME_FIXED mlx5_ib0", Reason::RenamesRdma),
            ("RUN+=\"/usr/bin/rdma dev set %k name rail0\"", Reason::RenamesRdma),
            ("ifup ib0", Reason::BringsUp),
            ("/usr/bin/virsh -c qemu:///system start vm09", Reason::StartsGuest),
            ("ip link set ib0.8001 up", Reason::BringsUp),
        ] {
            assert_eq!(reason(line), Some(why), "{line}");
        }
        for line in [
            "# modprobe ib_ipoib",
            "modprobe nvidia",
            "virsh list --all",
            "ip link set eth0 up",
            "touch /var/lock/subsys/local",
            "echo ib_ipoib",
            "rdma dev set mlx5_0 netns site",
            "exit 0",
        ] {
            assert_eq!(reason(line), None, "{line}");
        }
    }
}
