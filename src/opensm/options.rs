//! `opensm.conf`: one key and its value on each line.

use std::ops::Range;

use super::text::Text;
use super::{Fault, FaultKind, number, shown};
use crate::names::nearest;

/// What opensm would make of a file.
#[derive(Debug, Clone, Default)]
pub struct Read {
    /// The file of the partitions, where the key for it is there.
    pub partitions: Option<String>,
    /// `allow_both_pkeys` is TRUE.
    pub allows_both: bool,
    /// What is not taken as it is meant, in the order of the file.
    pub faults: Vec<Fault>,
}

/// `char line[1024]`, of which `fgets()` is told one byte less.
const LONGEST: usize = 1022;

/// How the value of a key is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A number of so many bits.
    Number(u32),
    /// TRUE, and anything else for FALSE.
    Boolean,
    Text,
    /// By rules of its own, which are not looked at.
    Other,
}

/// The keys by what their values are.
const KEYS: [(Form, &str); 8] = [
    (Form::Number(64), "guid m_key sm_key sa_key subnet_prefix cc_key"),
    (
        Form::Number(32),
        "sweep_interval max_wire_smps max_wire_smps2 max_smps_timeout transaction_timeout \
         transaction_retries long_transaction_timeout max_msg_fifo_timeout \
         sminfo_polling_timeout polling_retry_number log_max_size scatter_ports \
         perfmgr_max_outstanding_queries perfmgr_xmit_wait_threshold cc_max_outstanding_mads \
         cc_sw_cong_setting_control_map qos_max_vls qos_ca_max_vls qos_sw0_max_vls \
         qos_swe_max_vls qos_rtr_max_vls",
    ),
    (
        Form::Number(16),
        "m_key_lease_period console_port max_reverse_hops perfmgr_sweep_time_s \
         cc_sw_cong_setting_marking_rate cc_ca_cong_setting_port_control \
         cc_ca_cong_setting_control_map",
    ),
    (
        Form::Number(8),
        "m_key_protection_level sm_priority lmc max_op_vls force_link_speed \
         force_link_speed_ext force_link_width fdr10 subnet_timeout packet_life_time \
         vl_stall_count leaf_vl_stall_count head_of_queue_lifetime leaf_head_of_queue_lifetime \
         local_phy_errors_threshold overrun_errors_threshold log_flags sm_assigned_guid \
         max_rate_enum cc_sw_cong_setting_threshold cc_sw_cong_setting_packet_size \
         cc_sw_cong_setting_credit_starvation_threshold lash_start_vl sm_sl nue_max_num_vls",
    ),
    (
        Form::Boolean,
        "m_key_lookup lmc_esp0 reassign_lids ignore_other_sm single_thread disable_multicast \
         use_mfttop force_heavy_sweep port_profile_switch_nodes sweep_on_trap \
         avoid_throttled_links connect_roots use_ucast_cache force_log_flush accum_log_file \
         no_partition_enforcement allow_both_pkeys keep_pkey_indexes qos \
         suppress_sl2vl_mad_status_errors port_shifting guid_routing_order_no_scatter \
         sa_db_dump do_mesh_analysis exit_on_fatal honor_guid2lid_file daemon sm_inactive \
         babbling_port_policy drop_event_subscriptions ipoib_mcgroup_creation_validation \
         mcgroup_join_validation use_original_extended_sa_rates_only use_optimized_slvl \
         fsync_high_avail_files perfmgr perfmgr_redir perfmgr_ignore_cas perfmgr_rm_nodes \
         perfmgr_log_errors perfmgr_query_cpi perfmgr_xmit_wait_log congestion_control \
         enable_quirks no_clients_rereg consolidate_ipv6_snm_req nue_include_switches \
         quasi_ftree_indexing",
    ),
    (
        Form::Text,
        "console port_prof_ignore_file hop_weights_file dimn_ports_file \
         port_search_ordering_file routing_engine log_file partition_config_file part_enforce \
         qos_policy_file dump_files_dir lid_matrix_dump_file lfts_file root_guid_file \
         cn_guid_file io_guid_file ids_guid_file guid_routing_order_file sa_db_file \
         torus_config event_db_dump_file event_plugin_name event_plugin_options \
         node_name_map_name prefix_routes_file log_prefix per_module_logging_file",
    ),
    (
        Form::Other,
        "qos_vlarb_high qos_vlarb_low qos_sl2vl qos_ca_vlarb_high qos_ca_vlarb_low \
         qos_ca_sl2vl qos_sw0_vlarb_high qos_sw0_vlarb_low qos_sw0_sl2vl qos_swe_vlarb_high \
         qos_swe_vlarb_low qos_swe_sl2vl qos_rtr_vlarb_high qos_rtr_vlarb_low qos_rtr_sl2vl",
    ),
    (
        Form::Other,
        "qos_high_limit qos_ca_high_limit qos_sw0_high_limit qos_swe_high_limit \
         qos_rtr_high_limit cc_sw_cong_setting_victim_mask cc_sw_cong_setting_credit_mask \
         cc_sw_cong_setting_credit_starvation_return_delay cc_ca_cong_setting_ccti_timer \
         cc_ca_cong_setting_ccti_increase cc_ca_cong_setting_trigger_threshold \
         cc_ca_cong_setting_ccti_min cc_cct",
    ),
];

