// SPDX-License-Identifier: GPL-2.0-only
/*
 * Enhanced IPoIB: the driver's own netdev, whose QP has no queues.  It sends by
 * send queues of its own (SQ), which a TIS joins to the QP, and receives by
 * receive queues (RQ) to which flow tables lead; see steering.c.  The card does
 * checksums and cuts long TCP segments to size.
 *
 * A datagram is 4 octets of IPoIB header (the Ethernet type comes first) and
 * the IP packet.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/mlx5/qp.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/ip6_checksum.h>
#include "card.h"

#define IPOIB_HEADER 4
#define UNIT 16
#define ETH_AT 80			/* after control segment, address and pad */
#define INLINE_START offsetof(struct mlx5_wqe_eth_seg, inline_hdr.start)
/* A TCP segment before it is cut. */
#define SEGMENT_MAX (65536 + 256)

static u8 gathered[SEGMENT_MAX];

static u8 make_queue(struct card_qp *q, void *wq, void *in, size_t in_len, bool send)
{
	unsigned int log_size = MLX5_GET(wq, wq, log_wq_sz);
	unsigned int stride = MLX5_GET(wq, wq, log_wq_stride);
	u8 status;

	INIT_LIST_HEAD(&q->groups);
	q->record = dma_virt(MLX5_GET64(wq, wq, dbr_addr));
	q->has_sq = send;
	q->has_rq = !send;
	q->log_sq = log_size;
	q->log_rq = log_size;
	q->rq_shift = stride;
	status = object_take_pages(&q->obj, MLX5_GET(wq, wq, log_wq_pg_sz), in,
				   in_len, MLX5_ADDR_OF(wq, wq, pas));
	if (status)
		return status;
	if (!q->record || (send && stride != 6) || log_size > 15 ||
	    (u64)q->obj.pages << q->obj.page_shift < 1ULL << (log_size + stride))
		return MLX5_CMD_STAT_BAD_PARAM_ERR;
	return 0;
}

u8 enhanced_make_rq(struct card_fn *fn, struct card_qp *q, void *in, size_t in_len)
{
	void *rqc = MLX5_ADDR_OF(create_rq_in, in, ctx);

	if (in_len < MLX5_ST_SZ_BYTES(create_rq_in))
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	q->recv_cq = MLX5_GET(rqc, rqc, cqn);
	if (!object_find(fn, OBJ_CQ, q->recv_cq))
		return MLX5_CMD_STAT_BAD_RES_ERR;
	return make_queue(q, MLX5_ADDR_OF(rqc, rqc, wq), in, in_len, false);
}

u8 enhanced_make_sq(struct card_fn *fn, struct card_qp *q, void *in, size_t in_len)
{
	void *sqc = MLX5_ADDR_OF(create_sq_in, in, ctx);

	if (in_len < MLX5_ST_SZ_BYTES(create_sq_in))
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	q->send_cq = MLX5_GET(sqc, sqc, cqn);
	/* One that only does internal work has no TIS. */
	q->tis = MLX5_GET(sqc, sqc, tis_lst_sz) ? MLX5_GET(sqc, sqc, tis_num_0) : 0;
	if (!object_find(fn, OBJ_CQ, q->send_cq) ||
	    (q->tis && !object_find(fn, OBJ_TIS, q->tis)))
		return MLX5_CMD_STAT_BAD_RES_ERR;
	return make_queue(q, MLX5_ADDR_OF(sqc, sqc, wq), in, in_len, true);
}

u8 enhanced_make_tis(struct card_fn *fn, struct card_tis *tis, void *in, size_t in_len)
{
	void *tisc = MLX5_ADDR_OF(create_tis_in, in, ctx);
	struct card_qp *qp;

	if (in_len < MLX5_ST_SZ_BYTES(create_tis_in))
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	tis->qpn = MLX5_GET(tisc, tisc, underlay_qpn);
	qp = (struct card_qp *)object_find(fn, OBJ_QP, tis->qpn);
	return qp && qp->underlay ? 0 : MLX5_CMD_STAT_BAD_RES_ERR;
}

