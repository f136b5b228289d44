// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subnet manager and administrator, as far as IPoIB, ib_core and the
 * usual look-ups need one: ClassPortInfo, PathRecord, MCMemberRecord, SMInfo.
 * Any group can be joined; it is made when first asked for.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>
#include "card.h"

#define FIRST_MLID 0xc000
#define GRH_SGID 8
#define GRH_DGID 24
#define IPOIB_QKEY 0x00000b1b
#define SA_NO_RECORDS cpu_to_be16(0x0300)
#define MAD_UNSUPPORTED cpu_to_be16(0x000c)
#define SMP_DATA 64
#define EXACTLY 0x80			/* selector of MTU, rate and lifetime */
#define LIFETIME 18

static unsigned int group_mtu = 2048;
module_param(group_mtu, uint, 0600);
MODULE_PARM_DESC(group_mtu, "MTU of multicast groups: 2048 or 4096");

struct group {
	struct list_head node;
	union ib_gid gid;
	u16 lid;
	u16 pkey;
	u32 qkey;
};

static LIST_HEAD(groups);
static u16 last_mlid = FIRST_MLID - 1;
static struct packet reply;

/* PathRecord as it lies on the wire. */
struct path_wire {
	__be64 service_id;
	union ib_gid dgid, sgid;
	__be16 dlid, slid;
	__be32 flow_hop;
	u8 tclass;
	u8 reversible_numb;
	__be16 pkey;
	__be16 qos_sl;
	u8 mtu, rate, life, preference;
	u8 reserved[6];
} __packed;

struct member_wire {
	union ib_gid mgid, port_gid;
	__be32 qkey;
	__be16 mlid;
	u8 mtu, tclass;
	__be16 pkey;
	u8 rate, life;
	__be32 sl_flow_hop;
	u8 scope_join;
	u8 proxy;
	u8 reserved[2];
} __packed;

static u8 mtu_code(void)
{
	return group_mtu >= 4096 ? IB_MTU_4096 : IB_MTU_2048;
}

static __be16 path_record(struct ib_sa_mad *mad)
{
	struct path_wire *path = (void *)mad->data;
	ib_sa_comp_mask mask = mad->sa_hdr.comp_mask;
	struct card_fn *to = NULL, *from = NULL;

	if (mask & IB_SA_PATH_REC_DGID) {
		to = wire_find(be64_to_cpu(path->dgid.global.interface_id));
		if (!to)
			return SA_NO_RECORDS;
		path->dlid = cpu_to_be16(to->pf->lid);
	}
	if (mask & IB_SA_PATH_REC_SGID) {
		from = wire_find(be64_to_cpu(path->sgid.global.interface_id));
		if (!from)
			return SA_NO_RECORDS;
		path->slid = cpu_to_be16(from->pf->lid);
	}
	/*
	 * Ports of VFs share a LID, so their packets need a GRH; the driver
	 * puts one only where the hop limit is not 0.
	 */
	path->flow_hop = cpu_to_be32((to && to->is_vf) || (from && from->is_vf));
	path->reversible_numb = 0x80 | 1;
	if (!(mask & IB_SA_PATH_REC_PKEY))
		path->pkey = cpu_to_be16(0xffff);
	path->qos_sl = 0;
	path->mtu = EXACTLY | IB_MTU_4096;
	path->rate = EXACTLY | IB_RATE_200_GBPS;
	path->life = EXACTLY | LIFETIME;
	mad->sa_hdr.attr_offset = cpu_to_be16(sizeof(*path) / 8);
	return 0;
}

static struct group *group_find(const union ib_gid *gid)
{
	struct group *g;

	list_for_each_entry(g, &groups, node)
		if (!memcmp(&g->gid, gid, sizeof(*gid)))
			return g;
	return NULL;
}

static struct group *group_make(const struct member_wire *m,
				ib_sa_comp_mask mask)
{
	struct group *g = kzalloc(sizeof(*g), GFP_ATOMIC);

	if (!g)
		return NULL;
	g->gid = m->mgid;
	g->lid = ++last_mlid;
	g->qkey = mask & IB_SA_MCMEMBER_REC_QKEY ? be32_to_cpu(m->qkey) :
						   IPOIB_QKEY;
	g->pkey = mask & IB_SA_MCMEMBER_REC_PKEY ? be16_to_cpu(m->pkey) :
						   0xffff;
	list_add_tail(&g->node, &groups);
	return g;
}

