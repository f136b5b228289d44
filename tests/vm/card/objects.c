// SPDX-License-Identifier: GPL-2.0-only
/*
 * What drivers create and destroy.  Most of it is a number; event queues,
 * completion queues and queue pairs have memory of the driver's and do work.
 */
#include <linux/mlx5/qp.h>
#include <linux/slab.h>
#include "card.h"

#define ENHANCED_ULP_STATELESS 2	/* of a QP without queues */

/* All of these have the number in the third word of answer and request. */
static const struct kind {
	u16 create, destroy;
	enum object_type type;
	size_t size;
} kinds[] = {
	{ MLX5_CMD_OP_CREATE_EQ, MLX5_CMD_OP_DESTROY_EQ, OBJ_EQ, sizeof(struct card_eq) },
	{ MLX5_CMD_OP_CREATE_CQ, MLX5_CMD_OP_DESTROY_CQ, OBJ_CQ, sizeof(struct card_cq) },
	{ MLX5_CMD_OP_CREATE_QP, MLX5_CMD_OP_DESTROY_QP, OBJ_QP, sizeof(struct card_qp) },
	{ MLX5_CMD_OP_ALLOC_UAR, MLX5_CMD_OP_DEALLOC_UAR, OBJ_UAR, 0 },
	{ MLX5_CMD_OP_ALLOC_PD, MLX5_CMD_OP_DEALLOC_PD, OBJ_PD, 0 },
	{ MLX5_CMD_OP_CREATE_MKEY, MLX5_CMD_OP_DESTROY_MKEY, OBJ_MKEY, 0 },
	{ MLX5_CMD_OP_ALLOC_XRCD, MLX5_CMD_OP_DEALLOC_XRCD, OBJ_XRCD, 0 },
	{ MLX5_CMD_OP_CREATE_XRC_SRQ, MLX5_CMD_OP_DESTROY_XRC_SRQ, OBJ_SRQ, 0 },
	{ MLX5_CMD_OP_CREATE_SRQ, MLX5_CMD_OP_DESTROY_SRQ, OBJ_SRQ, 0 },
	{ MLX5_CMD_OP_CREATE_RMP, MLX5_CMD_OP_DESTROY_RMP, OBJ_RMP, 0 },
	{ MLX5_CMD_OP_ALLOC_Q_COUNTER, MLX5_CMD_OP_DEALLOC_Q_COUNTER, OBJ_Q_COUNTER, 0 },
	{ MLX5_CMD_OP_ALLOC_TRANSPORT_DOMAIN, MLX5_CMD_OP_DEALLOC_TRANSPORT_DOMAIN,
	  OBJ_TRANSPORT_DOMAIN, 0 },
	{ MLX5_CMD_OP_CREATE_RQ, MLX5_CMD_OP_DESTROY_RQ, OBJ_RQ, sizeof(struct card_qp) },
	{ MLX5_CMD_OP_CREATE_SQ, MLX5_CMD_OP_DESTROY_SQ, OBJ_SQ, sizeof(struct card_qp) },
	{ MLX5_CMD_OP_CREATE_TIS, MLX5_CMD_OP_DESTROY_TIS, OBJ_TIS, sizeof(struct card_tis) },
	{ MLX5_CMD_OP_CREATE_TIR, MLX5_CMD_OP_DESTROY_TIR, OBJ_TIR, sizeof(struct card_tir) },
	{ MLX5_CMD_OP_CREATE_RQT, MLX5_CMD_OP_DESTROY_RQT, OBJ_RQT, sizeof(struct card_rqt) },
	{ MLX5_CMD_OP_CREATE_FLOW_TABLE, MLX5_CMD_OP_DESTROY_FLOW_TABLE, OBJ_FLOW_TABLE,
	  sizeof(struct card_flow_table) },
};

static const char * const type_names[OBJ_TYPES] = {
	"eq", "cq", "qp", "uar", "pd", "mkey", "xrcd", "srq", "rmp",
	"q_counter", "transport_domain", "rq", "sq", "tis", "tir", "rqt",
	"flow_table",
};

struct object *object_find(struct card_fn *fn, enum object_type type, u32 n)
{
	return xa_load(&fn->lookup[type], n);
}

