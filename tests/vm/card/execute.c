// SPDX-License-Identifier: GPL-2.0-only
/*
 * What commands do that concern the function as a whole: its life from
 * ENABLE_HCA to DISABLE_HCA, capabilities, pages that the driver lends.
 * Everything else is passed on.
 */
#include <linux/slab.h>
#include "card.h"

/* opmod of QUERY_PAGES and MANAGE_PAGES, as in the driver's pagealloc.c. */
#define PAGES_BOOT 1
#define PAGES_INIT 2
#define PAGES_CANT_GIVE 0
#define PAGES_GIVE 1
#define PAGES_TAKE 2

static struct card_fn *function_of(struct card_fn *fn, u16 id)
{
	if (!id)
		return fn;
	if (fn->is_vf || id > fn->total_vfs)
		return NULL;
	return fn->vfs[id - 1];
}

static bool remember(struct fw_pages *p, const __be64 *page, unsigned int n)
{
	unsigned int i;

	if (p->count + n > p->room) {
		unsigned int room = max(p->room * 2, p->count + n);
		u64 *more = krealloc(p->page, room * sizeof(u64), GFP_ATOMIC);

		if (!more)
			return false;
		p->page = more;
		p->room = room;
	}
	for (i = 0; i < n; i++)
		p->page[p->count++] = be64_to_cpu(page[i]);
	return true;
}

static void refused(struct card_fn *fn, struct card_fn *whose)
{
	count(fn, C_page_refused);
	whose->vport.starved = whose != fn;
}

static u8 manage_pages(struct card_fn *fn, void *in, size_t in_len, void *out,
		       size_t out_len)
{
	unsigned int n = MLX5_GET(manage_pages_in, in, input_num_entries), i;
	struct card_fn *whose = function_of(fn,
			MLX5_GET(manage_pages_in, in, function_id));
	struct fw_pages *p;
	__be64 *answer;

	if (!whose)
		return MLX5_CMD_STAT_BAD_PARAM_ERR;
	/* A VF's own pages and those that its PF lends to it are apart. */
	p = whose == fn ? &fn->given : &whose->lent;
	switch (MLX5_GET(manage_pages_in, in, op_mod)) {
	case PAGES_CANT_GIVE:
		refused(fn, whose);
		return 0;
	case PAGES_GIVE:
		if (in_len < MLX5_ST_SZ_BYTES(manage_pages_in) + n * 8ULL)
			return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
		return remember(p, in + MLX5_ST_SZ_BYTES(manage_pages_in), n) ?
		       0 : MLX5_CMD_STAT_LIM_ERR;
	case PAGES_TAKE:
		if (out_len < MLX5_ST_SZ_BYTES(manage_pages_out) + n * 8ULL)
			return MLX5_CMD_STAT_BAD_OUTP_LEN_ERR;
		answer = out + MLX5_ST_SZ_BYTES(manage_pages_out);
		n = min(n, p->count);
		for (i = 0; i < n; i++)
			answer[i] = cpu_to_be64(p->page[--p->count]);
		MLX5_SET(manage_pages_out, out, output_num_entries, n);
		return 0;
	}
	return MLX5_CMD_STAT_BAD_PARAM_ERR;
}

static u8 query_pages(struct card_fn *fn, void *in, void *out)
{
	bool boot = MLX5_GET(query_pages_in, in, op_mod) == PAGES_BOOT;

	MLX5_SET(query_pages_out, out, function_id, 0);
	MLX5_SET(query_pages_out, out, num_pages, boot ?
		 knob_number(fn, "boot_pages", 2) :
		 knob_number(fn, "init_pages", fn->is_vf ? 8 : 32));
	return 0;
}

/* Firmware asks the PF for pages on behalf of a VF, or gives them back. */
static void ask_for_pages(struct card_fn *pf, struct card_fn *vf, s32 n)
{
	struct mlx5_eqe_page_req req = {
		.func_id = cpu_to_be16(vf->vf + 1),
		.num_pages = cpu_to_be32(n),
	};

	if (!n)
		return;
	count(pf, C_page_request);
	event_async(pf, MLX5_EVENT_TYPE_PAGE_REQUEST, 0, &req, sizeof(req));
}