u8 enhanced_make_tir(struct card_fn *fn, struct card_tir *tir, void *in, size_t in_len)
{
	void *tirc = MLX5_ADDR_OF(create_tir_in, in, ctx);
	bool direct = MLX5_GET(tirc, tirc, disp_type) == MLX5_TIRC_DISP_TYPE_DIRECT;

	if (in_len < MLX5_ST_SZ_BYTES(create_tir_in))
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	memcpy(tir->context, tirc, sizeof(tir->context));
	if (direct ? !object_find(fn, OBJ_RQ, MLX5_GET(tirc, tirc, inline_rqn)) :
		     !object_find(fn, OBJ_RQT, MLX5_GET(tirc, tirc, indirect_table)))
		return MLX5_CMD_STAT_BAD_RES_ERR;
	return 0;
}

static u8 fill_rqt(struct card_fn *fn, struct card_rqt *rqt, void *rqtc, size_t room)
{
	u32 n = MLX5_GET(rqtc, rqtc, rqt_actual_size), i;

	if (n > ARRAY_SIZE(rqt->rqn) || n * sizeof(u32) > room)
		return MLX5_CMD_STAT_BAD_PARAM_ERR;
	for (i = 0; i < n; i++)
		if (!object_find(fn, OBJ_RQ, MLX5_GET(rqtc, rqtc, rq_num[i])))
			return MLX5_CMD_STAT_BAD_RES_ERR;
	for (i = 0; i < n; i++)
		rqt->rqn[i] = MLX5_GET(rqtc, rqtc, rq_num[i]);
	rqt->size = n;
	return 0;
}

u8 enhanced_make_rqt(struct card_fn *fn, struct card_rqt *rqt, void *in, size_t in_len)
{
	if (in_len < MLX5_ST_SZ_BYTES(create_rqt_in))
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	return fill_rqt(fn, rqt, MLX5_ADDR_OF(create_rqt_in, in, rqt_context),
			in_len - MLX5_ST_SZ_BYTES(create_rqt_in));
}

/* States of these queues are told by those of a QP. */
static u8 to_state(struct card_qp *q, u8 state)
{
	switch (state) {
	case MLX5_SQC_STATE_RST:
		q->state = MLX5_QP_STATE_RST;
		q->rq_done = 0;
		q->sq_done = 0;
		return 0;
	case MLX5_SQC_STATE_RDY:
		q->state = MLX5_QP_STATE_RTS;
		return 0;
	case MLX5_SQC_STATE_ERR:
		q->state = MLX5_QP_STATE_ERR;
		qp_flush(q);
		return 0;
	}
	return MLX5_CMD_STAT_BAD_PARAM_ERR;
}

u8 enhanced_execute(struct card_fn *fn, u16 opcode, void *in, size_t in_len, bool *mine)
{
	u32 number = be32_to_cpu(((__be32 *)in)[2]) & 0xffffff;
	struct object *o;
	void *context;

	*mine = true;
	switch (opcode) {
	case MLX5_CMD_OP_MODIFY_RQ:
		o = object_find(fn, OBJ_RQ, number);
		context = MLX5_ADDR_OF(modify_rq_in, in, ctx);
		if (!o || in_len < MLX5_ST_SZ_BYTES(modify_rq_in))
			return MLX5_CMD_STAT_BAD_RES_ERR;
		return to_state((struct card_qp *)o, MLX5_GET(rqc, context, state));
	case MLX5_CMD_OP_MODIFY_SQ:
		o = object_find(fn, OBJ_SQ, number);
		context = MLX5_ADDR_OF(modify_sq_in, in, ctx);
		if (!o || in_len < MLX5_ST_SZ_BYTES(modify_sq_in))
			return MLX5_CMD_STAT_BAD_RES_ERR;
		return to_state((struct card_qp *)o, MLX5_GET(sqc, context, state));
	case MLX5_CMD_OP_MODIFY_RQT:
		o = object_find(fn, OBJ_RQT, number);
		if (!o || in_len < MLX5_ST_SZ_BYTES(modify_rqt_in))
			return MLX5_CMD_STAT_BAD_RES_ERR;
		return fill_rqt(fn, (struct card_rqt *)o, MLX5_ADDR_OF(modify_rqt_in, in, ctx),
				in_len - MLX5_ST_SZ_BYTES(modify_rqt_in));
	/* Changes of hash and loopback only: neither is played. */
	case MLX5_CMD_OP_MODIFY_TIR:
		return object_find(fn, OBJ_TIR, number) ? 0 : MLX5_CMD_STAT_BAD_RES_ERR;
	}
	*mine = false;
	return 0;
}