static u8 number_of(struct card_fn *fn, struct object *o)
{
	/* Unlike what is only a number, QPNs are seen by other functions. */
	static u32 next_qpn = 0x40;
	struct xarray *xa = &fn->lookup[o->type];
	/* The driver keeps both kinds of shared receive queue in one table. */
	u32 *next = &fn->next_number[o->type == OBJ_RMP ? OBJ_SRQ : o->type];
	int err;

	switch (o->type) {
	case OBJ_UAR:
		err = xa_alloc(xa, &o->number, o,
			       XA_LIMIT(BAR_FIRST_UAR, (fn->is_vf ? BAR_SIZE_VF :
					BAR_SIZE_PF) / PAGE_SIZE - 1), GFP_ATOMIC);
		break;
	case OBJ_EQ:
		err = xa_alloc(xa, &o->number, o, XA_LIMIT(1, 64), GFP_ATOMIC);
		break;
	case OBJ_Q_COUNTER:
		err = xa_alloc(xa, &o->number, o, XA_LIMIT(1, 255), GFP_ATOMIC);
		break;
	case OBJ_QP:
		err = xa_alloc_cyclic(xa, &o->number, o, XA_LIMIT(0x40, 0x1ffff),
				      &next_qpn, GFP_ATOMIC);
		break;
	default:
		err = xa_alloc_cyclic(xa, &o->number, o, XA_LIMIT(1, 0xffffff),
				      next, GFP_ATOMIC);
	}
	return err < 0 ? MLX5_CMD_STAT_LIM_ERR : 0;
}

u8 object_take_pages(struct object *o, unsigned int log_page_size, void *in,
		     size_t in_len, const __be64 *pas)
{
	size_t n, i, before = (void *)pas - in;

	if (in_len < before)
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	n = (in_len - before) / sizeof(*pas);
	o->page = kmalloc_array(n, sizeof(u64), GFP_ATOMIC);
	if (n && !o->page)
		return MLX5_CMD_STAT_LIM_ERR;
	for (i = 0; i < n; i++)
		o->page[i] = be64_to_cpu(pas[i]) & ~0xfffULL;
	o->pages = n;
	o->page_shift = log_page_size + MLX5_ADAPTER_PAGE_SHIFT;
	return 0;
}

static bool holds(struct object *o, size_t bytes)
{
	return (u64)o->pages << o->page_shift >= bytes;
}

static u8 make_eq(struct card_fn *fn, struct card_eq *eq, void *in, size_t in_len)
{
	void *eqc = MLX5_ADDR_OF(create_eq_in, in, eq_context_entry);
	u8 status;

	eq->log_size = MLX5_GET(eqc, eqc, log_eq_size);
	eq->vector = MLX5_GET(eqc, eqc, intr);
	eq->events = MLX5_GET64(create_eq_in, in, event_bitmask[0]);
	status = object_take_pages(&eq->obj, MLX5_GET(eqc, eqc, log_page_size), in, in_len,
			    MLX5_ADDR_OF(create_eq_in, in, pas));
	if (!status && (!holds(&eq->obj, sizeof(struct mlx5_eqe) << eq->log_size) ||
			eq->vector >= fn->vector_count))
		status = MLX5_CMD_STAT_BAD_PARAM_ERR;
	return status;
}

static u8 make_cq(struct card_fn *fn, struct card_cq *cq, void *in, size_t in_len)
{
	void *cqc = MLX5_ADDR_OF(create_cq_in, in, cq_context);
	u8 status;

	cq->log_size = MLX5_GET(cqc, cqc, log_cq_size);
	cq->entry_size = MLX5_GET(cqc, cqc, cqe_sz) ? 128 : 64;
	cq->eqn = MLX5_GET(cqc, cqc, c_eqn_or_apu_element);
	cq->record = dma_virt(MLX5_GET64(cqc, cqc, dbr_addr));
	INIT_LIST_HEAD(&cq->waiting);
	status = object_take_pages(&cq->obj, MLX5_GET(cqc, cqc, log_page_size), in, in_len,
			    MLX5_ADDR_OF(create_cq_in, in, pas));
	if (status)
		return status;
	if (!cq->record || !object_find(fn, OBJ_EQ, cq->eqn) ||
	    !holds(&cq->obj, (size_t)cq->entry_size << cq->log_size))
		return MLX5_CMD_STAT_BAD_PARAM_ERR;
	/* The word that the driver writes next: it asks for nothing yet. */
	cq->last_arm = cpu_to_be32(2 << 28);
	return 0;
}