fn keys() -> impl Iterator<Item = (&'static str, Form)> {
    KEYS.iter().flat_map(|(form, keys)| keys.split_ascii_whitespace().map(|key| (key, *form)))
}

pub fn read(content: &[u8]) -> Read {
    let mut read = Read::default();
    // Of the line before, so many bytes were read, and it has not ended.
    let mut is_rest = false;
    for line in Text::of(content).lines(LONGEST) {
        let (key, value) = line.before(b'#').before(0).word();
        if is_rest && form_of(key).is_some() {
            read.faults.push(
                Fault::new(
                    FaultKind::LineTooLong,
                    line.split_at(1).0.span(),
                    "opensm's buffer ends here",
                    format!("opensm would cut the line after {LONGEST} bytes, and read its rest as another line"),
                )
                .help("write the comment on several lines"),
            );
        } else if !is_rest && !key.is_empty() {
            read.line(key, unquoted(value.without(number::is_space)));
        }
        is_rest = !line.bytes.ends_with(b"\n");
    }
    read
}

fn form_of(key: Text<'_>) -> Option<(&'static str, Form)> {
    keys().find(|(name, _)| name.as_bytes() == key.bytes)
}

impl Read {
    fn line(&mut self, key: Text<'_>, value: Text<'_>) {
        let Some((name, form)) = form_of(key) else {
            // What a line end of Windows leaves of an empty line.
            if key.bytes != b"\r" {
                self.faults.push(unknown(key));
            }
            return;
        };
        let text = value.bytes;
        match name {
            "partition_config_file" if text != b"(null)" => {
                self.partitions = std::str::from_utf8(text).ok().map(str::to_owned);
            }
            "allow_both_pkeys" => self.allows_both = text == b"TRUE",
            _ => {}
        }
        let span = if value.is_empty() { key.span() } else { value.span() };
        self.faults.extend(judge(name, form, text, span));
    }
}