/* False if it is no IP packet, or one that is cut off. */
static bool ip_part(u8 *ip, size_t len, struct ip_headers *h)
{
	struct ipv6hdr *v6 = (void *)ip;
	struct iphdr *v4 = (void *)ip;
	size_t header, total;

	if (h->type == ETH_P_IP && len >= sizeof(*v4)) {
		header = v4->ihl * 4;
		total = ntohs(v4->tot_len);
		h->protocol = v4->protocol;
		h->fragment = v4->frag_off & htons(IP_MF | IP_OFFSET);
		h->from = (u8 *)&v4->saddr;
		h->to = (u8 *)&v4->daddr;
		h->address_len = 4;
		h->version = 4;
	} else if (h->type == ETH_P_IPV6 && len >= sizeof(*v6)) {
		header = sizeof(*v6);
		total = header + ntohs(v6->payload_len);
		h->protocol = v6->nexthdr;
		h->from = (u8 *)&v6->saddr;
		h->to = (u8 *)&v6->daddr;
		h->address_len = 16;
		h->version = 6;
	} else {
		return false;
	}
	if (header < sizeof(*v4) || header > len)
		return false;
	h->ip = ip;
	h->payload = ip + header;
	/* A TCP segment that is still to be cut says 0. */
	h->payload_len = min(total > header ? total : len, len) - header;
	return true;
}

void enhanced_headers(struct packet *p, struct ip_headers *h)
{
	__be16 *ports;

	memset(h, 0, sizeof(*h));
	if (p->len < IPOIB_HEADER)
		return;
	h->type = p->data[0] << 8 | p->data[1];
	if (!ip_part(p->data + IPOIB_HEADER, p->len - IPOIB_HEADER, h))
		return;
	if (h->fragment || h->payload_len < 4 ||
	    (h->protocol != IPPROTO_TCP && h->protocol != IPPROTO_UDP))
		return;
	ports = (__be16 *)h->payload;
	h->ports = true;
	h->sport = ntohs(ports[0]);
	h->dport = ntohs(ports[1]);
}

/* The sum over all after the IPoIB header, as the driver takes it. */
__sum16 enhanced_sum(struct packet *p)
{
	if (p->len < IPOIB_HEADER)
		return 0;
	return ~csum_fold(csum_partial(p->data + IPOIB_HEADER,
				       p->len - IPOIB_HEADER, 0));
}

static void do_sums(struct packet *p, u8 flags)
{
	struct ip_headers h;
	struct iphdr *v4;
	__sum16 *sum;
	__wsum rest;

	enhanced_headers(p, &h);
	if (!h.ip)
		return;
	v4 = (void *)h.ip;
	if (h.version == 4 && flags & MLX5_ETH_WQE_L3_CSUM) {
		v4->check = 0;
		v4->check = ip_fast_csum(v4, v4->ihl);
	}
	if (!(flags & MLX5_ETH_WQE_L4_CSUM) || h.fragment)
		return;
	if (h.protocol == IPPROTO_TCP && h.payload_len >= sizeof(struct tcphdr))
		sum = &((struct tcphdr *)h.payload)->check;
	else if (h.protocol == IPPROTO_UDP && h.payload_len >= sizeof(struct udphdr))
		sum = &((struct udphdr *)h.payload)->check;
	else
		return;
	*sum = 0;
	rest = csum_partial(h.payload, h.payload_len, 0);
	*sum = h.version == 4 ?
	       csum_tcpudp_magic(v4->saddr, v4->daddr, h.payload_len, h.protocol, rest) :
	       csum_ipv6_magic((struct in6_addr *)h.from, (struct in6_addr *)h.to,
			       h.payload_len, h.protocol, rest);
	if (!*sum && h.protocol == IPPROTO_UDP)
		*sum = CSUM_MANGLED_0;
}