static u8 make_qp(struct card_fn *fn, struct card_qp *qp, void *in, size_t in_len)
{
	void *qpc = MLX5_ADDR_OF(create_qp_in, in, qpc);
	u8 status;

	INIT_LIST_HEAD(&qp->groups);
	qp->service = MLX5_GET(qpc, qpc, st);
	qp->log_rq = MLX5_GET(qpc, qpc, log_rq_size);
	qp->rq_shift = MLX5_GET(qpc, qpc, log_rq_stride) + 4;
	qp->has_rq = MLX5_GET(qpc, qpc, rq_type) == MLX5_NON_ZERO_RQ;
	qp->log_sq = MLX5_GET(qpc, qpc, log_sq_size);
	qp->has_sq = !MLX5_GET(qpc, qpc, no_sq);
	qp->sq_offset = qp->has_rq ? 1UL << (qp->log_rq + qp->rq_shift) : 0;
	qp->send_cq = MLX5_GET(qpc, qpc, cqn_snd);
	qp->recv_cq = MLX5_GET(qpc, qpc, cqn_rcv);
	qp->sends_as_gsi = MLX5_GET(qpc, qpc, deth_sqpn) == 1;
	qp->no_own_multicast = MLX5_GET(qpc, qpc, block_lb_mc);
	qp->record = dma_virt(MLX5_GET64(qpc, qpc, dbr_addr));
	memcpy(qp->context, qpc, sizeof(qp->context));
	if (MLX5_GET(qpc, qpc, ulp_stateless_offload_mode) == ENHANCED_ULP_STATELESS) {
		qp->underlay = true;
		qp->has_rq = false;
		qp->has_sq = false;
		qp->record = NULL;
		return 0;
	}
	status = object_take_pages(&qp->obj, MLX5_GET(qpc, qpc, log_page_size), in, in_len,
			    MLX5_ADDR_OF(create_qp_in, in, pas));
	if (status)
		return status;
	if ((qp->has_sq && !holds(&qp->obj, qp->sq_offset + (64UL << qp->log_sq))) ||
	    !holds(&qp->obj, qp->sq_offset))
		return MLX5_CMD_STAT_BAD_PARAM_ERR;
	if (qp->service == MLX5_QP_ST_QP0)
		fn->qp0 = qp;
	if (qp->service == MLX5_QP_ST_QP1)
		fn->qp1 = qp;
	return 0;
}

static void dispose(struct object *o)
{
	struct card_fn *fn = o->fn;

	if (o->type == OBJ_CQ)
		list_del_init(&((struct card_cq *)o)->waiting);
	if (o->type == OBJ_FLOW_TABLE)
		steering_clear_table((struct card_flow_table *)o);
	if (o->type == OBJ_QP) {
		struct card_qp *qp = (struct card_qp *)o;

		wire_detach(qp);
		if (fn->qp0 == qp)
			fn->qp0 = NULL;
		if (fn->qp1 == qp)
			fn->qp1 = NULL;
	}
	xa_erase(&fn->lookup[o->type], o->number);
	list_del(&o->node);
	kfree(o->page);
	kfree(o);
}

void objects_free(struct card_fn *fn)
{
	struct object *o, *next;

	list_for_each_entry_safe(o, next, &fn->objects, node)
		dispose(o);
}

static u8 create(struct card_fn *fn, const struct kind *kind, void *in,
		 size_t in_len, void *out)
{
	struct object *o = kzalloc(max(kind->size, sizeof(*o)), GFP_ATOMIC);
	u8 status;

	if (!o)
		return MLX5_CMD_STAT_LIM_ERR;
	o->fn = fn;
	o->type = kind->type;
	switch (kind->type) {
	case OBJ_EQ:
		status = make_eq(fn, (struct card_eq *)o, in, in_len);
		break;
	case OBJ_CQ:
		status = make_cq(fn, (struct card_cq *)o, in, in_len);
		break;
	case OBJ_QP:
		status = make_qp(fn, (struct card_qp *)o, in, in_len);
		break;
	case OBJ_RQ:
		status = enhanced_make_rq(fn, (struct card_qp *)o, in, in_len);
		break;
	case OBJ_SQ:
		status = enhanced_make_sq(fn, (struct card_qp *)o, in, in_len);
		break;
	case OBJ_TIS:
		status = enhanced_make_tis(fn, (struct card_tis *)o, in, in_len);
		break;
	case OBJ_TIR:
		status = enhanced_make_tir(fn, (struct card_tir *)o, in, in_len);
		break;
	case OBJ_RQT:
		status = enhanced_make_rqt(fn, (struct card_rqt *)o, in, in_len);
		break;
	case OBJ_FLOW_TABLE:
		status = steering_make_table((struct card_flow_table *)o, in, in_len);
		break;
	default:
		status = 0;
	}
	if (!status)
		status = number_of(fn, o);
	if (status) {
		if (fn->qp0 == (struct card_qp *)o)
			fn->qp0 = NULL;
		if (fn->qp1 == (struct card_qp *)o)
			fn->qp1 = NULL;
		kfree(o->page);
		kfree(o);
		return status;
	}
	list_add_tail(&o->node, &fn->objects);
	((__be32 *)out)[2] = cpu_to_be32(o->number);
	return 0;
}

