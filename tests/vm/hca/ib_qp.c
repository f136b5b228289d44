// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagram queue pairs: QP0, QP1 and UD.  Connected types are refused, as
 * nothing here would carry them.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "ib.h"

static atomic_t next_qpn = ATOMIC_INIT(0x100);

/* wr_id and wr_cqe are one union, so copying wr_id serves both. */
static void flush_one(struct sim_qp *qp, struct ib_cq *cq, u64 wr_id)
{
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .qp = &qp->ibqp };

	wc.wr_id = wr_id;
	sim_cq_push(cq, &wc);
}

static int create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		     struct ib_udata *udata)
{
	struct sim_qp *qp = to_sqp(ibqp);
	u32 port = init->port_num ?: 1;

	if (init->srq || udata)
		return -EOPNOTSUPP;
	switch (init->qp_type) {
	case IB_QPT_SMI:
		ibqp->qp_num = 0;
		break;
	case IB_QPT_GSI:
		ibqp->qp_num = 1;
		break;
	case IB_QPT_UD:
		ibqp->qp_num = atomic_inc_return(&next_qpn) & 0xffffff;
		break;
	default:
		return -EOPNOTSUPP;
	}
	spin_lock_init(&qp->lock);
	INIT_LIST_HEAD(&qp->node);
	qp->port = &to_sim(ibqp->device)->port[port - 1];
	qp->state = IB_QPS_RESET;
	qp->signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->max_sge = init->cap.max_recv_sge;
	qp->cap = init->cap;
	qp->rq_size = init->cap.max_recv_wr;
	if (qp->max_sge > ARRAY_SIZE(qp->rq->sge))
		return -EINVAL;
	if (qp->rq_size) {
		qp->rq = kvcalloc(qp->rq_size, sizeof(*qp->rq), GFP_KERNEL);
		if (!qp->rq)
			return -ENOMEM;
	}
	sim_switch_add_qp(qp);
	return 0;
}

static int destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct sim_qp *qp = to_sqp(ibqp);

	sim_switch_del_qp(qp);
	kvfree(qp->rq);
#if SIM_OLDER
	kfree(qp);
#endif
	return 0;
}

#if SIM_OLDER
/* The driver's own memory: the core has none for it. */
static struct ib_qp *alloc_qp(struct ib_pd *pd, struct ib_qp_init_attr *init,
			      struct ib_udata *udata)
{
	struct sim_qp *qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	int err;

	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp->ibqp.device = pd->device;
	err = create_qp(&qp->ibqp, init, udata);
	if (!err)
		return &qp->ibqp;
	kfree(qp);
	return ERR_PTR(err);
}
#endif

static int modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata)
{
	struct sim_qp *qp = to_sqp(ibqp);
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	if (mask & IB_QP_PORT)
		qp->port = &to_sim(ibqp->device)->port[attr->port_num - 1];
	if (mask & IB_QP_QKEY)
		qp->qkey = attr->qkey;
	if (mask & IB_QP_PKEY_INDEX)
		qp->pkey_index = attr->pkey_index;
	if (mask & IB_QP_STATE) {
		qp->state = attr->qp_state;
		if (qp->state == IB_QPS_RESET)
			qp->rq_count = 0;
		while (qp->state == IB_QPS_ERR && qp->rq_count) {
			struct sim_rwqe *w = &qp->rq[qp->rq_head];

			qp->rq_head = (qp->rq_head + 1) % qp->rq_size;
			qp->rq_count--;
			flush_one(qp, ibqp->recv_cq, w->wr_id);
		}
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	return 0;
}

static int query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init)
{
	struct sim_qp *qp = to_sqp(ibqp);

	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->qkey = qp->qkey;
	attr->pkey_index = qp->pkey_index;
	attr->port_num = qp->port->num;
	attr->cap = qp->cap;
	init->cap = qp->cap;
	init->qp_type = ibqp->qp_type;
	return 0;
}

static int post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad)
{
	struct sim_qp *qp = to_sqp(ibqp);
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&qp->lock, flags);
	for (; wr; wr = wr->next) {
		struct sim_rwqe *w;

		if (qp->state == IB_QPS_ERR) {
			flush_one(qp, ibqp->recv_cq, wr->wr_id);
			continue;
		}
		if (qp->rq_count == qp->rq_size || wr->num_sge > qp->max_sge) {
			err = qp->rq_count == qp->rq_size ? -ENOMEM : -EINVAL;
			*bad = wr;
			break;
		}
		w = &qp->rq[(qp->rq_head + qp->rq_count++) % qp->rq_size];
		w->wr_id = wr->wr_id;
		w->num_sge = wr->num_sge;
		memcpy(w->sge, wr->sg_list, wr->num_sge * sizeof(*w->sge));
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	return err;
}

/* Copies into a receive buffer, which leaves room for a GRH in front. */
static void scatter(struct sim_rwqe *w, unsigned int *sge, unsigned int *off,
		    const void *from, unsigned int len)
{
	while (len && *sge < w->num_sge) {
		struct ib_sge *s = &w->sge[*sge];
		unsigned int n = min(len, s->length - *off);

		if (from) {
			memcpy((void *)(uintptr_t)s->addr + *off, from, n);
			from += n;
		}
		len -= n;
		*off += n;
		if (*off == s->length) {
			(*sge)++;
			*off = 0;
		}
	}
}

