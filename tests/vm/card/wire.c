// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs at work, and the one switch that joins all ports: unreliable
 * datagrams, unicast by LID and GID, multicast by group.
 *
 * The send counter in the driver's doorbell record is what is polled; the
 * doorbells in the UAR pages are not looked at.
 */
#include <linux/mlx5/cq.h>
#include <linux/mlx5/qp.h>
#include <linux/slab.h>
#include "card.h"

#define SEND_UNIT 64
#define DATA_UNIT 16
#define AT_ONCE 64			/* entries of one queue in one pass */
#define MCAST_LID 0xc000
#define GLOBAL_ROUTE (1U << 30)
#define OWN_QKEY (1U << 31)

static LIST_HEAD(members);
static struct packet outgoing;

void *wqe_at(struct card_qp *qp, u32 offset)
{
	size_t size = (size_t)SEND_UNIT << qp->log_sq;

	return object_at(&qp->obj, qp->sq_offset + (offset & (size - 1)));
}

static struct card_cq *cq_of(struct card_qp *qp, bool send)
{
	return (struct card_cq *)object_find(qp->obj.fn, OBJ_CQ,
					     send ? qp->send_cq : qp->recv_cq);
}

static void send_done(struct card_qp *qp, u16 index, u8 opcode)
{
	struct card_cq *cq = cq_of(qp, true);
	struct mlx5_cqe64 *e = cq ? cq_next_entry(cq) : NULL;

	if (!e)
		return;
	e->sop_drop_qpn = cpu_to_be32(opcode << 24 | qp->obj.number);
	e->wqe_counter = cpu_to_be16(index);
	cq_publish(cq, e, MLX5_CQE_REQ);
}

static void failed(struct card_qp *qp, bool send, u16 index, u8 syndrome)
{
	struct card_cq *cq = cq_of(qp, send);
	struct mlx5_err_cqe *e = cq ? cq_next_entry(cq) : NULL;

	if (!e)
		return;
	e->syndrome = syndrome;
	e->s_wqe_opcode_qpn = cpu_to_be32(qp->obj.number);
	e->wqe_counter = cpu_to_be16(index);
	cq_publish(cq, e, send ? MLX5_CQE_REQ_ERR : MLX5_CQE_RESP_ERR);
}

static u16 asked(struct card_qp *qp, bool send)
{
	return be32_to_cpu(READ_ONCE(qp->record[send]));
}

/* How many units the request at that index takes. */
static u16 request_units(struct card_qp *qp, u16 index)
{
	struct mlx5_wqe_ctrl_seg *ctrl = wqe_at(qp, index * SEND_UNIT);
	u32 ds = ctrl ? be32_to_cpu(ctrl->qpn_ds) & MLX5_WQE_CTRL_DS_MASK : 0;

	return max_t(u32, 1, DIV_ROUND_UP(ds * DATA_UNIT, SEND_UNIT));
}

