// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers that are read by ACCESS_REG, and management datagrams that a
 * driver hands to its own firmware.
 */
#include <linux/mlx5/port.h>
#include <rdma/ib_mad.h>
#include "card.h"

#define VL_HW_0_3 4
#define REG_PTYS 0x5004
#define REG_PMTU 0x5003
#define REG_PVLC 0x500f
#define REG_PAOS 0x5006
#define REG_PPCNT 0x5008
#define REG_NODE_DESC 0x6001
#define REG_HOST_ENDIANNESS 0x7004
#define REG_DTOR 0xc00e

static const struct { const char *name; u16 bit; } speeds[] = {
	{ "sdr", 1 << 0 }, { "ddr", 1 << 1 }, { "qdr", 1 << 2 },
	{ "fdr", 1 << 4 }, { "edr", 1 << 5 }, { "hdr", 1 << 6 },
	{ "ndr", 1 << 7 },
};

static u16 speed_of(struct card_fn *pf)
{
	char value[VALUE_LEN] = "hdr";
	int i;

	knob_text(pf, "speed", value);
	for (i = 0; i < ARRAY_SIZE(speeds); i++)
		if (!strcmp(value, speeds[i].name))
			return speeds[i].bit;
	return 1 << 6;
}

static u16 width_of(struct card_fn *pf)
{
	switch (knob_number(pf, "width", 4)) {
	case 1: return MLX5_PTYS_WIDTH_1X;
	case 2: return MLX5_PTYS_WIDTH_2X;
	case 12: return MLX5_PTYS_WIDTH_12X;
	default: return MLX5_PTYS_WIDTH_4X;
	}
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 16, 0)
/* The timeouts that the driver has by itself; see the knob cmd_timeout_ms. */
static void default_timeouts(struct card_fn *fn, void *data)
{
#define TIMEOUT(field, ms) \
	MLX5_SET(default_timeout, MLX5_ADDR_OF(dtor_reg, data, field), to_value, ms)
	TIMEOUT(pcie_toggle_to, 2000);
	TIMEOUT(fw_reset_to, 60000);
	TIMEOUT(tear_down_to, 3000);
	TIMEOUT(pci_sync_update_to, 2000);
	TIMEOUT(health_poll_to, 2000);
	TIMEOUT(full_crdump_to, 60000);
	TIMEOUT(flush_on_err_to, 2000);
	TIMEOUT(fsm_reactivate_to, 5000);
	TIMEOUT(reclaim_pages_to, 5000);
	TIMEOUT(reclaim_vfs_pages_to, knob_number(fn, "reclaim_vfs_ms", 120000));
#undef TIMEOUT
}
#endif

u8 register_access(struct card_fn *fn, u16 id, bool write, void *data, size_t len)
{
	struct card_fn *pf = fn->pf;
	bool up = pf->port_state != LINK_DOWN;

	switch (id) {
	case REG_HOST_ENDIANNESS:
		return 0;
	case REG_NODE_DESC:
		if (!write)
			snprintf(data, min_t(size_t, len, 64), "card %u function %u",
				 pf->card, fn->devfn);
		return 0;
	case REG_PTYS:
		if (len < MLX5_ST_SZ_BYTES(ptys_reg))
			break;
		MLX5_SET(ptys_reg, data, ib_link_width_capability, 0xf);
		MLX5_SET(ptys_reg, data, ib_proto_capability, 0x7f);
		MLX5_SET(ptys_reg, data, ib_link_width_admin, 0xf);
		MLX5_SET(ptys_reg, data, ib_proto_admin, 0x7f);
		/* Without a link a port says the least that there is. */
		MLX5_SET(ptys_reg, data, ib_link_width_oper,
			 up ? width_of(pf) : MLX5_PTYS_WIDTH_4X);
		MLX5_SET(ptys_reg, data, ib_proto_oper, up ? speed_of(pf) : 1);
		return 0;
	case REG_PMTU:
		if (len < MLX5_ST_SZ_BYTES(pmtu_reg))
			break;
		MLX5_SET(pmtu_reg, data, max_mtu, 4096);
		MLX5_SET(pmtu_reg, data, admin_mtu, 4096);
		MLX5_SET(pmtu_reg, data, oper_mtu, 4096);
		return 0;
	case REG_PVLC:
		if (len < MLX5_ST_SZ_BYTES(pvlc_reg))
			break;
		MLX5_SET(pvlc_reg, data, vl_hw_cap, VL_HW_0_3);
		MLX5_SET(pvlc_reg, data, vl_operational, VL_HW_0_3);
		return 0;
	case REG_PPCNT:
	case REG_PAOS:
		return 0;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 16, 0)
	case REG_DTOR:
		if (len < MLX5_ST_SZ_BYTES(dtor_reg))
			break;
		default_timeouts(fn, data);
		return 0;
#endif
	}
	return MLX5_CMD_STAT_BAD_PARAM_ERR;
}

#define SMP_DATA 64

/* A datagram to the function's own agents: those of the local port. */
void registers_mad(struct card_fn *fn, u8 *mad, u8 *answer)
{
	struct ib_mad_hdr *hdr = (void *)answer;
	bool set;

	memcpy(answer, mad, 256);
	set = hdr->method == IB_MGMT_METHOD_SET;
	hdr->status = cpu_to_be16(0x000c);
	if ((hdr->mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED ||
	     hdr->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE) &&
	    (hdr->method == IB_MGMT_METHOD_GET || (set && fn->pf->k_real_sm)))
		hdr->status = sma_host(fn, set, be16_to_cpu(hdr->attr_id),
				       be32_to_cpu(hdr->attr_mod), answer + SMP_DATA);
	if (hdr->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		hdr->status |= cpu_to_be16(0x8000);
	hdr->method = IB_MGMT_METHOD_GET_RESP;
}
