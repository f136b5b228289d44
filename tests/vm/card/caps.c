// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the card says it can do.  Sizes are those of a small ConnectX-6; what
 * is not named is not offered, which keeps the drivers off paths that are not
 * played here.
 */
#include "card.h"

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
	CAP(bf, 1);
	CAP(driver_version, 1);
	CAP(log_bf_reg_size, 9);
	CAP(max_wqe_sz_sq, 512);
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
	CAP(device_frequency_mhz, 156);
	CAP(device_frequency_khz, 156250);
	CAP(num_of_uars_per_page, 1);
	CAP(native_port_num, PCI_FUNC(fn->pf->devfn) + 1);
}
