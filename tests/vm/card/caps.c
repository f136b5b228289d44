// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the card says it can do.  Sizes are those of a small ConnectX-6; what
 * is not named is not offered, which keeps the drivers off paths that are not
 * played here.
 */
#include <linux/module.h>
#include "card.h"

static bool blue_flame;
module_param_named(bf, blue_flame, bool, 0400);
MODULE_PARM_DESC(bf, "offer BlueFlame");

#define CAP(field, value) MLX5_SET(cmd_hca_cap, cap, field, value)

void caps_general(struct card_fn *fn, void *cap, bool max)
{
	CAP(vhca_id, fn->card << 8 | fn->devfn);
	CAP(log_max_srq_sz, 15);
	CAP(log_max_qp_sz, 15);
	CAP(log_max_qp, max ? 18 : 17);
	CAP(log_max_srq, 20);
	CAP(max_sgl_for_optimized_performance, 30);
	CAP(log_max_cq_sz, 22);
	CAP(log_max_cq, 24);
	CAP(log_max_eq_sz, 22);
	CAP(log_max_mkey, 24);
	CAP(log_max_eq, 7);
	CAP(max_indirection, 4);
	CAP(fixed_buffer_size, 1);
	CAP(log_max_mrw_sz, 64);
	CAP(log_max_klm_list_size, 16);
	CAP(log_max_ra_req_dc, 6);
	CAP(log_max_ra_res_dc, 6);
	CAP(log_max_ra_req_qp, 4);
	CAP(log_max_ra_res_qp, 4);
	CAP(cache_line_128byte, 0);
	CAP(gid_table_size, 0);			/* 8 */
	CAP(pkey_table_size, 0);		/* 128, the fewest there are */
	CAP(vport_counters, 1);
	CAP(max_qp_cnt, 10);
	CAP(vport_group_manager, !fn->is_vf);
	CAP(ib_virt, !fn->eth);
	CAP(local_ca_ack_delay, 16);
	CAP(port_type, fn->eth ? MLX5_CAP_PORT_TYPE_ETH : MLX5_CAP_PORT_TYPE_IB);
	CAP(num_ports, 1);
	CAP(log_max_msg, 30);
	CAP(stat_rate_support, 0x1ff);
	CAP(cqe_version, 0);
	/*
	 * A driver that may give its memory keys their pages later keeps
	 * thousands of them in store, which emulation pays for dearly.
	 */
	CAP(umr_modify_entity_size_disabled, 1);
	CAP(umr_fence, 2);
	CAP(cmdif_checksum, 0);
	CAP(cq_oi, 1);
	CAP(cq_resize, 0);
	CAP(cq_moderation, 1);
	CAP(block_lb_mc, 1);
	CAP(cd, 0);
	CAP(apm, 1);
	CAP(imaicl, 1);
	CAP(qkv, 1);
	CAP(pkv, 1);
	CAP(xrc, 1);
	CAP(ud, 1);
	CAP(uc, 1);
	CAP(rc, 1);
	CAP(uar_sz, 5);
	CAP(log_pg_sz, 12);
	CAP(bf, blue_flame);
	CAP(driver_version, 1);
	CAP(log_bf_reg_size, 9);
	CAP(max_wqe_sz_sq, 1024);
	CAP(max_wqe_sz_rq, 512);
	CAP(max_wqe_sz_sq_dc, 512);
	CAP(max_qp_mcg, 240);
	CAP(log_max_mcg, 21);
	CAP(log_max_pd, 24);
	CAP(log_max_xrcd, 24);
	CAP(log_max_rmp, 20);
	CAP(basic_cyclic_rcv_wqe, 1);
	CAP(log_max_wq_sz, 20);
	CAP(max_num_eqs, 64);
	CAP(log_uar_page_sz, 0);
	CAP(log_max_transport_domain, 10);
	CAP(log_max_tis, 10);
	CAP(log_max_tir, 10);
	CAP(log_max_rqt, 10);
	CAP(log_max_rqt_size, ilog2(RQT_MAX));
	CAP(log_max_rq, 16);
	CAP(log_max_sq, 16);
	CAP(ipoib_enhanced_offloads, caps_enhanced(fn));
	CAP(device_frequency_mhz, 156);
	CAP(device_frequency_khz, 156250);
	CAP(num_of_uars_per_page, 1);
	CAP(native_port_num, PCI_FUNC(fn->pf->devfn) + 1);
}

/* Whether the driver is to make its own IPoIB netdev instead of the plain one. */
bool caps_enhanced(struct card_fn *fn)
{
	return !fn->eth && knob_number(fn, "enhanced", 0);
}

void caps_ipoib(void *cap)
{
	MLX5_SET(per_protocol_networking_offload_caps, cap, csum_cap, 1);
	MLX5_SET(per_protocol_networking_offload_caps, cap, max_lso_cap, 16);
}

void caps_flow_tables(void *cap)
{
#define RECEIVE(field, value) \
	MLX5_SET(flow_table_nic_cap, cap, flow_table_properties_nic_receive.field, value)
	RECEIVE(ft_support, 1);
	RECEIVE(flow_modify_en, 1);
	RECEIVE(modify_root, 1);
	RECEIVE(identified_miss_table_mode, 1);
	RECEIVE(flow_table_modify, 1);
	RECEIVE(log_max_ft_size, 16);
	RECEIVE(max_ft_level, 64);
	RECEIVE(log_max_ft_num, 16);
	RECEIVE(log_max_flow, 16);
	RECEIVE(ft_field_support.outer_ether_type, 1);
	RECEIVE(ft_field_support.outer_ip_version, 1);
	RECEIVE(ft_field_support.outer_ip_protocol, 1);
	RECEIVE(ft_field_support.outer_sip, 1);
	RECEIVE(ft_field_support.outer_dip, 1);
	RECEIVE(ft_field_support.outer_frag, 1);
	RECEIVE(ft_field_support.outer_udp_sport, 1);
	RECEIVE(ft_field_support.outer_udp_dport, 1);
	RECEIVE(ft_field_support.outer_tcp_sport, 1);
	RECEIVE(ft_field_support.outer_tcp_dport, 1);
#undef RECEIVE
}