static void to_reset(struct card_qp *qp)
{
	qp->state = MLX5_QP_STATE_RST;
	qp->rq_done = 0;
	qp->sq_done = 0;
}

static u8 modify_qp(struct card_qp *qp, u16 opcode, void *in, size_t in_len)
{
	/* All transitions that bring a context have it at the same place. */
	void *qpc = MLX5_ADDR_OF(rst2init_qp_in, in, qpc);
	u32 optional = MLX5_GET(rst2init_qp_in, in, opt_param_mask);

	switch (opcode) {
	case MLX5_CMD_OP_2RST_QP:
		to_reset(qp);
		return 0;
	case MLX5_CMD_OP_2ERR_QP:
		qp->state = MLX5_QP_STATE_ERR;
		qp_flush(qp);
		return 0;
	}
	if (in_len < MLX5_ST_SZ_BYTES(rst2init_qp_in))
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	switch (opcode) {
	case MLX5_CMD_OP_RST2INIT_QP:
		if (qp->state != MLX5_QP_STATE_RST)
			return MLX5_CMD_STAT_BAD_QP_STATE_ERR;
		qp->state = MLX5_QP_STATE_INIT;
		optional |= MLX5_QP_OPTPAR_Q_KEY;
		memcpy(MLX5_ADDR_OF(qpc, qp->context, primary_address_path),
		       MLX5_ADDR_OF(qpc, qpc, primary_address_path),
		       MLX5_ST_SZ_BYTES(ads));
		break;
	case MLX5_CMD_OP_INIT2INIT_QP:
		break;
	case MLX5_CMD_OP_INIT2RTR_QP:
		if (qp->state != MLX5_QP_STATE_INIT)
			return MLX5_CMD_STAT_BAD_QP_STATE_ERR;
		qp->state = MLX5_QP_STATE_RTR;
		break;
	case MLX5_CMD_OP_RTR2RTS_QP:
		if (qp->state != MLX5_QP_STATE_RTR)
			return MLX5_CMD_STAT_BAD_QP_STATE_ERR;
		qp->state = MLX5_QP_STATE_RTS;
		break;
	case MLX5_CMD_OP_SQERR2RTS_QP:
	case MLX5_CMD_OP_SQD_RTS_QP:
	case MLX5_CMD_OP_RTS2RTS_QP:
		qp->state = MLX5_QP_STATE_RTS;
		break;
	}
	if (optional & MLX5_QP_OPTPAR_Q_KEY)
		qp->qkey = MLX5_GET(qpc, qpc, q_key);
	return 0;
}

static u8 query_qp(struct card_qp *qp, void *out, size_t out_len)
{
	void *qpc = MLX5_ADDR_OF(query_qp_out, out, qpc);

	if (out_len < MLX5_ST_SZ_BYTES(query_qp_out))
		return MLX5_CMD_STAT_BAD_OUTP_LEN_ERR;
	memcpy(qpc, qp->context, sizeof(qp->context));
	MLX5_SET(qpc, qpc, state, qp->state);
	MLX5_SET(qpc, qpc, q_key, qp->qkey);
	return 0;
}