static u8 enable(struct card_fn *fn, struct card_fn *which)
{
	if (which == fn) {
		if (fn->is_vf && !fn->vport.enabled)
			return MLX5_CMD_STAT_BAD_SYS_STATE_ERR;
		if (fn->vport.starved)
			return MLX5_CMD_STAT_LIM_ERR;
		if (!fn->is_vf)
			bus_type(fn);
		memset(fn->this_probe, 0, MLX5_CMD_OP_MAX * sizeof(u32));
		fn->this_probe[MLX5_CMD_OP_ENABLE_HCA] = 1;
		vport_latch(fn);
		fn->enabled = true;
		count(fn, C_probe);
		return 0;
	}
	memset(&which->vport, 0, sizeof(which->vport));
	which->vport.enabled = true;
	which->vport.pages_wanted = knob_number(which, "vf_pages", 4);
	ask_for_pages(fn, which, which->vport.pages_wanted);
	return 0;
}

static u8 disable(struct card_fn *fn, struct card_fn *which)
{
	if (which == fn) {
		count(fn, C_remove);
		fn->enabled = false;
		return 0;
	}
	which->vport.enabled = false;
	firmware_drop_state(which);
	ask_for_pages(fn, which, -(s32)which->lent.count);
	return 0;
}

static u8 query_cap(struct card_fn *fn, void *in, void *out, size_t out_len)
{
	u16 mode = MLX5_GET(query_hca_cap_in, in, op_mod);
	void *cap = MLX5_ADDR_OF(query_hca_cap_out, out, capability);

	if (out_len < MLX5_ST_SZ_BYTES(query_hca_cap_out))
		return MLX5_CMD_STAT_BAD_OUTP_LEN_ERR;
	switch (mode >> 1) {
	case MLX5_CAP_GENERAL:
		caps_general(fn, cap, !(mode & 1));
		break;
	case MLX5_CAP_IPOIB_ENHANCED_OFFLOADS:
		if (caps_enhanced(fn))
			caps_ipoib(cap);
		break;
	case MLX5_CAP_FLOW_TABLE:
		if (caps_enhanced(fn))
			caps_flow_tables(cap);
		break;
	}
	return 0;
}

static u8 adapter(struct card_fn *fn, void *out, size_t out_len)
{
	void *block = MLX5_ADDR_OF(query_adapter_out, out, query_adapter_struct);
	char board[VALUE_LEN] = "MT_0000000223";

	if (out_len < MLX5_ST_SZ_BYTES(query_adapter_out))
		return MLX5_CMD_STAT_BAD_OUTP_LEN_ERR;
	knob_text(fn, "board_id", board);
	MLX5_SET(query_adapter_param_block, block, ieee_vendor_id, 0x02c9);
	MLX5_SET(query_adapter_param_block, block, vsd_vendor_id, PCI_VENDOR_ID_MELLANOX);
	memcpy(MLX5_ADDR_OF(query_adapter_param_block, block, vsd_contd_psid),
	       board, strnlen(board, 16));
	return 0;
}

static void vport_traffic(struct card_fn *fn, void *out)
{
	/* Octets are not counted; packets of both kinds are one number. */
	MLX5_SET64(query_vport_counter_out, out, received_ib_unicast.packets,
		   atomic_long_read(&fn->counter[C_rx_packet]));
	MLX5_SET64(query_vport_counter_out, out, transmitted_ib_unicast.packets,
		   atomic_long_read(&fn->counter[C_tx_packet]));
}

