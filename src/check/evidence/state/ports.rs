//! `ibstat`, `ibstatus`, `ibv_devinfo`, `rdma link` and the files of ports in sysfs.

use super::super::event::Origin;
use super::port::{PortSeen, physical, state};
use super::port_files::PortFileReader;
use super::prompt::Line;
use super::put;
use crate::check::pattern::{caught, caught_one, word};
use crate::names::{IsVf, is_vf_hca_type};

#[derive(Debug, Default)]
pub(super) struct IbstatReader {
    device: String,
    node_guid: String,
    vf: IsVf,
    in_port: bool,
    files: PortFileReader,
}

impl IbstatReader {
    pub(super) fn gap(&mut self) {
        self.files.gap();
    }

    pub(super) fn typed(&mut self, line: &Line<'_>) {
        *self = Self::default();
        self.files.typed(line);
    }

    pub(super) fn line(&mut self, text: &str, origin: Origin, ports: &mut Vec<PortSeen>) {
        let text = text.trim();
        if self.files.line(text, origin, ports) {
            return;
        }
        // `ibstat mlx5_0 1` has a colon behind CA.
        if let Some(name) = caught_one(text, "CA '{}'").or_else(|| {
            let only = caught_one(text, "CA: '{}'");
            // Not `hca_id` as a word of prose.
            only.or_else(|| text.strip_prefix("hca_id:").map(word))
        }) {
            *self = Self { device: name.to_owned(), ..Self::default() };
            return;
        }
        if let Some([device, port]) = caught::<2>(text, "Infiniband device '{}' port {} status") {
            *self = Self { device: device.to_owned(), ..Self::default() };
            self.begin(port, ports);
            return;
        }
        if let Some(rest) = text.strip_prefix("link ").or_else(|| {
            // `1/1: mlx5_0/1: state ACTIVE ...` is what older ones print.
            caught_one(text, "/1: {}").filter(|t| t.contains("physical_state"))
        }) && rest.contains("state ")
            && let Some((device, rest)) = rest.split_once('/')
        {
            *self = Self { device: device.to_owned(), ..Self::default() };
            self.begin(word(rest).trim_end_matches(':'), ports);
            if let Some(port) = ports.last_mut() {
                port.state = state(caught_one(rest, "state {}").map_or("", word));
                port.physical = physical(caught_one(rest, "physical_state {}").map_or("", word));
                port.sm_lid = caught_one(rest, "sm_lid {}").map_or("", word).to_owned();
                port.infiniband = Some(!rest.contains(" netdev ") || rest.contains("sm_lid"));
                port.origin = origin;
                text.clone_into(&mut port.text);
            }
            return;
        }
        if self.device.is_empty() {
            return;
        }
        let Some((key, value)) = text.split_once(':') else { return };
        let value = value.trim();
        let key = key.trim().to_ascii_lowercase().replace(' ', "_");
        if key == "port" || key.strip_prefix("port_").is_some_and(|n| n.parse::<u8>().is_ok()) {
            let port = key.strip_prefix("port_").filter(|_| value.is_empty()).unwrap_or(value);
            if !port.is_empty() && port.len() <= 3 {
                self.begin(port, ports);
            }
            return;
        }
        if key == "node_guid" {
            self.node_guid = digits(value);
            return;
        }
        if key == "ca_type" {
            // Those have the even ids. (LID 65535 is no sign: a PF without link shows it too.)
            let is_vf = is_vf_hca_type(value);
            self.vf = if is_vf { IsVf::OfUnknownPf } else { IsVf::No };
            return;
        }
        let Some(port) = ports.last_mut().filter(|_| self.in_port) else { return };
        match key.as_str() {
            "state" | "physical_state" | "phys_state" => {
                match key.as_str() {
                    "state" => port.state = state(value),
                    _ => port.physical = physical(value),
                }
                // Of the two the line that tells more.
                if key == "state" || port.physical == "disabled" {
                    port.origin = origin;
                    text.clone_into(&mut port.text);
                }
            }
            "link_layer" => {
                port.infiniband = match value.to_ascii_lowercase().as_str() {
                    "infiniband" => Some(true),
                    "ethernet" => Some(false),
                    _ => None,
                }
            }
            "sm_lid" => value.clone_into(&mut port.sm_lid),
            "port_guid" => port.guid = digits(value),
            // `ibstatus` shows the port GUID as the last half of the GID.
            "default_gid" => {
                let gid = digits(&text.split_once(':').map_or("", |(_, v)| v).replace(':', ""));
                port.guid = gid.get(gid.len().saturating_sub(16)..).unwrap_or_default().to_owned();
            }
            _ => {}
        }
    }