/* All that is queued ends unsent, in order. */
void qp_flush(struct card_qp *qp)
{
	unsigned int n;

	if (!qp->record)
		return;
	for (n = 0; qp->has_sq && qp->sq_done != asked(qp, true) && n < 1U << qp->log_sq; n++) {
		u16 index = qp->sq_done;

		qp->sq_done += request_units(qp, index);
		failed(qp, true, index, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	}
	for (n = 0; qp->has_rq && qp->rq_done != asked(qp, false) && n < 1U << qp->log_rq; n++)
		failed(qp, false, qp->rq_done++, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
}

/* Gathers the data of a request; how much, or -1 if it is malformed. */
ssize_t wire_gather(struct card_qp *qp, u32 at, u32 end, u8 *to, size_t room)
{
	size_t done = 0;

	while (at < end) {
		struct mlx5_wqe_data_seg *seg = wqe_at(qp, at);
		u32 len;

		if (!seg)
			return -1;
		len = be32_to_cpu(seg->byte_count);
		if (len & MLX5_INLINE_SEG) {
			u32 i;

			len &= MLX5_WQE_INLINE_SEG_BYTE_COUNT_MASK;
			if (done + len > room)
				return -1;
			/* The queue may wrap within it. */
			for (i = 0; i < len; i++)
				to[done++] = *(u8 *)wqe_at(qp, at + 4 + i);
			at += ALIGN(len + 4, DATA_UNIT);
			continue;
		}
		if (done + len > room)
			return -1;
		if (len)
			memcpy(to + done, dma_virt(be64_to_cpu(seg->addr)), len);
		done += len;
		at += DATA_UNIT;
	}
	return done;
}

static void put_grh(struct card_fn *fn, struct mlx5_av *av, struct packet *p)
{
	u32 flow = be32_to_cpu(av->grh_gid_fl);
	__be32 word = cpu_to_be32(6U << 28 | (u32)av->tclass << 20 | (flow & 0xfffff));
	__be64 gid[2] = { cpu_to_be64(0xfe80000000000000ULL), cpu_to_be64(vport_guid(fn)) };

	memcpy(p->grh, &word, 4);
	p->grh[6] = 0x1b;
	p->grh[7] = av->hop_limit;
	memcpy(p->grh + 8, gid, 16);
	memcpy(p->grh + 24, av->rgid, 16);
}

/* From where and to where: by the address in a request, in the name of a QP. */
void wire_address(struct card_qp *qp, struct card_qp *queue, u32 at, struct packet *p)
{
	struct card_fn *fn = qp->obj.fn;
	struct mlx5_av av;
	u32 i, qkey;

	for (i = 0; i < sizeof(av); i += DATA_UNIT)
		memcpy((u8 *)&av + i, wqe_at(queue, at + i), DATA_UNIT);
	qkey = be32_to_cpu(av.key.qkey.qkey);
	p->from = fn;
	p->slid = fn->pf->lid;
	p->dlid = be16_to_cpu(av.rlid);
	p->sqpn = qp == fn->qp0 ? 0 :
		  qp == fn->qp1 || qp->sends_as_gsi ? 1 : qp->obj.number;
	p->dqpn = be32_to_cpu(av.dqp_dct) & 0xffffff;
	p->qkey = qkey & OWN_QKEY ? qp->qkey : qkey;
	p->pkey = pkey_at(fn, MLX5_GET(qpc, qp->context, primary_address_path.pkey_index));
	p->sl = av.stat_rate_sl & 0xf;
	p->has_grh = be32_to_cpu(av.grh_gid_fl) & GLOBAL_ROUTE;
	if (p->has_grh)
		put_grh(fn, &av, p);
}

/* A datagram whose address and data are there. */
void wire_send_as(struct packet *p)
{
	p->grh[4] = p->len >> 8;
	p->grh[5] = p->len;
	count(p->from, C_tx_packet);
	wire_send(p);
}

static void send_datagram(struct card_qp *qp, u32 at, u32 end)
{
	struct packet *p = &outgoing;
	ssize_t len;

	wire_address(qp, qp, at, p);
	len = wire_gather(qp, at + sizeof(struct mlx5_av), end, p->data, sizeof(p->data));
	if (len < 0)
		return;
	p->len = len;
	wire_send_as(p);
}

static void send_one(struct card_qp *qp)
{
	u16 index = qp->sq_done;
	u32 at = (u32)index * SEND_UNIT, end;
	struct mlx5_wqe_ctrl_seg *ctrl = wqe_at(qp, at);
	u8 opcode;

	if (!ctrl)
		return;
	opcode = be32_to_cpu(ctrl->opmod_idx_opcode) & MLX5_WQE_CTRL_OPCODE_MASK;
	end = at + (be32_to_cpu(ctrl->qpn_ds) & MLX5_WQE_CTRL_DS_MASK) * DATA_UNIT;
	qp->sq_done += request_units(qp, index);
	if (qp->obj.type == OBJ_SQ) {
		if ((opcode == MLX5_OPCODE_SEND || opcode == MLX5_OPCODE_LSO) &&
		    vport_state(qp->obj.fn) != LINK_DOWN &&
		    enhanced_send(qp, at, end, opcode, &outgoing))
			count(qp->obj.fn, C_tx_enhanced);
	} else if ((opcode == MLX5_OPCODE_SEND || opcode == MLX5_OPCODE_SEND_IMM) &&
	    vport_state(qp->obj.fn) != LINK_DOWN &&
	    qp->service != MLX5_QP_ST_RC && qp->service != MLX5_QP_ST_REG_UMR)
		send_datagram(qp, at + sizeof(*ctrl), end);
	/* What is not played (RDMA, changes of memory keys) succeeds at once. */
	if (ctrl->fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE)
		send_done(qp, index, opcode);
}

bool wire_pass(struct card_fn *fn)
{
	struct object *o;
	bool busy = false;

	list_for_each_entry(o, &fn->objects, node) {
		struct card_qp *qp = (struct card_qp *)o;
		unsigned int n;

		if ((o->type != OBJ_QP && o->type != OBJ_SQ && o->type != OBJ_RQ) || !qp->record)
			continue;
		if (qp->state == MLX5_QP_STATE_ERR) {
			qp_flush(qp);
			continue;
		}
		if (!qp->has_sq || qp->state != MLX5_QP_STATE_RTS)
			continue;
		for (n = 0; n < 4 * AT_ONCE && qp->sq_done != asked(qp, true); n++) {
			send_one(qp);
			busy = true;
		}
	}
	return busy;
}

/* Into the next buffer of a queue pair, or of the queue that it is led to. */
static void receive(struct card_qp *to_qp, struct packet *p)
{
	struct card_fn *fn = to_qp->obj.fn;
	struct card_qp *qp = to_qp;
	size_t stride, at, done = 0, total = 40 + p->len;
	struct ip_headers headers;
	u32 hash = 0;
	u8 hash_type = 0;
	struct card_cq *cq;
	struct mlx5_cqe64 *e;
	u16 index;

	if (qp->state < MLX5_QP_STATE_RTR || qp->state > MLX5_QP_STATE_SQD)
		return;
	if (p->qkey != qp->qkey && qp != fn->qp0) {
		count(fn, C_rx_refused);
		return;
	}
	if (qp->underlay) {
		enhanced_headers(p, &headers);
		qp = steering_queue(qp, &headers, &hash, &hash_type);
		if (!qp || qp->state != MLX5_QP_STATE_RTS) {
			count(fn, C_rx_refused);
			return;
		}
	}
	index = qp->rq_done;
	if (!qp->has_rq || index == asked(qp, false)) {
		count(fn, C_rx_no_buffer);
		return;
	}
	qp->rq_done++;
	cq = cq_of(qp, false);
	stride = 1UL << qp->rq_shift;
	at = (index & ((1UL << qp->log_rq) - 1)) * stride;
	for (stride += at; at < stride && done < total; at += DATA_UNIT) {
		struct mlx5_wqe_data_seg *seg = object_at(&qp->obj, at);
		size_t len, part;
		u8 *to;

		if (!seg || !seg->byte_count)
			break;
		len = be32_to_cpu(seg->byte_count) & ~MLX5_HW_START_PADDING;
		len = min(len, total - done);
		to = dma_virt(be64_to_cpu(seg->addr));
		/* The first 40 bytes are the GRH's, whether there is one or not. */
		if (done < 40) {
			part = min_t(size_t, len, 40 - done);
			if (p->has_grh)
				memcpy(to, p->grh + done, part);
			done += part;
			to += part;
			len -= part;
		}
		if (len)
			memcpy(to, p->data + done - 40, len);
		done += len;
	}
	if (done < total) {
		failed(qp, false, index, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
		return;
	}
	count(fn, C_rx_packet);
	e = cq ? cq_next_entry(cq) : NULL;
	if (!e)
		return;
	e->slid = cpu_to_be16(p->slid);
	e->flags_rqpn = cpu_to_be32((u32)p->has_grh << 28 | (u32)p->sl << 24 | p->sqpn);
	e->pkey = cpu_to_be32(p->pkey);
	e->byte_cnt = cpu_to_be32(total);
	e->sop_drop_qpn = cpu_to_be32(to_qp->obj.number);
	e->wqe_counter = cpu_to_be16(index);
	if (to_qp->underlay) {
		count(fn, C_rx_enhanced);
		e->check_sum = enhanced_sum(p);
		e->rss_hash_result = cpu_to_be32(hash);
		e->rss_hash_type = hash_type;
	}
	cq_publish(cq, e, MLX5_CQE_RESP_SEND);
}

static struct card_qp *destination_qp(struct card_fn *fn, u32 qpn)
{
	if (!fn || !fn->up || vport_state(fn) == LINK_DOWN)
		return NULL;
	if (qpn < 2)
		return qpn ? fn->qp1 : fn->qp0;
	return (struct card_qp *)object_find(fn, OBJ_QP, qpn);
}

/* To that function, whatever the address says. */
void wire_deliver(struct card_fn *to, struct packet *p)
{
	struct card_qp *qp = destination_qp(to, p->dqpn);

	if (qp)
		receive(qp, p);
}

/* All virtual ports of a port share its LID; the GID tells them apart. */
static struct card_fn *destination(struct packet *p)
{
	struct card_fn *fn;
	unsigned int n;
	__be64 guid;
	int i;

	memcpy(&guid, p->grh + 32, 8);
	for (n = 0; n < card_pfs; n++) {
		if (card_pf[n]->lid != p->dlid || card_pf[n]->eth)
			continue;
		if (!p->has_grh)
			return card_pf[n];
		for_each_fn_of(card_pf[n], fn, i)
			if (fn->up && vport_guid(fn) == be64_to_cpu(guid))
				return fn;
	}
	return NULL;
}

struct card_fn *wire_find(u64 guid)
{
	struct card_fn *fn;
	unsigned int n;
	int i;

	for (n = 0; n < card_pfs; n++)
		for_each_fn_of(card_pf[n], fn, i)
			if (guid && !fn->eth && fn->up && vport_guid(fn) == guid &&
			    vport_state(fn) == LINK_ACTIVE)
				return fn;
	return NULL;
}

void wire_send(struct packet *p)
{
	struct mcast_member *m;
	struct card_qp *qp;

	/* Nothing of an Ethernet port is switched. */
	if (p->from && p->from->eth)
		return;
	if (p->from && p->from->pf->k_real_sm && !p->dqpn) {
		sma_packet(p);
		return;
	}
	if (p->dlid == SM_LID &&
	    (!p->from || !p->from->pf->k_real_sm || p->from->pf->k_switch_sm)) {
		sa_request(p);
		return;
	}
	if (p->dlid < MCAST_LID) {
		qp = destination_qp(destination(p), p->dqpn);
		if (qp)
			receive(qp, p);
		return;
	}
	if (!p->has_grh)
		return;
	list_for_each_entry(m, &members, all) {
		qp = m->qp;
		if (memcmp(&m->gid, p->grh + 24, 16) ||
		    vport_state(qp->obj.fn) == LINK_DOWN ||
		    (qp->no_own_multicast && qp->obj.fn == p->from &&
		     qp->obj.number == p->sqpn))
			continue;
		receive(qp, p);
	}
}

u8 wire_group(struct card_qp *qp, const union ib_gid *gid, bool attach)
{
	struct mcast_member *m;

	list_for_each_entry(m, &qp->groups, node) {
		if (memcmp(&m->gid, gid, sizeof(*gid)))
			continue;
		if (!attach) {
			list_del(&m->node);
			list_del(&m->all);
			kfree(m);
		}
		return 0;
	}
	if (!attach)
		return MLX5_CMD_STAT_BAD_RES_ERR;
	m = kzalloc(sizeof(*m), GFP_ATOMIC);
	if (!m)
		return MLX5_CMD_STAT_LIM_ERR;
	m->qp = qp;
	m->gid = *gid;
	list_add_tail(&m->node, &qp->groups);
	list_add_tail(&m->all, &members);
	return 0;
}

void wire_detach(struct card_qp *qp)
{
	struct mcast_member *m, *next;

	if (!qp->groups.next)		/* was never finished */
		return;
	list_for_each_entry_safe(m, next, &qp->groups, node) {
		list_del(&m->node);
		list_del(&m->all);
		kfree(m);
	}
}
