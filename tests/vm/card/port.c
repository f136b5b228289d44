// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ports, and the virtual port that each function has at its card's port.
 *
 * The driver is real, what firmware does by default is a guess: the GUIDs of
 * a VF are zero and its policy is Down until its PF says otherwise, both are
 * forgotten when the PF disables the VF, and a virtual port without a port
 * GUID stays down.
 */
#include "card.h"

#define PREFIX 0xfe80000000000000ULL
#define PHYS_POLLING 2
#define PHYS_UP 5
#define CAP_MASK 0x2650e848
#define CAP_MASK_MAY_CHANGE 0x010b0002

static u64 default_guid(struct card_fn *fn)
{
	return 0x0c42a10300a0b000ULL + fn->card * 0x100 + fn->devfn * 0x10;
}

static u64 own_node_guid(struct card_fn *fn)
{
	return fn->stale ? fn->vport.held_node_guid : fn->vport.node_guid;
}

u64 vport_guid(struct card_fn *fn)
{
	return fn->stale ? fn->vport.held_port_guid : fn->vport.port_guid;
}

/* With the probe a VF takes its GUIDs up, unless it is told to be stale. */
void vport_latch(struct card_fn *fn)
{
	char value[VALUE_LEN];

	fn->stale = fn->is_vf && knob_text(fn, "latch", value) &&
		    !strcmp(value, "stale");
	if (fn->stale)
		return;
	fn->vport.held_node_guid = fn->vport.node_guid;
	fn->vport.held_port_guid = fn->vport.port_guid;
}

void port_init(struct card_fn *fn)
{
	if (!fn->is_vf) {
		fn->vport.node_guid = knob_number(fn, "node_guid", default_guid(fn));
		fn->vport.port_guid = knob_number(fn, "port_guid", fn->vport.node_guid);
		fn->vport.policy = POLICY_FOLLOW;
		fn->vport.enabled = true;
		fn->port_since = now_ns();
		fn->port_state = LINK_DOWN;
		if (!fn->node_desc[0])
			snprintf(fn->node_desc, sizeof(fn->node_desc), "card %u function %u",
				 fn->card, fn->devfn);
		sma_init(fn);
		port_pass(fn);
	}
	if (!fn->vport.cap_mask)
		fn->vport.cap_mask = CAP_MASK;
	fn->vport.shown = vport_state(fn);
	fn->vport.shown_lid = fn->pf->lid;
}

enum card_link vport_state(struct card_fn *fn)
{
	if (!fn->is_vf)
		return fn->port_state;
	if (!vport_guid(fn))
		return LINK_DOWN;
	switch (fn->vport.policy) {
	case POLICY_UP:
		return LINK_ACTIVE;
	case POLICY_FOLLOW:
		/* The guest's subnet manager knows of no virtual ports. */
		return fn->pf->k_real_sm ? LINK_DOWN : fn->pf->port_state;
	default:
		return LINK_DOWN;
	}
}

bool port_has_sm(struct card_fn *pf)
{
	return pf->k_sm &&
	       now_ns() >= pf->port_since + pf->k_sm_delay_ms * NSEC_PER_MSEC;
}

static enum card_link physical(struct card_fn *pf)
{
	u64 up = pf->port_since + pf->k_link_delay_ms * NSEC_PER_MSEC;
	u64 active = up + pf->k_active_delay_ms * NSEC_PER_MSEC;
	u64 now = now_ns();

	if (!pf->up || pf->gone || pf->k_link == LINK_DOWN || now < up)
		return LINK_DOWN;
	if (pf->k_link == LINK_INIT || now < active)
		return LINK_INIT;
	if (pf->k_real_sm)
		return pf->sma.state == IB_PORT_ACTIVE ? LINK_ACTIVE : LINK_INIT;
	/* A port that lost its SM stays as it is. */
	if (!port_has_sm(pf) && pf->port_state != LINK_ACTIVE)
		return LINK_INIT;
	return LINK_ACTIVE;
}

static bool port_event(struct card_fn *fn, u8 what)
{
	struct mlx5_eqe_port_state port = { .port = 1 << 4 };

	if (!event_async(fn, MLX5_EVENT_TYPE_PORT_CHANGE, what, &port, sizeof(port)))
		return false;
	count(fn, C_port_event);
	return true;
}

/* Tells the driver what it does not know yet. */
static void show(struct card_fn *fn)
{
	static const u8 event[] = {
		[LINK_DOWN] = MLX5_PORT_CHANGE_SUBTYPE_DOWN,
		[LINK_INIT] = MLX5_PORT_CHANGE_SUBTYPE_INITIALIZED,
		[LINK_ACTIVE] = MLX5_PORT_CHANGE_SUBTYPE_ACTIVE,
	};
	enum card_link now = vport_state(fn);

	if (!fn->up || fn->gone || fn->k_silent)
		return;
	if (fn->vport.shown_lid != fn->pf->lid &&
	    port_event(fn, MLX5_PORT_CHANGE_SUBTYPE_LID))
		fn->vport.shown_lid = fn->pf->lid;
	if (fn->vport.shown != now && port_event(fn, event[now]))
		fn->vport.shown = now;
}

