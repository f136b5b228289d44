// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VF operations that "ip link set ib0 vf N ..." reaches through rtnetlink
 * and ib_ipoib.  As in mlx5, GUIDs read back are the PF driver's own copy of
 * what came in by this way, and the link state is asked of the firmware.
 */
#include <linux/if_link.h>
#include <linux/module.h>
#include "ib.h"

static int set_vf_link_state(struct ib_device *ibdev, int vf, sim_num port,
			     int state)
{
	enum sim_policy policy;

	switch (state) {
	case IFLA_VF_LINK_STATE_AUTO:
		policy = SIM_POLICY_FOLLOW;
		break;
	case IFLA_VF_LINK_STATE_ENABLE:
		policy = SIM_POLICY_UP;
		break;
	case IFLA_VF_LINK_STATE_DISABLE:
		policy = SIM_POLICY_DOWN;
		break;
	default:
		return -EINVAL;
	}
	return sim_vf_set_policy(to_sim(ibdev)->func, vf, policy);
}

static int get_vf_config(struct ib_device *ibdev, int vf, sim_num port,
			 struct ifla_vf_info *info)
{
	struct sim_vf now;
	int err = sim_vf_query(to_sim(ibdev)->func, vf, &now);

	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	switch (now.fw.policy) {
	case SIM_POLICY_DOWN:
		info->linkstate = IFLA_VF_LINK_STATE_DISABLE;
		break;
	case SIM_POLICY_UP:
		info->linkstate = IFLA_VF_LINK_STATE_ENABLE;
		break;
	case SIM_POLICY_FOLLOW:
		info->linkstate = IFLA_VF_LINK_STATE_AUTO;
		break;
	}
	return 0;
}

static int get_vf_guid(struct ib_device *ibdev, int vf, sim_num port,
		       struct ifla_vf_guid *node_guid,
		       struct ifla_vf_guid *port_guid)
{
	struct sim_func *func = to_sim(ibdev)->func;
	struct sim_vf now;
	int err;

	/* As before the kernel asked: netlink has no such attributes then. */
	if (!sim_knob_u64(func->pdev, "vf_guid_read", 1))
		return -EOPNOTSUPP;
	err = sim_vf_query(func, vf, &now);
	if (err)
		return err;
	node_guid->guid = now.node_valid ? now.cache.node_guid : 0;
	port_guid->guid = now.port_valid ? now.cache.port_guid[0] : 0;
	return 0;
}

static int set_vf_guid(struct ib_device *ibdev, int vf, sim_num port, u64 guid,
		       int type)
{
	if (type != IFLA_VF_IB_NODE_GUID && type != IFLA_VF_IB_PORT_GUID)
		return -EINVAL;
	/* As mlx5: port 1's, whatever PORT is. */
	return sim_vf_set_guid(to_sim(ibdev)->func, vf,
			       type == IFLA_VF_IB_PORT_GUID, guid, true);
}

static int get_vf_stats(struct ib_device *ibdev, int vf, sim_num port,
			struct ifla_vf_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	return 0;
}

const struct ib_device_ops sim_vf_ops = {
	.set_vf_link_state = set_vf_link_state,
	.get_vf_config = get_vf_config,
	.get_vf_guid = get_vf_guid,
	.set_vf_guid = set_vf_guid,
	.get_vf_stats = get_vf_stats,
};
