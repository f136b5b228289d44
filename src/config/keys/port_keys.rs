//! The keys of `[[port]]`.

/// The keys of one `[[port]]`.
pub(crate) mod port {
    use super::super::kinds::{Key, Kind};
    use super::super::words;
    use crate::names::{
        FirmwareVersion, Gbps, Guid, LinkLayer, LinkSpeed, LinkWidth, PKey, PciAddress, PcieSpeed,
        PcieWidth, PortType, PortWait, RdmaName,
    };

    keys! { KEYS:
        PCI: PciAddress = "pci", Kind::OneOrMore(&words::PCI), "",
            "The adapter by its PCI address, or a list of them.";
        PORT_GUID: Guid = "port-guid", Kind::OneOrMore(&words::GUID), "",
            "The port by its port GUID, or a list of them.";
        RDMA: RdmaName = "rdma", Kind::OneOrMore(&words::RDMA), "",
            "The adapter by the name of its RDMA device, or a list of them.";
        RDMA_NAME: RdmaName = "rdma-name", Kind::OneOrMore(&words::RDMA), "",
            "The name that boot gives the RDMA device of the adapter; of a list of adapters, a list of as many names.";
        PORT: i64 = "port", Kind::Number { min: 1, max: 254 }, "",
            "Only this port of the adapter, counted from 1; default: all ports.";
        REQUIRED: bool = "required", Kind::Flag, "true",
            "The absence of the port is a failure.";
        WAIT: PortWait = "wait", Kind::Word(&words::WAIT), "\"boot\"",
            "Where the port is waited for: in boot, or in wait-online only (online), as one that another program creates later.";
        VFS_EXPECTED: i64 = "vfs-expected", Kind::Number { min: 1, max: 65535 }, "",
            "The number of VFs, each with a driver, that another program creates on the adapter; wait-online waits for them.";
        LINK_LAYER: LinkLayer = "link-layer", Kind::Word(&words::LINK_LAYER), "\"infiniband\"",
            "The link layer that the port has to have.";
        TYPE: PortType = "type", Kind::Word(&words::PORT_TYPE), "",
            "The type that boot sets the port of a ConnectX-3 to (mlx4); implies link-layer.";
        RATE: Gbps = "rate", Kind::Word(&words::RATE), "",
            "The least rate of the link; a slower port is degraded once it is Active.";
        WIDTH: LinkWidth = "width", Kind::Word(&words::LINK_WIDTH), "",
            "The least width of the link.";
        SPEED: LinkSpeed = "speed", Kind::Word(&words::LINK_SPEED), "",
            "The least speed of a lane of the link.";
        PCIE_WIDTH: PcieWidth = "pcie-width", Kind::Word(&words::PCIE_WIDTH), "",
            "The least width of the adapter's PCIe link.";
        PCIE_SPEED: PcieSpeed = "pcie-speed", Kind::Word(&words::PCIE_SPEED), "",
            "The least speed of the adapter's PCIe link.";
        FIRMWARE: FirmwareVersion = "firmware", Kind::Word(&words::FIRMWARE), "",
            "The least version of the adapter's firmware; with an older one the port is degraded.";
        PKEYS: PKey = "pkeys", Kind::Words(&words::PKEY), "[]",
            "The P_Keys of the partitions of which the port has to be a full member.";
    }
}
