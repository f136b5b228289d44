//! `[host]` and `[[pf]]`.

use super::*;
use crate::names::{Policy, VfDriver, VfIndex, VfOwner};

const TEMPLATE: &str = "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}";

#[test]
fn a_pf_with_everything() {
    let config = good(&[&format!(
        "[host]\nnumber = 12\n[[pf]]\npci = \"0000:4b:00.0\"\nvfs = 16\nlink-state = \"up\"\n\
         driver = \"vfio-pci\"\nnumber = 7\nguid.template = \"{TEMPLATE}\"\n\
         [[pf.vf]]\nindex = \"8-15\"\ndriver = \"none\"\nowner = \"cni\"\n\
         [[pf.vf]]\nindex = 3\nport-guid = \"0200:0000:0000:0301\"\nlink-state = \"down\"\n",
    )]);
    assert_eq!(config.host_number, HostNumber::Given(12));
    let pf = &config.pf[0];
    let template = Some(GuidSource::Template(TEMPLATE.parse().expect("template")));
    assert_eq!((&pf.node, &pf.port), (&template, &template));
    assert_eq!(
        (pf.vfs, pf.link_state, pf.driver, pf.number),
        (16, Policy::Up, VfDriver::VfioPci, 7)
    );
    assert_eq!(pf.origin, "/etc/0.toml:3");
    assert_eq!(pf.exceptions.len(), 2);
    assert_eq!(pf.exceptions[0].vfs.last(), VfIndex::new(15).expect("index"));
    assert_eq!(
        pf.exceptions.iter().map(|e| e.owner).collect::<Vec<_>>(),
        [VfOwner::Cni, VfOwner::Plan]
    );
    assert_eq!(pf.exceptions[1].port_guid, Some(Guid::new(0x0200_0000_0000_0301)));
    assert_eq!(pf.exceptions[1].link_state, Some(Policy::Down));
}

#[test]
fn a_list_says_how_many_and_the_place_is_the_index() {
    let config = good(&[
        "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 0\n",
        "[[pf]]\nnode-guid = \"b859:9f03:0012:a480\"\nguid.list = [\"0200:0000:0000:0001\", \"0200:0000:0000:0002\"]\n",
    ]);
    let pf = &config.pf[1];
    assert_eq!((pf.vfs, pf.number), (2, 1));
    assert_eq!((pf.link_state, pf.driver), (Policy::Follow, VfDriver::Host));
    assert_eq!(config.pf[0].node, None);
}

#[test]
fn node_and_port_may_come_from_two_places() {
    let config = good(&[
        "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 4\nguid.node.offset = 16\nguid.port.range = \"0200:0000:0000:0010 - 0200:0000:0000:001f\"\n",
    ]);
    assert_eq!(config.pf[0].node, Some(GuidSource::Offset(16)));
    assert!(matches!(config.pf[0].port, Some(GuidSource::Range(_))));
}

#[test]
fn exceptions_alone_may_give_every_guid() {
    let vf = |n: u8| {
        format!(
            "[[pf.vf]]\nindex = {n}\nnode-guid = \"0200:0000:0000:000{n}\"\nport-guid = \"0200:0000:0000:001{n}\"\n"
        )
    };
    let text = format!("[[pf]]\nrdma = \"mlx5_0\"\nvfs = 2\n{}{}", vf(0), vf(1));
    assert_eq!(good(&[&text]).pf[0].exceptions.len(), 2);
}

#[test]
fn a_template_may_have_the_site() {
    let pf = "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 1\nguid.template = \"02:{site:8}:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n";
    assert_eq!(good(&["host.site = 7", pf]).pf[0].site, Some(7));
}

#[test]
fn the_host_has_one_number() {
    let file = good(&["host.number-file = \"/etc/n\""]);
    assert_eq!(file.host_number, HostNumber::File("/etc/n".to_owned()));
}

#[test]
fn one_row_may_be_for_several_pfs_of_a_kind() {
    let config = good(&[&format!(
        "[[pf]]\npci = [\"0000:4b:00.0\", \"98:00.0\", \"0000:ca:00.0\"]\nvfs = 4\nguid.template = \"{TEMPLATE}\"\nvf-name = \"{{netdev}}v{{vf}}\"\n\
         [[pf.vf]]\nindex = 3\ndriver = \"none\"\n\
         [[pf]]\nrdma = [\"mlx5_8\"]\nvfs = 1\nguid.list = [\"0200:0000:0000:0001\"]\n\
         [[pf]]\nport-guid = [\"b859:9f03:0012:a480\", \"b859:9f03:0012:a484\"]\nnumber = 20\nvfs = 1\nguid.offset = 8\n",
    )]);
    let shown: Vec<String> =
        config.pf.iter().map(|pf| format!("{} {} {}", pf.which, pf.number, pf.origin)).collect();
    assert_eq!(
        shown,
        [
            "PF 0000:4b:00.0 0 /etc/0.toml:1",
            "PF 0000:98:00.0 1 /etc/0.toml:1",
            "PF 0000:ca:00.0 2 /etc/0.toml:1",
            "PF mlx5_8 3 /etc/0.toml:9",
            "PF with port GUID b859:9f03:0012:a480 20 /etc/0.toml:13",
            "PF with port GUID b859:9f03:0012:a484 21 /etc/0.toml:13",
        ]
    );
    assert!(config.pf.iter().take(3).all(|pf| pf.vfs == 4 && pf.exceptions.len() == 1));
}