    fn begin(&mut self, port: &str, ports: &mut Vec<PortSeen>) {
        let port = PortSeen {
            device: self.device.clone(),
            port: port.to_owned(),
            node_guid: self.node_guid.clone(),
            vf: self.vf,
            ..PortSeen::default()
        };
        self.in_port = put(ports, port);
    }
}

/// True if `text` is the first line of what one of these tools prints of a device.
pub fn begins_dump(text: &str) -> bool {
    let heads = ["CA '", "CA: '", "hca_id:", "Infiniband device '", "Failed to open device"];
    heads.iter().any(|head| text.starts_with(head))
        || text.starts_with("link ") && text.contains(" state ")
}

fn digits(text: &str) -> String {
    let text = word(text);
    text.trim_start_matches("0x").chars().filter(char::is_ascii_hexdigit).collect()
}

#[cfg(test)]
mod tests {
    use super::super::prompt;
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<PortSeen> {
        let (mut reader, mut ports) = (IbstatReader::default(), Vec::new());
        prompt::feed(text, |line| match line {
            Ok(typed) => reader.typed(&typed),
            Err(line) => reader.line(line, Origin::default(), &mut ports),
        });
        ports
    }

    #[test]
    fn every_tool_shows_the_same_port() {
        for text in [
            "CA 'mlx5_0'\n\tCA type: MT4124\n\tNode GUID: 0x01\n\tPort 1:\n\t\tState: Initializing\n\t\tPhysical state: LinkUp\n\t\tSM lid: 0\n\t\tPort GUID: 0x0002c90300a1b2c3\n\t\tLink layer: InfiniBand",
            "Infiniband device 'mlx5_0' port 1 status:\n\tdefault gid:\t fe80:0000:0000:0000:0002:c903:00a1:b2c3\n\tsm lid:\t\t 0x0\n\tstate:\t\t 2: INIT\n\tphys state:\t 5: LinkUp\n\tlink_layer:\t InfiniBand",
            "hca_id:\tmlx5_0\n\tnode_guid: 01\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_INIT (2)\n\t\t\tsm_lid:\t0\n\t\t\tlink_layer:\tInfiniBand\n\t\t\tphys_state: LINK_UP (5)",
            "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 1 sm_lid 0 lmc 0 state INIT physical_state LINK_UP",
        ] {
            let ports = read(text);
            assert_eq!(ports.len(), 1, "{text}");
            let p = &ports[0];
            assert_eq!(
                (p.name().as_str(), p.state.as_str(), p.physical.as_str(), p.infiniband),
                ("mlx5_0/1", "init", "linkup", Some(true)),
                "{text}"
            );
            assert!(p.guid.is_empty() || p.guid == "0002c90300a1b2c3", "{text}: {}", p.guid);
        }
    }

    #[test]
    fn a_port_alone_is_read_and_what_belongs_to_no_device_is_not() {
        let port = |text: &str| -> Vec<_> {
            read(text).iter().map(|p| format!("{} {} {}", p.name(), p.state, p.physical)).collect()
        };
        let alone = "CA: 'mlx5_0'\nPort 1:\nState: Down\nPhysical state: Polling\n";
        assert_eq!(port(&format!("# ibstat mlx5_0 1\n{alone}")), ["mlx5_0/1 down polling"]);
        assert_eq!(port("# ibstat | grep State\n\t\tState: Active\n"), [""; 0]);
        assert_eq!(port("# ibstat\nCA 'a'\n# virsh dominfo a\nState:          active\n"), [""; 0]);
    }

    proptest! {
        #[test]
        fn no_dump_panics(text in r"((# ibstat |\| grep |CA '|hca_id:|link |port|State:|default gid:|\t|: |/1|[a-zÄ0-9 ']){0,4}\n){0,8}") {
            read(&text);
        }
    }
}
