// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices and ports as ib_core sees them, and the way of a port from Down
 * over Init to Active under the knob link and, for a VF, its policy.
 */
#include <linux/netdevice.h>
#include <linux/module.h>
#include "ib.h"

static struct sim_port *port_of(struct ib_device *ibdev, sim_num num)
{
	return &to_sim(ibdev)->port[num - 1];
}

/* Where the port should be; *phys_up tells of the cable alone. */
static enum ib_port_state goal(struct sim_port *p, bool *phys_up)
{
	struct sim_func *f = p->ib->func;
	enum sim_policy policy = sim_vf_own_policy(f);

	*phys_up = sim_link(f->pf ?: f, f->first_port + p->num - 1);
	/* As mlx5_ib: the state of a RoCE port is its netdev's. */
	if (sim_port_is_eth(f, p->num))
		return *phys_up && sim_eth_runs(p) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	if (policy == SIM_POLICY_DOWN || (f->pf && !f->port_guid[p->num - 1]))
		return IB_PORT_DOWN;
	/* Up: the VF's port rises whatever the cable does. */
	if ((!*phys_up && policy != SIM_POLICY_UP) || !sim_link(f, p->num))
		return IB_PORT_DOWN;
	return IB_PORT_ACTIVE;
}

static void tell(struct sim_port *p, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &p->ib->ibdev,
		.element.port_num = p->num,
		.event = type,
	};

	sim_count(p->ib->func, SIM_C_port_event);
	ib_dispatch_event(&event);
}

static void go(struct sim_port *p, enum ib_port_state to)
{
	enum ib_port_state from = p->state;

	WRITE_ONCE(p->state, to);
	if (to == IB_PORT_ACTIVE) {
		tell(p, IB_EVENT_LID_CHANGE);
		tell(p, IB_EVENT_PORT_ACTIVE);
	} else if (from == IB_PORT_ACTIVE) {
		tell(p, IB_EVENT_PORT_ERR);
	}
}

/* Upward by way of Init, as a subnet manager brings it up. */
static void port_step(struct work_struct *work)
{
	struct sim_port *p = container_of(work, struct sim_port, work);
	enum ib_port_state want;
	bool phys_up;

	want = goal(p, &phys_up);
	p->phys = phys_up ? IB_PORT_PHYS_STATE_LINK_UP :
			    IB_PORT_PHYS_STATE_POLLING;
	if (want == p->state)
		return;
	if (want == IB_PORT_ACTIVE && !sim_port_is_eth(p->ib->func, p->num))
		go(p, IB_PORT_INIT);
	go(p, want);
	sim_eth_carrier(p);
}

void sim_ports_kick(void *ctx)
{
	struct sim_ib *ib = ctx;
	unsigned int i;

	for (i = 0; i < ib->func->nports; i++)
		queue_work(system_wq, &ib->port[i].work);
}

void sim_port_start(struct sim_port *p, struct sim_ib *ib, unsigned int num)
{
	p->ib = ib;
	p->num = num;
	p->state = IB_PORT_DOWN;
	p->phys = IB_PORT_PHYS_STATE_POLLING;
	p->lid = sim_switch_lid();
	INIT_WORK(&p->work, port_step);
}

void sim_port_stop(struct sim_port *p)
{
	WRITE_ONCE(p->stopped, true);
	cancel_work_sync(&p->work);
}

static int query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	struct sim_func *f = to_sim(ibdev)->func;

	attr->fw_ver = 20ULL << 32 | 35 << 16 | 1012;
	attr->sys_image_guid = cpu_to_be64(f->node_guid);
	attr->vendor_id = 0x02c9;
	attr->vendor_part_id = f->pdev->device;
	attr->max_mr_size = ~0ULL;
	attr->page_size_cap = PAGE_SIZE;
	attr->max_qp = 1024;
	attr->max_qp_wr = 16384;
	attr->max_send_sge = 30;
	attr->max_recv_sge = 4;
	attr->max_cq = 1024;
	attr->max_cqe = 65536;
	attr->max_mr = 1024;
	attr->max_pd = 1024;
	attr->max_ah = 65536;
	attr->max_mcast_grp = 1024;
	attr->max_mcast_qp_attach = 128;
	attr->max_total_mcast_qp_attach = 65536;
	attr->max_pkeys = SIM_PKEY_TABLE;
	attr->local_ca_ack_delay = 16;
	if (f->is_vf)
#if SIM_OLDER
		attr->device_cap_flags |= IB_DEVICE_VIRTUAL_FUNCTION;
#else
		attr->kernel_cap_flags |= IBK_VIRTUAL_FUNCTION;
#endif
	return 0;
}