void port_pass(struct card_fn *pf)
{
	static u16 next_lid = FIRST_LID;
	struct card_fn *fn;
	int i;

	/* A cable that is plugged in again begins from the beginning. */
	if (pf->k_link != pf->k_link_before) {
		if (pf->k_link_before == LINK_DOWN)
			pf->port_since = now_ns();
		pf->k_link_before = pf->k_link;
	}
	pf->port_state = physical(pf);
	if (pf->k_real_sm) {
		sma_link(pf, pf->port_state != LINK_DOWN);
		if (pf->k_switch_sm && pf->port_state != LINK_DOWN)
			sma_by_switch(pf);
	} else if (pf->port_state == LINK_ACTIVE && !pf->lid)
		pf->lid = next_lid++;
	for_each_fn_of(pf, fn, i)
		show(fn);
}

u16 pkey_at(struct card_fn *fn, unsigned int index)
{
	if (fn->pf->k_real_sm)
		return index < PKEY_MAX ? fn->pf->sm_pkey[index] : 0;
	return pkey_of_knob(fn->pf, index);
}

u16 pkey_of_knob(struct card_fn *pf, unsigned int index)
{
	char value[VALUE_LEN] = "ffff", *rest = value, *one;

	knob_text(pf, "pkeys", value);
	if (!strcmp(value, "all"))
		return !index ? 0xffff : index < PKEY_MAX ? 0x8000 + index : 0;
	while ((one = strsep(&rest, "+"))) {
		u16 key;

		if (!index--)
			return kstrtou16(one, 16, &key) ? 0 : key;
	}
	return 0;
}

static void context(struct card_fn *fn, bool by_pf, void *c)
{
	static const u8 states[] = {
		[LINK_DOWN] = IB_PORT_DOWN, [LINK_INIT] = IB_PORT_INIT,
		[LINK_ACTIVE] = IB_PORT_ACTIVE,
	};
	struct card_fn *pf = fn->pf;

	MLX5_SET(hca_vport_context, c, sm_virt_aware, !pf->k_real_sm);
	MLX5_SET(hca_vport_context, c, has_smi, !fn->is_vf);
	MLX5_SET(hca_vport_context, c, grh_required, fn->is_vf);
	MLX5_SET(hca_vport_context, c, port_physical_state,
		 pf->port_state == LINK_DOWN ? PHYS_POLLING : PHYS_UP);
	MLX5_SET(hca_vport_context, c, vport_state_policy, fn->vport.policy);
	MLX5_SET(hca_vport_context, c, port_state, states[pf->port_state]);
	MLX5_SET(hca_vport_context, c, vport_state, states[vport_state(fn)]);
	MLX5_SET64(hca_vport_context, c, system_image_guid,
		   default_guid(pf) & ~0xf0ULL);
	MLX5_SET64(hca_vport_context, c, port_guid,
		   by_pf ? fn->vport.port_guid : vport_guid(fn));
	MLX5_SET64(hca_vport_context, c, node_guid,
		   by_pf ? fn->vport.node_guid : own_node_guid(fn));
	MLX5_SET(hca_vport_context, c, cap_mask1, fn->vport.cap_mask);
	MLX5_SET(hca_vport_context, c, cap_mask1_field_select, CAP_MASK_MAY_CHANGE);
	MLX5_SET(hca_vport_context, c, lid, pf->lid);
	MLX5_SET(hca_vport_context, c, subnet_timeout, 18);
	MLX5_SET(hca_vport_context, c, sm_lid, pf->k_real_sm ? pf->sm_lid :
		 pf->lid ? SM_LID : 0);
}

/* What becomes of a write: done, dropped in silence, or refused. */
static u8 fate(struct card_fn *pf, const char *knob, bool *drop)
{
	char value[VALUE_LEN];

	*drop = false;
	if (!knob_text(pf, knob, value) || !strcmp(value, "ok"))
		return 0;
	*drop = !strcmp(value, "drop");
	return *drop ? 0 : knob_number(pf, knob, MLX5_CMD_STAT_INT_ERR);
}

static u8 modify(struct card_fn *fn, struct card_fn *which, void *c)
{
	u32 select = MLX5_GET(hca_vport_context, c, field_select);
	u32 mask = MLX5_GET(hca_vport_context, c, cap_mask1_field_select);
	struct vport *v = &which->vport;
	u8 status;
	bool drop;

	v->cap_mask = (v->cap_mask & ~mask) |
		      (MLX5_GET(hca_vport_context, c, cap_mask1) & mask);
	if (!select)
		return 0;
	if (fn->is_vf)
		return MLX5_CMD_STAT_BAD_OP_ERR;
	if (select & (MLX5_HCA_VPORT_SEL_NODE_GUID | MLX5_HCA_VPORT_SEL_PORT_GUID)) {
		if (select & MLX5_HCA_VPORT_SEL_NODE_GUID)
			count(fn, C_set_node_guid);
		if (select & MLX5_HCA_VPORT_SEL_PORT_GUID)
			count(fn, C_set_port_guid);
		status = fate(fn, "guid_write", &drop);
		if (status)
			return status;
		if (!drop && select & MLX5_HCA_VPORT_SEL_NODE_GUID)
			v->node_guid = MLX5_GET64(hca_vport_context, c, node_guid);
		if (!drop && select & MLX5_HCA_VPORT_SEL_PORT_GUID)
			v->port_guid = MLX5_GET64(hca_vport_context, c, port_guid);
	}
	if (select & MLX5_HCA_VPORT_SEL_STATE_POLICY) {
		u8 policy = MLX5_GET(hca_vport_context, c, vport_state_policy);

		count(fn, C_set_policy);
		if (policy > POLICY_FOLLOW)
			return MLX5_CMD_STAT_BAD_PARAM_ERR;
		status = fate(fn, "policy_write", &drop);
		if (status)
			return status;
		if (!drop)
			v->policy = policy;
	}
	return 0;
}