u8 objects_execute(struct card_fn *fn, u16 opcode, void *in, size_t in_len,
		   void *out, size_t out_len, bool *mine)
{
	u32 number = be32_to_cpu(((__be32 *)in)[2]) & 0xffffff;
	struct card_qp *qp;
	struct object *o;
	int i;

	*mine = true;
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (opcode == kinds[i].create)
			return create(fn, &kinds[i], in, in_len, out);
		if (opcode != kinds[i].destroy)
			continue;
		if (kinds[i].type == OBJ_FLOW_TABLE && in_len >= MLX5_ST_SZ_BYTES(destroy_flow_table_in))
			number = MLX5_GET(destroy_flow_table_in, in, table_id);
		o = object_find(fn, kinds[i].type, number);
		if (!o)
			return MLX5_CMD_STAT_BAD_RES_ERR;
		if (o->type == OBJ_FLOW_TABLE && steering_table_in_use((struct card_flow_table *)o))
			return MLX5_CMD_STAT_BAD_RES_STATE_ERR;
		dispose(o);
		return 0;
	}
	switch (opcode) {
	case MLX5_CMD_OP_RST2INIT_QP:
	case MLX5_CMD_OP_INIT2INIT_QP:
	case MLX5_CMD_OP_INIT2RTR_QP:
	case MLX5_CMD_OP_RTR2RTS_QP:
	case MLX5_CMD_OP_RTS2RTS_QP:
	case MLX5_CMD_OP_SQERR2RTS_QP:
	case MLX5_CMD_OP_SQD_RTS_QP:
	case MLX5_CMD_OP_2ERR_QP:
	case MLX5_CMD_OP_2RST_QP:
	case MLX5_CMD_OP_QUERY_QP:
	case MLX5_CMD_OP_ATTACH_TO_MCG:
	case MLX5_CMD_OP_DETACH_FROM_MCG:
		qp = (struct card_qp *)object_find(fn, OBJ_QP, number);
		if (!qp)
			return MLX5_CMD_STAT_BAD_RES_ERR;
		if (opcode == MLX5_CMD_OP_QUERY_QP)
			return query_qp(qp, out, out_len);
		if (opcode != MLX5_CMD_OP_ATTACH_TO_MCG &&
		    opcode != MLX5_CMD_OP_DETACH_FROM_MCG)
			return modify_qp(qp, opcode, in, in_len);
		if (in_len < MLX5_ST_SZ_BYTES(attach_to_mcg_in))
			return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
		return wire_group(qp, MLX5_ADDR_OF(attach_to_mcg_in, in, multicast_gid),
				  opcode == MLX5_CMD_OP_ATTACH_TO_MCG);
	case MLX5_CMD_OP_QUERY_SPECIAL_CONTEXTS:
		if (out_len >= MLX5_ST_SZ_BYTES(query_special_contexts_out))
			MLX5_SET(query_special_contexts_out, out, resd_lkey, 0x100);
		return 0;
	/* Nothing of these is kept or counted: an answer of zeroes. */
	case MLX5_CMD_OP_MODIFY_CQ:
	case MLX5_CMD_OP_QUERY_CQ:
	case MLX5_CMD_OP_QUERY_EQ:
	case MLX5_CMD_OP_QUERY_MKEY:
	case MLX5_CMD_OP_QUERY_Q_COUNTER:
	case MLX5_CMD_OP_QUERY_XRC_SRQ:
	case MLX5_CMD_OP_QUERY_RMP:
	case MLX5_CMD_OP_MODIFY_RMP:
	case MLX5_CMD_OP_ARM_XRC_SRQ:
	case MLX5_CMD_OP_QUERY_CONG_STATUS:
	case MLX5_CMD_OP_QUERY_VNIC_ENV:
		return 0;
	}
	*mine = false;
	return 0;
}

void objects_count(struct card_fn *fn, unsigned int *n)
{
	struct object *o;

	memset(n, 0, OBJ_TYPES * sizeof(*n));
	list_for_each_entry(o, &fn->objects, node)
		n[o->type]++;
}

void objects_show(struct card_fn *fn, struct seq_file *m)
{
	unsigned int n[OBJ_TYPES];
	int i;

	objects_count(fn, n);
	for (i = 0; i < OBJ_TYPES; i++)
		seq_printf(m, "%s %u\n", type_names[i], n[i]);
	seq_printf(m, "page %u\n", fn->given.count);
	seq_printf(m, "page_of_pf %u\n", fn->lent.count);
}

void objects_show_left(struct card_fn *fn, struct seq_file *m)
{
	int i;

	for (i = 0; i < OBJ_TYPES; i++)
		seq_printf(m, "%s %u\n", type_names[i], fn->left[i]);
}