static u8 life(struct card_fn *fn, u16 opcode, void *in, size_t in_len,
	       void *out, size_t out_len, bool *mine)
{
	struct card_fn *which;

	*mine = true;
	switch (opcode) {
	case MLX5_CMD_OP_ENABLE_HCA:
		which = function_of(fn, MLX5_GET(enable_hca_in, in, function_id));
		return which ? enable(fn, which) : MLX5_CMD_STAT_BAD_PARAM_ERR;
	case MLX5_CMD_OP_DISABLE_HCA:
		which = function_of(fn, MLX5_GET(disable_hca_in, in, function_id));
		return which ? disable(fn, which) : MLX5_CMD_STAT_BAD_PARAM_ERR;
	case MLX5_CMD_OP_QUERY_ISSI:
		if (out_len >= MLX5_ST_SZ_BYTES(query_issi_out))
			MLX5_SET(query_issi_out, out, supported_issi_dw0, 2);
		return 0;
	case MLX5_CMD_OP_SET_ISSI:
	case MLX5_CMD_OP_SET_HCA_CAP:
	case MLX5_CMD_OP_SET_DRIVER_VERSION:
	case MLX5_CMD_OP_NOP:
		return 0;
	case MLX5_CMD_OP_QUERY_PAGES:
		return query_pages(fn, in, out);
	case MLX5_CMD_OP_MANAGE_PAGES:
		return manage_pages(fn, in, in_len, out, out_len);
	case MLX5_CMD_OP_QUERY_HCA_CAP:
		return query_cap(fn, in, out, out_len);
	case MLX5_CMD_OP_INIT_HCA:
		fn->up = true;
		count(fn, C_init);
		port_init(fn);
		return 0;
	case MLX5_CMD_OP_TEARDOWN_HCA:
		fn->up = false;
		count(fn, C_teardown);
		objects_count(fn, fn->left);
		objects_free(fn);
		return 0;
	case MLX5_CMD_OP_QUERY_ADAPTER:
		return adapter(fn, out, out_len);
	case MLX5_CMD_OP_QUERY_VPORT_COUNTER:
		which = fn;
		if (MLX5_GET(query_vport_counter_in, in, other_vport))
			which = function_of(fn, MLX5_GET(query_vport_counter_in,
							 in, vport_number));
		if (!which || out_len < MLX5_ST_SZ_BYTES(query_vport_counter_out))
			return MLX5_CMD_STAT_BAD_PARAM_ERR;
		vport_traffic(which, out);
		return 0;
	case MLX5_CMD_OP_ACCESS_REG:
		if (in_len != out_len || in_len < 16)
			return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
		memcpy(out + 16, in + 16, in_len - 16);
		return register_access(fn, MLX5_GET(access_register_in, in, register_id),
				       !MLX5_GET(access_register_in, in, op_mod),
				       out + 16, in_len - 16);
	case MLX5_CMD_OP_MAD_IFC:
		if (in_len < 16 + 256 || out_len < 16 + 256)
			return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
		registers_mad(fn, in + 16, out + 16);
		return 0;
	}
	*mine = false;
	return 0;
}

u8 execute(struct card_fn *fn, u16 opcode, void *in, size_t in_len, void *out,
	   size_t out_len)
{
	struct card_fn *which;
	bool mine;
	u8 status;

	if (opcode < MLX5_CMD_OP_MAX &&
	    knob_fails(fn, opcode_name(opcode), ++fn->this_probe[opcode], &status)) {
		which = opcode == MLX5_CMD_OP_MANAGE_PAGES ?
			function_of(fn, MLX5_GET(manage_pages_in, in, function_id)) : NULL;
		if (which && MLX5_GET(manage_pages_in, in, op_mod) == PAGES_GIVE)
			refused(fn, which);
		return status;
	}
	status = life(fn, opcode, in, in_len, out, out_len, &mine);
	if (!mine)
		status = vport_execute(fn, opcode, in, out, out_len, &mine);
	if (!mine)
		status = objects_execute(fn, opcode, in, in_len, out, out_len, &mine);
	if (!mine)
		status = enhanced_execute(fn, opcode, in, in_len, &mine);
	if (!mine)
		status = steering_execute(fn, opcode, in, in_len, out, &mine);
	if (!mine)
		status = MLX5_CMD_STAT_BAD_OP_ERR;
	return status;
}