/* All of these name a virtual port at the same place. */
static struct card_fn *named(struct card_fn *fn, void *in)
{
	u16 n = MLX5_GET(query_hca_vport_context_in, in, vport_number);

	if (!MLX5_GET(query_hca_vport_context_in, in, other_vport) || !n)
		return fn;
	if (fn->is_vf || n > fn->total_vfs)
		return NULL;
	return fn->vfs[n - 1];
}

u8 vport_execute(struct card_fn *fn, u16 opcode, void *in, void *out,
		 size_t out_len, bool *mine)
{
	struct card_fn *which;
	unsigned int index;
	u8 *p;

	*mine = opcode >= MLX5_CMD_OP_QUERY_VPORT_STATE &&
		opcode <= MLX5_CMD_OP_QUERY_HCA_VPORT_PKEY;
	if (!*mine)
		return 0;
	which = named(fn, in);
	if (!which)
		return MLX5_CMD_STAT_BAD_PARAM_ERR;
	index = MLX5_GET(query_hca_vport_gid_in, in, gid_index);
	switch (opcode) {
	case MLX5_CMD_OP_QUERY_HCA_VPORT_CONTEXT:
		count(fn, C_query_vport);
		if (out_len < MLX5_ST_SZ_BYTES(query_hca_vport_context_out))
			return MLX5_CMD_STAT_BAD_OUTP_LEN_ERR;
		context(which, which != fn, MLX5_ADDR_OF(query_hca_vport_context_out,
							 out, hca_vport_context));
		return 0;
	case MLX5_CMD_OP_MODIFY_HCA_VPORT_CONTEXT:
		return modify(fn, which, MLX5_ADDR_OF(modify_hca_vport_context_in,
						      in, hca_vport_context));
	case MLX5_CMD_OP_QUERY_HCA_VPORT_GID:
		p = out + MLX5_ST_SZ_BYTES(query_hca_vport_gid_out);
		if (out_len < MLX5_ST_SZ_BYTES(query_hca_vport_gid_out) + 16)
			return MLX5_CMD_STAT_BAD_OUTP_LEN_ERR;
		MLX5_SET(query_hca_vport_gid_out, out, gids_num, 1);
		if (!index || index == 0xffff) {
			((__be64 *)p)[0] = cpu_to_be64(PREFIX);
			((__be64 *)p)[1] = cpu_to_be64(vport_guid(which));
		}
		return 0;
	case MLX5_CMD_OP_QUERY_HCA_VPORT_PKEY:
		p = out + MLX5_ST_SZ_BYTES(query_hca_vport_pkey_out);
		if (out_len < MLX5_ST_SZ_BYTES(query_hca_vport_pkey_out) + 4)
			return MLX5_CMD_STAT_BAD_OUTP_LEN_ERR;
		/* 16 bits of 32 each; one, or with 0xffff as many as fit. */
		if (index != 0xffff) {
			MLX5_SET(pkey, p, pkey, pkey_at(which, index));
			return 0;
		}
		for (index = 0; (void *)p + 4 <= out + out_len; index++, p += 4)
			MLX5_SET(pkey, p, pkey, pkey_at(which, index));
		return 0;
	case MLX5_CMD_OP_QUERY_NIC_VPORT_CONTEXT:
		if (out_len < MLX5_ST_SZ_BYTES(query_nic_vport_context_out))
			return MLX5_CMD_STAT_BAD_OUTP_LEN_ERR;
		MLX5_SET64(query_nic_vport_context_out, out,
			   nic_vport_context.system_image_guid, default_guid(fn->pf));
		MLX5_SET64(query_nic_vport_context_out, out,
			   nic_vport_context.node_guid,
			   which->is_vf ? which->vport.node_guid : default_guid(which));
		return 0;
	case MLX5_CMD_OP_MODIFY_NIC_VPORT_CONTEXT:
	case MLX5_CMD_OP_MODIFY_VPORT_STATE:
		return 0;
	case MLX5_CMD_OP_QUERY_VPORT_STATE:
		MLX5_SET(query_vport_state_out, out, state, 1);
		MLX5_SET(query_vport_state_out, out, admin_state, 1);
		return 0;
	}
	*mine = false;
	return 0;
}
