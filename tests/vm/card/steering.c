// SPDX-License-Identifier: GPL-2.0-only
/*
 * What enhanced IPoIB receives with: flow tables, which lead a datagram to a
 * TIR by its headers, and TIRs, which lead it to a receive queue, directly or
 * by a hash over a table of queues (RQT).
 *
 * The tables are followed as they were made; of a match only the outer headers
 * are played, and a rule that asks for more is refused.
 */
#include <linux/jhash.h>
#include <linux/slab.h>
#include "card.h"

#define MATCH_BYTES MLX5_ST_SZ_BYTES(fte_match_set_lyr_2_4)
#define MATCH_OUTER 1
#define HOPS_MAX 16
#define ROOT_DISCONNECT 1

struct flow_group {
	struct list_head node;		/* of its table */
	u32 id;
	u32 first, last;
	u32 entries;
	u8 mask[MATCH_BYTES];
};

struct flow_entry {
	struct list_head node;		/* of its table, by index */
	struct flow_group *group;
	u32 index;
	u16 action;
	u8 to_type;
	u32 to;
	u8 value[MATCH_BYTES];
};

static struct card_flow_table *table_of(struct card_fn *fn, void *in)
{
	/* At the same place in all of these. */
	return (struct card_flow_table *)object_find(fn, OBJ_FLOW_TABLE,
			MLX5_GET(delete_fte_in, in, table_id));
}

static struct flow_group *group_of(struct card_flow_table *t, u32 id)
{
	struct flow_group *g;

	list_for_each_entry(g, &t->groups, node)
		if (g->id == id)
			return g;
	return NULL;
}

static struct flow_entry *entry_of(struct card_flow_table *t, u32 index)
{
	struct flow_entry *e;

	list_for_each_entry(e, &t->entries, node)
		if (e->index == index)
			return e;
	return NULL;
}

static void set_miss(struct card_flow_table *t, void *context)
{
	t->miss = MLX5_GET(flow_table_context, context, table_miss_action) ==
		  MLX5_FLOW_TABLE_MISS_ACTION_FWD ?
		  MLX5_GET(flow_table_context, context, table_miss_id) : 0;
}

u8 steering_make_table(struct card_flow_table *t, void *in, size_t in_len)
{
	INIT_LIST_HEAD(&t->groups);
	INIT_LIST_HEAD(&t->entries);
	if (in_len < MLX5_ST_SZ_BYTES(create_flow_table_in))
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	set_miss(t, MLX5_ADDR_OF(create_flow_table_in, in, flow_table_context));
	return 0;
}

bool steering_table_in_use(struct card_flow_table *t)
{
	return !list_empty(&t->groups);
}

void steering_clear_table(struct card_flow_table *t)
{
	struct flow_group *g, *next_g;
	struct flow_entry *e, *next_e;

	if (!t->groups.next)		/* was never finished */
		return;
	list_for_each_entry_safe(e, next_e, &t->entries, node)
		kfree(e);
	list_for_each_entry_safe(g, next_g, &t->groups, node)
		kfree(g);
}

static u8 create_group(struct card_flow_table *t, void *in, size_t in_len, void *out)
{
	void *criteria = MLX5_ADDR_OF(create_flow_group_in, in, match_criteria);
	struct flow_group *g;

	if (in_len < MLX5_ST_SZ_BYTES(create_flow_group_in))
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	if (MLX5_GET(create_flow_group_in, in, match_criteria_enable) & ~MATCH_OUTER)
		return MLX5_CMD_STAT_BAD_PARAM_ERR;
	g = kzalloc(sizeof(*g), GFP_ATOMIC);
	if (!g)
		return MLX5_CMD_STAT_LIM_ERR;
	g->first = MLX5_GET(create_flow_group_in, in, start_flow_index);
	g->last = MLX5_GET(create_flow_group_in, in, end_flow_index);
	if (MLX5_GET(create_flow_group_in, in, match_criteria_enable))
		memcpy(g->mask, MLX5_ADDR_OF(fte_match_param, criteria, outer_headers),
		       MATCH_BYTES);
	g->id = ++t->last_group;
	list_add_tail(&g->node, &t->groups);
	MLX5_SET(create_flow_group_out, out, group_id, g->id);
	return 0;
}

static u8 destroy_group(struct card_flow_table *t, void *in)
{
	struct flow_group *g = group_of(t, MLX5_GET(destroy_flow_group_in, in, group_id));

	if (!g)
		return MLX5_CMD_STAT_BAD_RES_ERR;
	if (g->entries)
		return MLX5_CMD_STAT_BAD_RES_STATE_ERR;
	list_del(&g->node);
	kfree(g);
	return 0;
}

