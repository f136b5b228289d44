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
fn what_a_pf_lacks_or_says_twice() {
    bad(
        &["[[pf]]\nvfs = 2\n[[pf]]\npci = \"0000:4b:00.0\"\nrdma = \"mlx5_0\"\nvfs = 1\n"],
        &expect![[r#"
            error: pf does not name a PF
             --> /etc/0.toml:1:1
              |
            1 | [[pf]]
              | ^^^^^^ names no PF
              |
              = help: give exactly one of pci, port-guid, node-guid, rdma; a port or node GUID still applies if the adapter moves to another slot

            error: pf has no source for the node and port GUIDs of its VFs
             --> /etc/0.toml:2:7
              |
            2 | vfs = 2
              |       ^ each VF needs a node GUID and a port GUID, or its port stays down and rdma_cm fails
              |
              = help: recommended, with 00 for your site: `guid.template = "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"`

            error: pf names its PF in more than one way
             --> /etc/0.toml:4:7
              |
            4 | pci = "0000:4b:00.0"
              |       ^^^^^^^^^^^^^^ one way
            5 | rdma = "mlx5_0"
              |        -------- and another
              |
              = help: keep exactly one of pci, port-guid, node-guid, rdma

            error: pf has no source for the node and port GUIDs of its VFs
             --> /etc/0.toml:6:7
              |
            6 | vfs = 1
              |       ^ each VF needs a node GUID and a port GUID, or its port stays down and rdma_cm fails
              |
              = help: recommended, with 00 for your site: `guid.template = "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"`

            the configuration is not valid: 4 errors"#]],
    );
    bad(
        &["[[pf]]\nrdma = \"mlx5_0\"\n"],
        &expect![[r#"
        error: pf does not set the number of VFs
         --> /etc/0.toml:1:1
          |
        1 | [[pf]]
          | ^^^^^^ no vfs, and no list of GUIDs to count
          |
          = help: add, for example, `vfs = 8`

        the configuration is not valid: 1 error"#]],
    );
    bad(
        &["[[pf]]\nrdma = \"mlx5_0\"\nvfs = 2\n"],
        &expect![[r#"
        error: pf has no source for the node and port GUIDs of its VFs
         --> /etc/0.toml:3:7
          |
        3 | vfs = 2
          |       ^ each VF needs a node GUID and a port GUID, or its port stays down and rdma_cm fails
          |
          = help: recommended, with 00 for your site: `guid.template = "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"`

        the configuration is not valid: 1 error"#]],
    );
    bad(
        &["[[pf]]\nrdma = \"mlx5_0\"\nvfs = 2\nguid.port.list = [\"0200:0000:0000:0001\"]\n"],
        &expect![[r#"
            error: pf has no source for the node GUIDs of its VFs
             --> /etc/0.toml:3:7
              |
            3 | vfs = 2
              |       ^ each VF needs a node GUID and a port GUID, or its port stays down and rdma_cm fails
              |
              = help: give the other kind in the same way, or both at once with guid.list, guid.range, guid.offset or guid.template

            the configuration is not valid: 1 error"#]],
    );
    bad(
        &[
            "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 2\nguid.offset = 4\nguid.port.list = [\"0200:0000:0000:0001\"]\n",
        ],
        &expect![[r#"
            error: pf has two sources for the GUIDs of its VFs
             --> /etc/0.toml:5:18
              |
            4 | guid.offset = 4
              |               - guid.offset is another
            5 | guid.port.list = ["0200:0000:0000:0001"]
              |                  ^^^^^^^^^^^^^^^^^^^^^^^ guid.port.list is one
              |
              = help: keep one of the two; use [[pf.vf]] for exceptions

            the configuration is not valid: 1 error"#]],
    );
    bad(
        &["[[pf]]\nrdma = \"mlx5_0\"\nvfs = 2\nguid.template = \"0200:0000:0000:{kind:16}\"\n"],
        &expect![[r#"
            error: pf.guid.template would give all VFs of the PF the same GUID
             --> /etc/0.toml:4:17
              |
            4 | guid.template = "0200:0000:0000:{kind:16}"
              |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^ has no {vf:BITS}
              |
              = help: a good one is "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"

            the configuration is not valid: 1 error"#]],
    );
    bad(
        &[
            "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 0\n",
            "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 0\n[[pf]]\nport-guid = \"0000:0000:0000:0000\"\nvfs = 0\n",
        ],
        &expect![[r#"
            error: PF mlx5_0 is given twice
             --> /etc/1.toml:1:1
              |
            1 | [[pf]]
              | ^^^^^^ here
              |
             ::: /etc/0.toml:1:1
              |
            1 | [[pf]]
              | ------ and first here
              |
              = help: keep one of the two; `pf = []` in a file between them clears the list before it

            error: bad value for the GUID of a PF
             --> /etc/1.toml:5:13
              |
            5 | port-guid = "0000:0000:0000:0000"
              |             ^^^^^^^^^^^^^^^^^^^^^ an all-zero GUID means that a port has no GUID

            the configuration is not valid: 2 errors"#]],
    );
}

#[test]
fn what_an_exception_gets_wrong() {
    bad(
        &["[[pf]]\nrdma = \"mlx5_0\"\nvfs = 9\nguid.offset = 9\n\
           [[pf.vf]]\nindex = \"0-7\"\nport-guid = \"0200:0000:0000:0001\"\n\
           [[pf.vf]]\nindex = 7\nlink-state = \"up\"\n\
           [[pf.vf]]\nlink-state = \"up\"\n"],
        &expect![[r#"
            error: several VFs cannot have one GUID
             --> /etc/0.toml:7:13
              |
            6 | index = "0-7"
              |         ----- more than one VF
            7 | port-guid = "0200:0000:0000:0001"
              |             ^^^^^^^^^^^^^^^^^^^^^ a single GUID

            error: a VF has two exceptions
             --> /etc/0.toml:8:1
              |
            5 | [[pf.vf]]
              | --------- and first here
            6 | index = "0-7"
            7 | port-guid = "0200:0000:0000:0001"
            8 | [[pf.vf]]
              | ^^^^^^^^^ here
              |
              = help: merge the two, or separate their ranges

            error: pf.vf does not name a VF
              --> /etc/0.toml:11:1
               |
            11 | [[pf.vf]]
               | ^^^^^^^^^ names no VF
               |
               = help: add `index = 0`, or `index = "0-7"`

            the configuration is not valid: 3 errors"#]],
    );
    bad(
        &[
            "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 8\nguid.offset = 9\n[[pf.vf]]\nindex = \"4-8\"\nlink-state = \"up\"\n",
        ],
        &expect![[r#"
            error: pf.vf is for a VF that the PF does not have
             --> /etc/0.toml:6:9
              |
            3 | vfs = 8
              |       - the number of VFs, counted from 0
            4 | guid.offset = 9
            5 | [[pf.vf]]
            6 | index = "4-8"
              |         ^^^^^ the last VF is 7

            the configuration is not valid: 1 error"#]],
    );
    bad(
        &["[[pf]]\nrdma = \"mlx5_0\"\nvfs = 9\nguid.offset = 9\n\
           [[pf.vf]]\nindex = 70000\nlink-state = \"Up\"\ncolour = 1\n"],
        &expect![[r#"
            error: bad value for pf.vf.index
             --> /etc/0.toml:6:9
              |
            6 | index = 70000
              |         ^^^^^ 70000 is out of range: expected 0 to 65534

            error: bad value for pf.vf.link-state
             --> /etc/0.toml:7:14
              |
            7 | link-state = "Up"
              |              ^^^^ expected "follow", "up" or "down" (`ip link` calls them auto, enable and disable)

            error: unknown key "colour" in [[pf.vf]]
             --> /etc/0.toml:8:1
              |
            8 | colour = 1
              | ^^^^^^
              |
              = help: possible are index, node-guid, port-guid, link-state, driver, owner

            the configuration is not valid: 3 errors"#]],
    );
    bad(
        &["[[pf]]\nrdma = \"mlx5_0\"\nvfs = 0\nvf = 3\n"],
        &expect![[r#"
        error: pf.vf is a list of tables, not a whole number
         --> /etc/0.toml:4:6
          |
        4 | vf = 3
          |      ^
          |
          = help: write [[pf.vf]] with two brackets, once for each

        the configuration is not valid: 1 error"#]],
    );
    bad(
        &["[[pf]]\nrdma = \"mlx5_0\"\nvfs = 1\nguid.list = \"0200:0000:0000:0001\"\n"],
        &expect![[r#"
            error: bad value for pf.guid.list
             --> /etc/0.toml:4:13
              |
            4 | guid.list = "0200:0000:0000:0001"
              |             ^^^^^^^^^^^^^^^^^^^^^ expected a list of strings, each a GUID, got a string

            the configuration is not valid: 1 error"#]],
    );
}

#[test]
fn a_template_that_is_none_is_shown() {
    bad(
        &["[[pf]]\nrdma = \"mlx5_0\"\nvfs = 1\nguid.template = \"02:00:{host:16}:{vf:16}\"\n\
           [[pf]]\nrdma = \"mlx5_1\"\nvfs = 1\nguid.template = \"{hots:64}\"\n"],
        &expect![[r#"
            error: bad value for pf.guid.template
             --> /etc/0.toml:4:17
              |
            4 | guid.template = "02:00:{host:16}:{vf:16}"
              |                 ^^^^^^^^^^^^^^^^^^^^^^^^^ the template has 48 bits, and a GUID has 64

            error: bad value for pf.guid.template
             --> /etc/0.toml:8:17
              |
            8 | guid.template = "{hots:64}"
              |                 ^^^^^^^^^^^ {hots:64} is not a field: expected {host:BITS}, {site:BITS}, {pf:BITS}, {vf:BITS} or {kind:BITS}, BITS from 1 to 56, and ":decimal" after it where each decimal digit is to take 4 bits; {kind:8:node=0,port=1} says which number is which

            the configuration is not valid: 2 errors"#]],
    );
}

#[test]
fn a_template_with_the_site_needs_its_number() {
    let pf = "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 1\nguid.template = \"02:{site:8}:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n";
    assert_eq!(good(&["host.site = 7", pf]).pf[0].site, Some(7));
    bad(
        &[pf],
        &expect![[r#"
        error: pf.guid.template needs the site's number, but host.site is not set
         --> /etc/0.toml:4:17
          |
        4 | guid.template = "02:{site:8}:{host:16}:{pf:8}:{kind:8}:{vf:16}"
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ {site:8} is that number
          |
          = help: add, for example, `[host] site = 1`: use different numbers for clusters whose fabrics may be joined one day

        the configuration is not valid: 1 error"#]],
    );
    bad(
        &["host.site = 256", pf],
        &expect![[r#"
        error: site number 256 does not fit in {site:8}: the largest is 255
         --> /etc/1.toml:4:17
          |
        4 | guid.template = "02:{site:8}:{host:16}:{pf:8}:{kind:8}:{vf:16}"
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the field
          |
         ::: /etc/0.toml:1:13
          |
        1 | host.site = 256
          |             --- the number

        the configuration is not valid: 1 error"#]],
    );
}

#[test]
fn the_host_has_one_number() {
    let file = good(&["host.number-file = \"/etc/n\""]);
    assert_eq!(file.host_number, HostNumber::File("/etc/n".to_owned()));
    bad(
        &["host.number = 1", "host.number-file = \"/etc/n\""],
        &expect![[r#"
        error: host.number and host.number-file are both set
         --> /etc/1.toml:1:20
          |
        1 | host.number-file = "/etc/n"
          |                    ^^^^^^^^ the number is to be read from a file
          |
         ::: /etc/0.toml:1:15
          |
        1 | host.number = 1
          |               - the number is given
          |
          = help: keep one of the two

        the configuration is not valid: 1 error"#]],
    );
    bad(
        &["host.number = -1\nhost.number-file = \"n\"\nhost.number-rule = \"any\""],
        &expect![[r#"
            error: bad value for host.number
             --> /etc/0.toml:1:15
              |
            1 | host.number = -1
              |               ^^ -1 is out of range: expected 0 to 4294967295

            error: bad value for host.number-file
             --> /etc/0.toml:2:20
              |
            2 | host.number-file = "n"
              |                    ^^^ expected an absolute path, without control characters

            error: bad value for host.number-rule
             --> /etc/0.toml:3:20
              |
            3 | host.number-rule = "any"
              |                    ^^^^^ expected "last-digits", "first-digits" or "only-digits"

            the configuration is not valid: 3 errors"#]],
    );
}

#[test]
fn show_can_be_read_back() {
    let text = format!(
        "[[pf]]\npci = \"0000:4b:00.0\"\nvfs = 4\nguid.template = \"{TEMPLATE}\"\n\
         [[pf.vf]]\nindex = \"2-3\"\ndriver = \"vfio-pci\"\n[[pf.vf]]\nindex = 0\nlink-state = \"up\"\n\
         [[pf]]\nrdma = \"mlx5_1\"\nguid.list = [\"0x0200000000000001\"]\n[[pf.vf]]\nindex = 0\ndriver = \"none\"\n"
    );
    let loaded = loaded(&[&text]).expect("good");
    let shown = to_toml(&loaded.effective());
    // The rest are defaults, shown elsewhere, and read back below.
    let (_, pfs) = shown.split_once("[[pf]]").expect("PFs");
    let (pfs, _) = pfs.split_once("\n[guests]").expect("what follows");
    expect![[r#"
        [[pf]]
        pci = "0000:4b:00.0"  # from /etc/0.toml:2
        vfs = 4  # from /etc/0.toml:3
        guid.template = "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"  # from /etc/0.toml:4

        [[pf.vf]]
        index = "2-3"  # from /etc/0.toml:6
        driver = "vfio-pci"  # from /etc/0.toml:7

        [[pf.vf]]
        index = 0  # from /etc/0.toml:9
        link-state = "up"  # from /etc/0.toml:10

        [[pf]]
        rdma = "mlx5_1"  # from /etc/0.toml:12
        guid.list = ["0200:0000:0000:0001"]  # from /etc/0.toml:13

        [[pf.vf]]
        index = 0  # from /etc/0.toml:15
        driver = "none"  # from /etc/0.toml:16
    "#]]
    .assert_eq(&format!("[[pf]]{pfs}"));
    let mut again = good(&[&shown]);
    for (again, first) in again.pf.iter_mut().zip(&loaded.config.pf) {
        again.origin.clone_from(&first.origin);
    }
    assert_eq!(again, loaded.config);
    assert!(loaded.effective().iter().any(|s| s.key == "pf[0].vf[1].link-state"));
}

#[test]
fn patterns_for_names_are_judged_with_their_place() {
    let with = |first: &str, second: &str| {
        let pf = |pci: &str, lines: &str| {
            format!(
                "[[pf]]\npci = \"{pci}\"\nvfs = 12\nlink-state = \"up\"\nguid.template = \"{TEMPLATE}\"\n{lines}\n"
            )
        };
        let text = format!("{}{}", pf("0000:4b:00.0", first), pf("0000:5e:00.0", second));
        match loaded(&[&text]) {
            Ok(_) => String::new(),
            Err(problems) => problems.to_string(),
        }
    };
    let good = "vf-name = \"{netdev}v{vf}\"\nvf-rdma-name = \"{rdma}v{vf}\"\nbind = \"parallel\"";
    assert_eq!(with(good, good), "");
    // ibv1 and 0 are ibv10 too.
    let twice = with("vf-name = \"ibv{vf}\"", "vf-name = \"ibv1{vf}\"");
    assert!(twice.contains("VFs of two PFs would have the same netdev name ibv10"), "{twice}");
    assert!(twice.contains("/etc/0.toml:12:11") && twice.contains("/etc/0.toml:6:11"), "{twice}");
    for (line, want, place) in [
        ("vf-name = \"storage\"", "the VFs of the PF would all have one netdev name", ":6:11"),
        (
            "vf-name = \"a-very-long-one{vf}\"",
            "the netdev name of VF 11 would be too long",
            ":6:11",
        ),
        (
            "vf-name = \"{netdev}-is-too-longs{vf}\"",
            "the netdev name of VF 11 would be too long",
            ":6:11",
        ),
        (
            "vf-rdma-name = \"mlx5_{vf}\"",
            "\"mlx5_11\" is the name that the kernel assigns",
            ":6:16",
        ),
        ("vf-name = \"ib%k{vf}\"", "'%' is not allowed in names", ":6:11"),
        ("bind = \"chance\"", "expected \"in-order\" or \"parallel\"", ":6:8"),
    ] {
        let said = with(line, "");
        assert!(said.contains(want) && said.contains(place), "{line}: {said}");
    }
    let long = format!("vf-rdma-name = \"{}{{vf}}\"", "x".repeat(62));
    assert!(with(&long, "").contains("RDMA device name of VF 11 would be too long"));
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

#[test]
fn a_row_for_several_pfs_gives_no_two_of_them_one_guid() {
    bad(
        &[
            "[[pf]]\npci = [\"4b:00.0\", \"98:00.0\"]\nvfs = 2\nguid.node.template = \"02:00:{host:16}:00:{kind:8}:{vf:16}\"\nguid.port.range = \"0200:0000:0000:0010 - 0200:0000:0000:001f\"\n\
          [[pf.vf]]\nindex = 1\nport-guid = \"0200:0000:0000:0001\"\n",
        ],
        &expect![[r#"
            error: pf.guid.node.template would give VFs of several PFs the same GUIDs
             --> /etc/0.toml:4:22
              |
            2 | pci = ["4b:00.0", "98:00.0"]
              |                   --------- the second PF
            3 | vfs = 2
            4 | guid.node.template = "02:00:{host:16}:00:{kind:8}:{vf:16}"
              |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ has no {pf:BITS}
              |
              = help: recommended, with 00 for your site: "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"; or a [[pf]] for each PF

            error: pf.guid.port.range would give VFs of several PFs the same GUIDs
             --> /etc/0.toml:5:19
              |
            2 | pci = ["4b:00.0", "98:00.0"]
              |                   --------- the second PF
            3 | vfs = 2
            4 | guid.node.template = "02:00:{host:16}:00:{kind:8}:{vf:16}"
            5 | guid.port.range = "0200:0000:0000:0010 - 0200:0000:0000:001f"
              |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the same GUIDs for each PF
              |
              = help: recommended, with 00 for your site: "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"; or a [[pf]] for each PF

            error: VFs of several PFs cannot have one GUID
             --> /etc/0.toml:8:13
              |
            8 | port-guid = "0200:0000:0000:0001"
              |             ^^^^^^^^^^^^^^^^^^^^^ a single GUID
              |
             ::: /etc/0.toml:2:19
              |
            2 | pci = ["4b:00.0", "98:00.0"]
              |                   --------- the second PF
              |
              = help: a PF with such a VF needs a [[pf]] of its own

            the configuration is not valid: 3 errors"#]],
    );
    bad(
        &[&format!(
            "[[pf]]\npci = [\"4b:00.0\", \"98:00.0\"]\nvfs = 2\nguid.template = \"{TEMPLATE}\"\nvf-name = \"net{{vf}}\"\n\
             [[pf]]\npci = [\"ca:00.0\",\n  \"98:00.0\"]\nvfs = 1\nguid.template = \"{TEMPLATE}\"\n\
             [[pf]]\npci = \"cb:00.0\"\nrdma = [\"mlx5_0\", \"mlx5_1\"]\nvfs = 1\nguid.template = \"{TEMPLATE}\"\n\
             [[pf]]\npci = []\nvfs = 1\nguid.template = \"{TEMPLATE}\"\n",
        )],
        &expect![[r#"
            error: VFs of two PFs would have the same netdev name net0
             --> /etc/0.toml:5:11
              |
            2 | pci = ["4b:00.0", "98:00.0"]
              |        --------- and PF 0000:4b:00.0 here
            3 | vfs = 2
            4 | guid.template = "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"
            5 | vf-name = "net{vf}"
              |           ^^^^^^^^^ PF 0000:98:00.0 here
              |
              = help: use {netdev} or {rdma} to have names that differ by PF: "{netdev}v{vf}"

            error: PF 0000:98:00.0 is given twice
             --> /etc/0.toml:8:3
              |
            8 |   "98:00.0"]
              |   ^^^^^^^^^ here
              |
             ::: /etc/0.toml:2:19
              |
            2 | pci = ["4b:00.0", "98:00.0"]
              |                   --------- and first here
              |
              = help: keep one of the two; `pf = []` in a file between them clears the list before it

            error: pf names its PF in more than one way
              --> /etc/0.toml:12:7
               |
            12 | pci = "cb:00.0"
               |       ^^^^^^^^^ one way
            13 | rdma = ["mlx5_0", "mlx5_1"]
               |         -------- and another
               |
               = help: keep exactly one of pci, port-guid, node-guid, rdma

            error: bad value for pf.pci
              --> /etc/0.toml:17:7
               |
            17 | pci = []
               |       ^^ an empty list: expected at least one string with a PCI address

            the configuration is not valid: 4 errors"#]],
    );
}

#[test]
fn guids_that_are_too_few_for_the_vfs() {
    // What an exception gives needs no place in the list.
    good(&[
        "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 3\nguid.list = [\"0200:0000:0000:0001\", \"0200:0000:0000:0002\"]\n\
         [[pf.vf]]\nindex = 2\nnode-guid = \"0200:0000:0000:0003\"\nport-guid = \"0200:0000:0000:0003\"\n",
    ]);
    good(&[
        "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 0\nguid.range = \"0200:0000:0000:0001 - 0200:0000:0000:0001\"\n",
    ]);
    bad(
        &["[[pf]]\nrdma = \"mlx5_0\"\nvfs = 4\nguid.list = [\"0200:0000:0000:0001\"]\n\
             [[pf]]\nrdma = \"mlx5_1\"\nvfs = 4\nguid.node.range = \"0200:0000:0000:0010 - 0200:0000:0000:0011\"\n\
             guid.port.range = \"0200:0000:0000:0020 - 0200:0000:0000:002f\"\n\
             [[pf.vf]]\nindex = 2\nport-guid = \"0200:0000:0000:0052\"\n\
             [[pf]]\nrdma = \"mlx5_2\"\nguid.node.list = [\"0200:0000:0000:0030\", \"0200:0000:0000:0031\"]\n\
             guid.port.list = [\"0200:0000:0000:0040\"]\n"],
        &expect![[r#"
            error: pf.guid.list has no GUID for VF 1
             --> /etc/0.toml:4:13
              |
            3 | vfs = 4
              |       - the number of VFs, counted from 0
            4 | guid.list = ["0200:0000:0000:0001"]
              |             ^^^^^^^^^^^^^^^^^^^^^^^ 1 GUID

            error: pf.guid.node.range has no GUID for VF 2
             --> /etc/0.toml:8:19
              |
            7 | vfs = 4
              |       - the number of VFs, counted from 0
            8 | guid.node.range = "0200:0000:0000:0010 - 0200:0000:0000:0011"
              |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ 2 GUIDs

            error: pf.guid.port.list has no GUID for VF 1
              --> /etc/0.toml:16:18
               |
            15 | guid.node.list = ["0200:0000:0000:0030", "0200:0000:0000:0031"]
               |                  ---------------------------------------------- the length of the list of GUIDs is the number of VFs
            16 | guid.port.list = ["0200:0000:0000:0040"]
               |                  ^^^^^^^^^^^^^^^^^^^^^^^ 1 GUID

            the configuration is not valid: 3 errors"#]],
    );
    bad(
        &[
            "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 300\nguid.template = \"02:00:00:{host:16}:{pf:8}:{kind:8}:{vf:8}\"\n\
             [[pf]]\nrdma = \"mlx5_1\"\nvfs = 1\nnumber = 16\nguid.template = \"02:00:00:{host:16}:0{pf:4}:{kind:8}:{vf:8}\"\n",
            "host.number = 70000",
        ],
        &expect![[r#"
            error: VF index 256 does not fit in {vf:8}: the largest is 255
             --> /etc/0.toml:4:17
              |
            3 | vfs = 300
              |       --- the number of VFs, counted from 0
            4 | guid.template = "02:00:00:{host:16}:{pf:8}:{kind:8}:{vf:8}"
              |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the field

            error: host number 70000 does not fit in {host:16}: the largest is 65535
             --> /etc/0.toml:4:17
              |
            4 | guid.template = "02:00:00:{host:16}:{pf:8}:{kind:8}:{vf:8}"
              |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the field
              |
             ::: /etc/1.toml:1:15
              |
            1 | host.number = 70000
              |               ----- the number is 70000

            error: PF number 16 does not fit in {pf:4}: the largest is 15
             --> /etc/0.toml:9:17
              |
            8 | number = 16
              |          -- the number is 16
            9 | guid.template = "02:00:00:{host:16}:0{pf:4}:{kind:8}:{vf:8}"
              |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the field

            error: host number 70000 does not fit in {host:16}: the largest is 65535
             --> /etc/0.toml:9:17
              |
            9 | guid.template = "02:00:00:{host:16}:0{pf:4}:{kind:8}:{vf:8}"
              |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the field
              |
             ::: /etc/1.toml:1:15
              |
            1 | host.number = 70000
              |               ----- the number is 70000

            the configuration is not valid: 4 errors"#]],
    );
}

#[test]
fn two_vfs_with_one_guid() {
    // One VF may have one GUID for both.
    good(&[
        "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 2\nguid.range = \"0200:0000:0000:0001 - 0200:0000:0000:0002\"\n",
    ]);
    // For one host only, which plan finds there.
    good(&[
        "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 1\nguid.template = \"02:00:00:00:{host:16}:00:{vf:8}\"\n\
            [[pf]]\nrdma = \"mlx5_1\"\nvfs = 1\nguid.template = \"02:00:{host:16}:00:00:00:{vf:8}\"\n",
    ]);
    let template = "guid.template = \"02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}\"\n";
    bad(
        &[
            "[[pf]]\nrdma = \"mlx5_0\"\nvfs = 3\nguid.list = [\n  \"0200:0000:0000:0001\",\n  \"0200:0000:0000:0002\",\n  \"0200:0000:0000:0001\",\n]\n",
            "[[pf]]\nrdma = \"mlx5_1\"\nvfs = 4\nguid.node.range = \"0200:0000:0000:0010 - 0200:0000:0000:001f\"\n\
             guid.port.range = \"0200:0000:0000:0012 - 0200:0000:0000:001f\"\n\
             [[pf.vf]]\nindex = 3\nport-guid = \"0200:0000:0000:0002\"\n",
        ],
        &expect![[r#"
            error: two VFs would have the GUID 0200:0000:0000:0001
             --> /etc/0.toml:7:3
              |
            5 |   "0200:0000:0000:0001",
              |   --------------------- VF 0 of PF mlx5_0
            6 |   "0200:0000:0000:0002",
            7 |   "0200:0000:0000:0001",
              |   ^^^^^^^^^^^^^^^^^^^^^ VF 2 of PF mlx5_0
              |
              = help: a GUID has to be unique in its fabric: change one of them

            error: two VFs would have the GUID 0200:0000:0000:0012
             --> /etc/1.toml:4:19
              |
            4 | guid.node.range = "0200:0000:0000:0010 - 0200:0000:0000:001f"
              |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ VF 2 of PF mlx5_1
            5 | guid.port.range = "0200:0000:0000:0012 - 0200:0000:0000:001f"
              |                   ------------------------------------------- VF 0 of PF mlx5_1
              |
              = help: a GUID has to be unique in its fabric: change one of them

            error: two VFs would have the GUID 0200:0000:0000:0002
             --> /etc/1.toml:8:13
              |
            8 | port-guid = "0200:0000:0000:0002"
              |             ^^^^^^^^^^^^^^^^^^^^^ VF 3 of PF mlx5_1
              |
             ::: /etc/0.toml:6:3
              |
            6 |   "0200:0000:0000:0002",
              |   --------------------- VF 1 of PF mlx5_0
              |
              = help: a GUID has to be unique in its fabric: change one of them

            the configuration is not valid: 3 errors"#]],
    );
    bad(
        &[
            &format!("[[pf]]\nrdma = [\"mlx5_0\", \"mlx5_1\"]\nvfs = 2\n{template}"),
            &format!("[[pf]]\nrdma = \"mlx5_2\"\nvfs = 2\nnumber = 1\n{template}"),
        ],
        &expect![[r#"
            error: two VFs would have the same GUID
             --> /etc/1.toml:5:17
              |
            5 | guid.template = "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"
              |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ VF 0 of PF mlx5_2
              |
             ::: /etc/0.toml:4:17
              |
            4 | guid.template = "02:00:{host:16}:{pf:8}:{kind:8}:{vf:16}"
              |                 ----------------------------------------- VF 0 of PF mlx5_1
              |
              = help: a GUID has to be unique in its fabric: change one of them

            the configuration is not valid: 1 error"#]],
    );
}