/* The headers of one piece of a TCP segment, at that distance from its start. */
static void do_piece(struct packet *p, size_t at, unsigned int n, bool last)
{
	struct ip_headers h;
	struct tcphdr *tcp;
	struct iphdr *v4;

	h.type = p->data[0] << 8 | p->data[1];
	if (!ip_part(p->data + IPOIB_HEADER, p->len - IPOIB_HEADER, &h))
		return;
	if (h.version == 4) {
		v4 = (void *)h.ip;
		v4->tot_len = htons(p->len - IPOIB_HEADER);
		v4->id = htons(ntohs(v4->id) + n);
	} else {
		((struct ipv6hdr *)h.ip)->payload_len =
			htons(p->len - IPOIB_HEADER - sizeof(struct ipv6hdr));
	}
	tcp = (void *)h.payload;
	tcp->seq = htonl(ntohl(tcp->seq) + at);
	if (!last) {
		tcp->fin = 0;
		tcp->psh = 0;
	}
	if (n)
		tcp->cwr = 0;
}

static bool send_cut(struct packet *p, size_t len, size_t header, size_t piece)
{
	size_t at;
	unsigned int n = 0;

	if (!piece || header < IPOIB_HEADER + 40 || header > len ||
	    header + piece > sizeof(p->data))
		return false;
	for (at = 0; header + at < len; at += piece, n++) {
		size_t part = min(piece, len - header - at);

		memcpy(p->data, gathered, header);
		memcpy(p->data + header, gathered + header + at, part);
		p->len = header + part;
		do_piece(p, at, n, header + at + part == len);
		do_sums(p, MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM);
		wire_send_as(p);
	}
	return true;
}

/*
 * One request of a send queue: control segment, address, padding, what is to
 * be done with the headers, the headers themselves, data.
 */
bool enhanced_send(struct card_qp *q, u32 at, u32 end, u8 opcode, struct packet *p)
{
	struct card_fn *fn = q->obj.fn;
	struct card_tis *tis = (struct card_tis *)object_find(fn, OBJ_TIS, q->tis);
	struct card_qp *qp = tis ? (struct card_qp *)object_find(fn, OBJ_QP, tis->qpn) : NULL;
	struct mlx5_wqe_eth_seg *eth = wqe_at(q, at + ETH_AT);
	size_t header, len = 0;
	ssize_t rest;
	u32 i;

	if (!qp || qp->state != MLX5_QP_STATE_RTS || !eth || at + ETH_AT + UNIT > end)
		return false;
	wire_address(qp, q, at + UNIT, p);
	header = be16_to_cpu(eth->inline_hdr.sz);
	i = at + ETH_AT + INLINE_START;
	for (; len < header && i < end; len++, i++)
		gathered[len] = *(u8 *)wqe_at(q, i);
	if (len < header)
		return false;
	i = at + ETH_AT + UNIT;
	if (header > sizeof(eth->inline_hdr.start))
		i += ALIGN(header - sizeof(eth->inline_hdr.start), UNIT);
	rest = wire_gather(q, i, end, gathered + len, sizeof(gathered) - len);
	if (rest < 0)
		return false;
	len += rest;
	if (opcode == MLX5_OPCODE_LSO)
		return send_cut(p, len, header, be16_to_cpu(eth->mss));
	if (len > sizeof(p->data))
		return false;
	memcpy(p->data, gathered, len);
	p->len = len;
	do_sums(p, eth->cs_flags);
	wire_send_as(p);
	return true;
}