static u8 set_entry(struct card_flow_table *t, void *in, size_t in_len)
{
	void *context = MLX5_ADDR_OF(set_fte_in, in, flow_context);
	void *value = MLX5_ADDR_OF(flow_context, context, match_value);
	void *to = MLX5_ADDR_OF(flow_context, context, destination);
	u32 index = MLX5_GET(set_fte_in, in, flow_index);
	struct flow_entry *e = entry_of(t, index), *other;
	struct flow_group *g;

	if (in_len < MLX5_ST_SZ_BYTES(set_fte_in))
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	g = group_of(t, MLX5_GET(flow_context, context, group_id));
	if (!g || index < g->first || index > g->last || (e && e->group != g))
		return MLX5_CMD_STAT_BAD_PARAM_ERR;
	if (!e) {
		e = kzalloc(sizeof(*e), GFP_ATOMIC);
		if (!e)
			return MLX5_CMD_STAT_LIM_ERR;
		e->index = index;
		e->group = g;
		g->entries++;
		list_for_each_entry(other, &t->entries, node)
			if (other->index > index)
				break;
		list_add_tail(&e->node, &other->node);
		memcpy(e->value, MLX5_ADDR_OF(fte_match_param, value, outer_headers),
		       MATCH_BYTES);
	}
	e->action = MLX5_GET(flow_context, context, action);
	e->to = 0;
	/* Of several destinations the first is taken. */
	if (e->action & MLX5_FLOW_CONTEXT_ACTION_FWD_DEST &&
	    MLX5_GET(flow_context, context, destination_list_size) &&
	    in_len >= MLX5_ST_SZ_BYTES(set_fte_in) + MLX5_ST_SZ_BYTES(dest_format_struct)) {
		e->to_type = MLX5_GET(dest_format_struct, to, destination_type);
		e->to = MLX5_GET(dest_format_struct, to, destination_id);
	}
	return 0;
}

static u8 delete_entry(struct card_flow_table *t, void *in)
{
	struct flow_entry *e = entry_of(t, MLX5_GET(delete_fte_in, in, flow_index));

	if (!e)
		return MLX5_CMD_STAT_BAD_RES_ERR;
	e->group->entries--;
	list_del(&e->node);
	kfree(e);
	return 0;
}

/* Which table the datagrams of a QP without queues begin with. */
static u8 set_root(struct card_fn *fn, void *in)
{
	struct card_qp *qp = (struct card_qp *)object_find(fn, OBJ_QP,
			MLX5_GET(set_flow_table_root_in, in, underlay_qpn));
	u32 table = MLX5_GET(set_flow_table_root_in, in, table_id);

	if (!qp || !qp->underlay)
		return MLX5_CMD_STAT_BAD_RES_ERR;
	if (MLX5_GET(set_flow_table_root_in, in, op_mod) == ROOT_DISCONNECT)
		table = 0;
	else if (!object_find(fn, OBJ_FLOW_TABLE, table))
		return MLX5_CMD_STAT_BAD_RES_ERR;
	qp->root_table = table;
	return 0;
}

u8 steering_execute(struct card_fn *fn, u16 opcode, void *in, size_t in_len,
		    void *out, bool *mine)
{
	struct card_flow_table *t;

	*mine = true;
	switch (opcode) {
	case MLX5_CMD_OP_SET_FLOW_TABLE_ROOT:
		if (in_len < MLX5_ST_SZ_BYTES(set_flow_table_root_in))
			return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
		return set_root(fn, in);
	case MLX5_CMD_OP_MODIFY_FLOW_TABLE:
	case MLX5_CMD_OP_CREATE_FLOW_GROUP:
	case MLX5_CMD_OP_DESTROY_FLOW_GROUP:
	case MLX5_CMD_OP_SET_FLOW_TABLE_ENTRY:
	case MLX5_CMD_OP_DELETE_FLOW_TABLE_ENTRY:
		break;
	default:
		*mine = false;
		return 0;
	}
	if (in_len < MLX5_ST_SZ_BYTES(delete_fte_in))
		return MLX5_CMD_STAT_BAD_INP_LEN_ERR;
	t = table_of(fn, in);
	if (!t)
		return MLX5_CMD_STAT_BAD_RES_ERR;
	switch (opcode) {
	case MLX5_CMD_OP_MODIFY_FLOW_TABLE:
		set_miss(t, MLX5_ADDR_OF(modify_flow_table_in, in, flow_table_context));
		return 0;
	case MLX5_CMD_OP_CREATE_FLOW_GROUP:
		return create_group(t, in, in_len, out);
	case MLX5_CMD_OP_DESTROY_FLOW_GROUP:
		return destroy_group(t, in);
	case MLX5_CMD_OP_SET_FLOW_TABLE_ENTRY:
		return set_entry(t, in, in_len);
	default:
		return delete_entry(t, in);
	}
}