static int query_port(struct ib_device *ibdev, sim_num num,
		      struct ib_port_attr *attr)
{
	struct sim_port *p = port_of(ibdev, num);

	sim_fw_cmd(p->ib->func, SIM_C_query_port);
	sim_silence(p->ib->func, "port_query_ms");
	attr->state = READ_ONCE(p->state);
	attr->phys_state = p->phys;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = SIM_GID_TABLE;
	attr->pkey_tbl_len = SIM_PKEY_TABLE;
	attr->max_msg_sz = 1 << 30;
	attr->max_vl_num = 4;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = attr->state == IB_PORT_DOWN ? IB_SPEED_SDR :
							   IB_SPEED_HDR;
	if (rdma_protocol_ib(ibdev, num)) {
		bool known = attr->state == IB_PORT_ACTIVE;

		/* The SM hands out both LIDs when it brings the port up. */
		attr->lid = known ? p->lid : 0;
		attr->sm_lid = known ? SIM_SM_LID : 0;
		attr->port_cap_flags = IB_PORT_CM_SUP | IB_PORT_AUTO_MIGR_SUP |
				       IB_PORT_SYS_IMAGE_GUID_SUP;
		attr->subnet_timeout = 18;
	} else {
		attr->port_cap_flags = IB_PORT_CM_SUP;
		attr->ip_gids = true;
	}
	return 0;
}

static int get_port_immutable(struct ib_device *ibdev, sim_num num,
			      struct ib_port_immutable *immutable)
{
	bool eth = sim_port_is_eth(to_sim(ibdev)->func, num);

	immutable->core_cap_flags = eth ? RDMA_CORE_PORT_IBA_ROCE |
					  RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP :
					  RDMA_CORE_PORT_IBA_IB;
	immutable->gid_tbl_len = SIM_GID_TABLE;
	immutable->pkey_tbl_len = eth ? 1 : SIM_PKEY_TABLE;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ibdev, sim_num num)
{
	return sim_port_is_eth(to_sim(ibdev)->func, num) ?
	       IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

static int query_gid(struct ib_device *ibdev, sim_num num, int index,
		     union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (index)
		return 0;
	gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	gid->global.interface_id =
		cpu_to_be64(to_sim(ibdev)->func->port_guid[num - 1]);
	return 0;
}

/* The core keeps the table of a RoCE port; there is nothing to program. */
static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int query_pkey(struct ib_device *ibdev, sim_num num, u16 index, u16 *pkey)
{
	*pkey = sim_port_pkey(index);
	return 0;
}

static int modify_port(struct ib_device *ibdev, sim_num num, int mask,
		       struct ib_port_modify *props)
{
	return 0;
}

static int modify_device(struct ib_device *ibdev, int mask,
			 struct ib_device_modify *props)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	memcpy(ibdev->node_desc, props->node_desc, sizeof(ibdev->node_desc));
	return 0;
}

static void get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	char value[SIM_VALUE_LEN];

	if (!sim_knob_str(to_sim(ibdev)->func->pdev, "fw_ver", value))
		strscpy(value, "20.35.1012", sizeof(value));
	strscpy(str, value, IB_FW_VERSION_NAME_MAX);
}

static ssize_t hca_type_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	struct sim_ib *ib = rdma_device_to_drv_device(dev, struct sim_ib,
						      ibdev);

	/* As mlx5: MT and the PCI device number in decimal. */
	return sysfs_emit(buf, "MT%d\n", ib->func->pdev->device);
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t board_id_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	struct sim_ib *ib = rdma_device_to_drv_device(dev, struct sim_ib,
						      ibdev);
	char value[SIM_VALUE_LEN];

	if (!sim_knob_str(ib->func->pdev, "board_id", value))
		strscpy(value, "MT_0000000223", sizeof(value));
	return sysfs_emit(buf, "%s\n", value);
}
static DEVICE_ATTR_RO(board_id);

static ssize_t hw_rev_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%x\n", 0);
}
static DEVICE_ATTR_RO(hw_rev);

static struct attribute *sim_attrs[] = {
	&dev_attr_hca_type.attr, &dev_attr_board_id.attr,
	&dev_attr_hw_rev.attr, NULL,
};

const struct attribute_group sim_group = { .attrs = sim_attrs };

const struct ib_device_ops sim_port_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_no_driver_id_binding = 1,
#if !SIM_OLDER
	.device_group = &sim_group,
#endif
	.query_device = query_device,
	.query_port = query_port,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = get_link_layer,
	.query_gid = query_gid,
	.add_gid = add_gid,
	.del_gid = del_gid,
	.query_pkey = query_pkey,
	.modify_port = modify_port,
	.modify_device = modify_device,
	.get_dev_fw_str = get_dev_fw_str,
};