static __be16 member_record(struct ib_sa_mad *mad)
{
	struct member_wire *m = (void *)mad->data;
	struct group *g = group_find(&m->mgid);

	if (!g && mad->mad_hdr.method == IB_MGMT_METHOD_SET)
		g = group_make(m, mad->sa_hdr.comp_mask);
	if (!g)
		return SA_NO_RECORDS;
	m->qkey = cpu_to_be32(g->qkey);
	m->mlid = cpu_to_be16(g->lid);
	m->mtu = EXACTLY | mtu_code();
	m->tclass = 0;
	m->pkey = cpu_to_be16(g->pkey);
	m->rate = EXACTLY | IB_RATE_10_GBPS;
	m->life = EXACTLY | LIFETIME;
	m->sl_flow_hop = 0;
	m->scope_join = (m->mgid.raw[1] & 0xf) << 4 | (m->scope_join & 0xf);
	mad->sa_hdr.attr_offset = cpu_to_be16((sizeof(*m) + 7) / 8);
	return 0;
}

static __be16 class_port_info(struct ib_sa_mad *mad)
{
	struct ib_class_port_info *info = (void *)mad->data;

	memset(info, 0, sizeof(*info));
	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = IB_SA_CLASS_VERSION;
	info->cap_mask2_resp_time = cpu_to_be32(18);
	mad->sa_hdr.attr_offset = cpu_to_be16(sizeof(*info) / 8);
	return 0;
}

/* Fills in the answer where the request lay; false for "no answer". */
static bool answer_sa(struct ib_sa_mad *mad)
{
	__be16 status;
	u8 method = mad->mad_hdr.method;

	if (method != IB_MGMT_METHOD_GET && method != IB_MGMT_METHOD_SET &&
	    method != IB_SA_METHOD_DELETE)
		return false;
	switch (be16_to_cpu(mad->mad_hdr.attr_id)) {
	case IB_SA_ATTR_CLASS_PORTINFO:
		status = class_port_info(mad);
		break;
	case IB_SA_ATTR_PATH_REC:
		status = path_record(mad);
		break;
	case IB_SA_ATTR_MC_MEMBER_REC:
		status = member_record(mad);
		break;
	default:
		status = MAD_UNSUPPORTED;
	}
	mad->mad_hdr.status = status;
	mad->mad_hdr.method = method == IB_SA_METHOD_DELETE ?
			      IB_SA_METHOD_DELETE_RESP :
			      IB_MGMT_METHOD_GET_RESP;
	return true;
}

/* A subnet manager that is master. */
void sm_info(u8 *info, u64 port_guid, u8 priority)
{
	__be64 guid = cpu_to_be64(port_guid);
	__be64 key = cpu_to_be64(1);		/* opensm's default; it ignores an SM of another */
	__be32 activity = cpu_to_be32(jiffies_to_msecs(jiffies) / 1000);

	memset(info, 0, 64);
	memcpy(info, &guid, 8);
	memcpy(info + 8, &key, 8);
	memcpy(info + 16, &activity, 4);
	info[20] = priority << 4 | 3;
}

static bool answer_sm(struct packet *p)
{
	struct ib_mad_hdr *hdr = (void *)p->data;

	if (hdr->method != IB_MGMT_METHOD_GET)
		return false;
	hdr->method = IB_MGMT_METHOD_GET_RESP;
	hdr->status = MAD_UNSUPPORTED;
	if (hdr->attr_id == cpu_to_be16(0x0020)) {	/* SMInfo */
		hdr->status = 0;
		sm_info(p->data + SMP_DATA, 0x0c42a10300ffffffULL, 14);
	}
	return true;
}

void sa_request(struct packet *p)
{
	struct packet *r = &reply;
	struct ib_mad_hdr *hdr = (void *)r->data;
	bool answered = false;
	u8 gid[16];

	if (!p->from || !port_has_sm(p->from->pf) || p->len != sizeof(struct ib_mad))
		return;
	count(p->from, C_sa_request);
	memcpy(r, p, offsetof(struct packet, data) + p->len);
	if (p->dqpn == 1 && hdr->mgmt_class == IB_MGMT_CLASS_SUBN_ADM)
		answered = answer_sa((void *)r->data);
	else if (p->dqpn == 0 && hdr->mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED)
		answered = answer_sm(r);
	if (!answered)
		return;
	r->from = NULL;
	r->dlid = p->slid;
	r->slid = SM_LID;
	r->dqpn = p->sqpn;
	r->sqpn = p->dqpn;
	r->qkey = GSI_QKEY;
	memcpy(gid, r->grh + GRH_SGID, 16);
	memcpy(r->grh + GRH_SGID, r->grh + GRH_DGID, 16);
	memcpy(r->grh + GRH_DGID, gid, 16);
	wire_send(r);
}

void sa_forget(void)
{
	struct group *g, *next;

	list_for_each_entry_safe(g, next, &groups, node)
		kfree(g);
}