/* The headers of a datagram as rules speak of them. */
static void describe(const struct ip_headers *h, void *key)
{
	void *from = MLX5_ADDR_OF(fte_match_set_lyr_2_4, key, src_ipv4_src_ipv6);
	void *to = MLX5_ADDR_OF(fte_match_set_lyr_2_4, key, dst_ipv4_dst_ipv6);

	memset(key, 0, MATCH_BYTES);
	MLX5_SET(fte_match_set_lyr_2_4, key, ethertype, h->type);
	MLX5_SET(fte_match_set_lyr_2_4, key, ip_version, h->version);
	MLX5_SET(fte_match_set_lyr_2_4, key, ip_protocol, h->protocol);
	MLX5_SET(fte_match_set_lyr_2_4, key, frag, h->fragment);
	/* IPv4's stands at the end of the place for IPv6's. */
	memcpy(from + 16 - h->address_len, h->from, h->address_len);
	memcpy(to + 16 - h->address_len, h->to, h->address_len);
	if (h->protocol == IPPROTO_TCP) {
		MLX5_SET(fte_match_set_lyr_2_4, key, tcp_sport, h->sport);
		MLX5_SET(fte_match_set_lyr_2_4, key, tcp_dport, h->dport);
	} else if (h->protocol == IPPROTO_UDP) {
		MLX5_SET(fte_match_set_lyr_2_4, key, udp_sport, h->sport);
		MLX5_SET(fte_match_set_lyr_2_4, key, udp_dport, h->dport);
	}
}

static struct flow_entry *first_match(struct card_flow_table *t, const u8 *key)
{
	struct flow_entry *e;
	size_t i;

	list_for_each_entry(e, &t->entries, node) {
		for (i = 0; i < MATCH_BYTES; i++)
			if ((key[i] ^ e->value[i]) & e->group->mask[i])
				break;
		if (i == MATCH_BYTES)
			return e;
	}
	return NULL;
}

static struct card_tir *tir_for(struct card_qp *qp, const u8 *key)
{
	struct card_fn *fn = qp->obj.fn;
	u32 table = qp->root_table;
	unsigned int hops;

	for (hops = 0; table && hops < HOPS_MAX; hops++) {
		struct card_flow_table *t = (struct card_flow_table *)
					    object_find(fn, OBJ_FLOW_TABLE, table);
		struct flow_entry *e = t ? first_match(t, key) : NULL;

		if (!t)
			return NULL;
		if (!e) {
			table = t->miss;
			continue;
		}
		if (!(e->action & MLX5_FLOW_CONTEXT_ACTION_FWD_DEST))
			return NULL;
		if (e->to_type == MLX5_IFC_FLOW_DESTINATION_TYPE_TIR)
			return (struct card_tir *)object_find(fn, OBJ_TIR, e->to);
		if (e->to_type != MLX5_IFC_FLOW_DESTINATION_TYPE_FLOW_TABLE)
			return NULL;
		table = e->to;
	}
	return NULL;
}

/*
 * The receive queue for a datagram to an underlay QP.  The hash is one of our
 * own: a card's is Toeplitz's over the driver's key.
 */
struct card_qp *steering_queue(struct card_qp *qp, const struct ip_headers *h,
			       u32 *hash, u8 *hash_type)
{
	struct card_fn *fn = qp->obj.fn;
	u8 key[MATCH_BYTES];
	struct card_tir *tir;
	struct card_rqt *rqt;
	u32 rqn;

	describe(h, key);
	tir = tir_for(qp, key);
	if (!tir)
		return NULL;
	*hash = jhash(h->from, h->address_len, jhash(h->to, h->address_len, 0));
	*hash_type = h->address_len ? CQE_RSS_HTYPE_IP : 0;
	if (MLX5_GET(tirc, tir->context, disp_type) == MLX5_TIRC_DISP_TYPE_DIRECT) {
		rqn = MLX5_GET(tirc, tir->context, inline_rqn);
	} else {
		rqt = (struct card_rqt *)object_find(fn, OBJ_RQT,
				MLX5_GET(tirc, tir->context, indirect_table));
		if (!rqt || !rqt->size)
			return NULL;
		if (h->ports) {
			*hash = jhash_2words(h->sport, h->dport, *hash);
			*hash_type |= CQE_RSS_HTYPE_L4;
		}
		rqn = rqt->rqn[*hash % rqt->size];
	}
	return (struct card_qp *)object_find(fn, OBJ_RQ, rqn);
}