fn unquoted(value: Text<'_>) -> Text<'_> {
    match value.bytes {
        [b'"', inside @ .., b'"'] | [b'\'', inside @ .., b'\''] => {
            value.split_at(1).1.split_at(inside.len()).0
        }
        _ => value,
    }
}

fn unknown(key: Text<'_>) -> Fault {
    let span = key.span();
    let key = key.shown();
    let fault = Fault::new(
        FaultKind::KeyUnknown,
        span,
        "no key of opensm 3.3",
        format!("opensm would ignore {key}"),
    );
    if key.starts_with("virt_") {
        return fault.help("only NVIDIA's opensm (--opensm nvidia), UFM and switches have it: with this opensm, VFs become active only with the policy Up");
    }
    if let Some((key, value)) = key.split_once('=') {
        return fault.help(format!("write a blank between key and value: {key} {value}"));
    }
    let lower = key.to_ascii_lowercase();
    match nearest(&lower, keys().map(|(key, _)| key)) {
        Some(near) => fault.help(format!("did you mean {near}?")),
        None => fault.help("opensm -c FILE writes all keys that this opensm knows"),
    }
}

/// What is wrong with the value of the key `name`.
fn judge(name: &str, form: Form, text: &[u8], span: Range<usize>) -> Option<Fault> {
    let said = shown(text);
    if text.first() == Some(&b'=') {
        let fault = Fault::new(
            FaultKind::ValueUnknown,
            span,
            "no = between key and value",
            format!("opensm would take \"{said}\" for the value of {name}"),
        );
        return Some(fault.help(format!("write {name} {}", said.trim_start_matches(['=', ' ']))));
    }
    match form {
        Form::Number(bits) => judge_number(name, bits, text, span),
        Form::Boolean => {
            let falsy = ["FALSE", "NO", "OFF", "0", "F", "N"];
            let is_meant =
                text == b"TRUE" || falsy.iter().any(|word| said.eq_ignore_ascii_case(word));
            (!is_meant).then(|| {
                let consequence = format!("opensm would take {name} for FALSE");
                Fault::new(FaultKind::NotTrue, span, "not TRUE in capitals", consequence)
                    .help(format!("write {name} TRUE or {name} FALSE"))
            })
        }
        Form::Text => {
            let (words, default): (&[&str], _) = match name {
                "part_enforce" => (&["both", "in", "out", "off"], "both"),
                "console" => (&["off", "local", "loopback", "socket"], "off"),
                _ => return None,
            };
            (!words.contains(&said.as_str())).then(|| {
                Fault::new(
                    FaultKind::ValueUnknown,
                    span,
                    format!("not one of {}", words.join(", ")),
                    format!("opensm would use its default: {name} {default}"),
                )
            })
        }
        Form::Other => None,
    }
}

fn judge_number(name: &str, bits: u32, text: &[u8], span: Range<usize>) -> Option<Fault> {
    let said = shown(text);
    let ignored = match name {
        "guid" => "opensm would ignore guid, and run on the first port whose link is up".to_owned(),
        _ => format!("opensm would ignore {name}, and use its default"),
    };
    let most = u64::MAX >> (64 - bits);
    let number = number::read(text).filter(|number| number.whole);
    let Some(number) = number else {
        if name == "guid" && text.split(|b| matches!(b, b',' | b' ' | b'\t')).count() > 1 {
            let fault = Fault::new(FaultKind::GuidList, span, "more than one", ignored);
            return Some(fault.help("run one opensm for each port, as opensm@GUID.service does"));
        }
        let fault = Fault::new(FaultKind::NotANumber, span, "not a number", ignored);
        let is_hex = !text.is_empty() && text.iter().all(|b| b.is_ascii_hexdigit() || *b == b':');
        return Some(if is_hex {
            fault.help(format!("write {name} 0x{}", said.replace(':', "")))
        } else {
            fault
        });
    };
    if number.value > most || number.is_wrapped {
        let label = format!("more than {bits} bits");
        return Some(Fault::new(FaultKind::OutOfRange, span, label, ignored));
    }
    if number.is_octal {
        let consequence = format!("opensm would read {said} as 0x{:x}", number.value);
        return Some(
            Fault::new(FaultKind::Octal, span, "a number that begins with 0 is octal", consequence)
                .help(format!("write 0x{said}")),
        );
    }
    let value = number.value;
    let (is_valid, range, default) = match name {
        "lmc" => (value <= 7, "0 to 7", "0"),
        "sm_priority" => (value <= 15, "0 to 15", "0"),
        "m_key_protection_level" => (value <= 3, "0 to 3", "2"),
        "fdr10" => (value <= 2, "0 to 2", "1"),
        "force_link_speed" => (value <= 7 || value == 15, "0 to 7, or 15", "15"),
        "force_link_speed_ext" => {
            (value <= 15 || matches!(value, 30 | 31), "0 to 15, 30 or 31", "31")
        }
        "force_link_width" => (value <= 31 || value == 255, "0 to 31, or 255", "255"),
        "max_wire_smps" | "max_wire_smps2" => (value <= 0x7fff_ffff, "31 bits", "its default"),
        _ => return None,
    };
    (!is_valid).then(|| {
        let consequence = format!("opensm would take {default} for {name}");
        Fault::new(FaultKind::OutOfRange, span, format!("not {range}"), consequence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<FaultKind> {
        read(text.as_bytes()).faults.iter().map(|fault| fault.kind).collect()
    }

    #[test]
    fn what_opensm_takes_as_meant_is_not_named() {
        let text = "# a comment\n\nguid 0x98039b0300a1b0c1 # port 1\n\tsm_priority\t14\n\
            qos TRUE\r\n\r\ndaemon FALSE\nsweep_on_trap no\nlog_file /var/log/my opensm.log\n\
            routing_engine updn,minhop\nevent_plugin_options (null)\nlmc 0x7\n\
            partition_config_file \"/etc/opensm/p.conf\"\nallow_both_pkeys TRUE\n\
            cc_cct (null)\nqos_vlarb_high 0:4,1:0\nm_key_lease_period 0x003c\nlog_flags 3";
        let read = read(text.as_bytes());
        assert_eq!(read.faults, []);
        assert_eq!(read.partitions.as_deref(), Some("/etc/opensm/p.conf"));
        assert!(read.allows_both);
    }

    #[test]
    fn what_opensm_does_not_take_is_named() {
        use FaultKind::{
            GuidList, KeyUnknown, LineTooLong, NotANumber, NotTrue, Octal, OutOfRange, ValueUnknown,
        };
        for (text, expected) in [
            ("guid 0x1,0x2", GuidList),
            ("guid 0x1 0x2", GuidList),
            ("guid 98039b0300a1b0c1", NotANumber),
            ("guid", NotANumber),
            ("guid 0x198039b0300a1b0c1", OutOfRange),
            ("guid 0123456701234567", Octal),
            ("sm_priority 16", OutOfRange),
            ("sm_priority 256", OutOfRange),
            ("sm_priority -1", OutOfRange),
            ("sm_priority high", NotANumber),
            ("sm_priority = 5", ValueUnknown),
            ("sm_priority=5", KeyUnknown),
            ("SM_PRIORITY 5", KeyUnknown),
            ("virt_enabled 2", KeyUnknown),
            ("qos true", NotTrue),
            ("qos", NotTrue),
            ("part_enforce none", ValueUnknown),
            ("console telnet", ValueUnknown),
            ("lmc 8", OutOfRange),
            (&format!("#{}\nlmc 1", "x".repeat(LONGEST - 1) + "lmc 3"), LineTooLong),
        ] {
            assert_eq!(kinds(text), [expected], "{text}");
        }
        assert_eq!(kinds(&format!("#{} more", "x".repeat(LONGEST))), []);
    }

    #[test]
    fn each_key_is_there_once() {
        let all: Vec<&str> = keys().map(|(key, _)| key).collect();
        let once: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), once.len());
        assert_eq!(all.len(), 162);
    }
}