/* Called by the switch; false if no buffer was posted. */
bool sim_qp_receive(struct sim_qp *qp, const struct sim_packet *p)
{
	struct ib_wc wc = { .status = IB_WC_SUCCESS, .opcode = IB_WC_RECV };
	unsigned int room = 0, sge = 0, off = 0;
	struct sim_rwqe w;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&qp->lock, flags);
	if ((qp->state != IB_QPS_RTR && qp->state != IB_QPS_RTS) ||
	    !qp->rq_count) {
		spin_unlock_irqrestore(&qp->lock, flags);
		return false;
	}
	w = qp->rq[qp->rq_head];
	qp->rq_head = (qp->rq_head + 1) % qp->rq_size;
	qp->rq_count--;
	spin_unlock_irqrestore(&qp->lock, flags);

	for (i = 0; i < w.num_sge; i++)
		room += w.sge[i].length;
	wc.wr_id = w.wr_id;
	wc.qp = &qp->ibqp;
	wc.byte_len = p->len + SIM_GRH_LEN;
	if (wc.byte_len > room) {
		wc.status = IB_WC_LOC_LEN_ERR;
	} else {
		scatter(&w, &sge, &off, p->has_grh ? &p->grh : NULL,
			SIM_GRH_LEN);
		scatter(&w, &sge, &off, p->data, p->len);
	}
	wc.src_qp = p->sqpn;
	wc.slid = p->slid;
	wc.sl = p->sl;
	wc.port_num = qp->port->num;
	if (p->has_grh)
		wc.wc_flags |= IB_WC_GRH;
	if (p->has_imm) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = p->imm;
	}
	sim_cq_push(qp->ibqp.recv_cq, &wc);
	return true;
}

static void fill_grh(struct sim_packet *p, struct sim_qp *qp,
		     const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *route = rdma_ah_read_grh(ah);
	struct sim_func *f = qp->port->ib->func;

	p->has_grh = true;
	p->grh.version_tclass_flow =
		cpu_to_be32(6 << 28 | route->traffic_class << 20 |
			    route->flow_label);
	p->grh.paylen = cpu_to_be16(p->len);
	p->grh.next_hdr = 0x1b;
	p->grh.hop_limit = route->hop_limit;
	p->grh.dgid = route->dgid;
	p->grh.sgid.global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	p->grh.sgid.global.interface_id =
		cpu_to_be64(f->port_guid[qp->port->num - 1]);
}

static struct sim_packet *pack(struct sim_qp *qp, const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);
	const struct rdma_ah_attr *ah = &to_sah(ud->ah)->attr;
	struct sim_packet *p = kmalloc(sizeof(*p), GFP_ATOMIC);
	u16 pkey_index = qp->ibqp.qp_num == 1 ? ud->pkey_index :
						qp->pkey_index;
	int i;

	if (!p)
		return NULL;
	memset(p, 0, offsetof(struct sim_packet, data));
	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *s = &wr->sg_list[i];

		if (p->len + s->length > sizeof(p->data)) {
			kfree(p);
			return ERR_PTR(-EMSGSIZE);
		}
		memcpy(p->data + p->len, (void *)(uintptr_t)s->addr, s->length);
		p->len += s->length;
	}
	p->slid = qp->port->lid;
	p->dlid = rdma_ah_get_dlid(ah);
	p->sqpn = qp->ibqp.qp_num;
	p->dqpn = ud->remote_qpn;
	/* The top bit of the work request's Q_Key means "the QP's own". */
	p->qkey = ud->remote_qkey & 0x80000000 && p->sqpn > 1 ?
		  qp->qkey : ud->remote_qkey;
	p->pkey = sim_port_pkey(pkey_index);
	p->sl = rdma_ah_get_sl(ah);
	if (wr->opcode == IB_WR_SEND_WITH_IMM) {
		p->has_imm = true;
		p->imm = wr->ex.imm_data;
	}
	if (rdma_ah_get_ah_flags(ah) & IB_AH_GRH)
		fill_grh(p, qp, ah);
	return p;
}

/*
 * The data is copied before we return, so the send completes at once and
 * no packet under way ever points to a QP that may be destroyed.
 */
static int post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad)
{
	struct sim_qp *qp = to_sqp(ibqp);

	for (; wr; wr = wr->next) {
		struct ib_wc wc = { .opcode = IB_WC_SEND, .qp = ibqp };
		struct sim_packet *p = NULL;

		if (wr->opcode != IB_WR_SEND &&
		    wr->opcode != IB_WR_SEND_WITH_IMM) {
			*bad = wr;
			return -EINVAL;
		}
		wc.wr_id = wr->wr_id;
		if (qp->state != IB_QPS_RTS) {
			wc.status = IB_WC_WR_FLUSH_ERR;
		} else {
			p = pack(qp, wr);
			if (!p) {
				*bad = wr;
				return -ENOMEM;
			}
			if (IS_ERR(p)) {
				wc.status = IB_WC_LOC_LEN_ERR;
				p = NULL;
			}
		}
		if (wc.status || qp->signal_all ||
		    wr->send_flags & IB_SEND_SIGNALED)
			sim_cq_push(ibqp->send_cq, &wc);
		if (!p)
			continue;
		sim_count(qp->port->ib->func, SIM_C_tx_packet);
		if (p->dlid == SIM_SM_LID)
			sim_count(qp->port->ib->func, SIM_C_sa_request);
		/* A port that is not Active carries nothing. */
		if (sim_port_up(qp->port))
			sim_switch_send(p);
		else
			kfree(p);
	}
	return 0;
}

const struct ib_device_ops sim_qp_ops = {
#if SIM_OLDER
	.create_qp = alloc_qp,
#else
	.create_qp = create_qp,
	INIT_RDMA_OBJ_SIZE(ib_qp, sim_qp, ibqp),
#endif
	.destroy_qp = destroy_qp,
	.modify_qp = modify_qp,
	.query_qp = query_qp,
	.post_send = post_send,
	.post_recv = post_recv,
	.attach_mcast = sim_switch_attach,
	.detach_mcast = sim_switch_detach,
};
