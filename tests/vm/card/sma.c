// SPDX-License-Identifier: GPL-2.0-only
/*
 * The management agents of the cards' ports; and for a subnet manager of the
 * guest's own (sm=real) the switch's, and how management packets find them, by
 * directed route or by LID.  What the subnet manager sets in a port counts: LID,
 * state, P_Keys.  With sm=switch the switch has a subnet manager of its own, which
 * is master.  The switch keeps its forwarding tables and gives them back;
 * datagrams go by LID and group as ever.
 *
 * Port N of the switch is where the Nth PF is connected.
 */
#include <linux/slab.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>
#include "card.h"

#define SWITCH_GUID 0x0c42a10300ffff00ULL
#define LID_MAX 1023
#define LFT_BLOCK 64
#define MFT_ENTRIES 512
#define MFT_BLOCK 32
#define HOST_PORT 1			/* every card's port is its first */
#define EXTENDED_PORT_INFO 0xff90	/* of the vendor: no FDR10 */
#define DIRECTION cpu_to_be16(0x8000)
#define BAD_ATTRIBUTE cpu_to_be16(0x000c)
#define BAD_FIELD cpu_to_be16(0x001c)

/* PortInfo, by octets. */
#define PI_LID 16
#define PI_SM_LID 18
#define PI_CAPS 20
#define PI_LOCAL_PORT 28
#define PI_WIDTH_ENABLED 29
#define PI_WIDTH_SUPPORTED 30
#define PI_WIDTH_ACTIVE 31
#define PI_STATE 32			/* and link speeds supported */
#define PI_PHYSICAL 33
#define PI_LMC 34
#define PI_SPEED 35
#define PI_MTU_SL 36
#define PI_VL_CAP 37
#define PI_HIGH_LIMIT 38
#define PI_MTU_CAP 41
#define PI_STALL 42
#define PI_VLS 43
#define PI_GUID_CAP 50
#define PI_TIMEOUT 51
#define PI_RESPONSE 52
#define PI_SPEED_EXT 62
#define PI_SPEED_EXT_ENABLED 63
#define CLIENT_REREGISTER 0x80
#define PORT_IS_SM 0x2
#define EXTENDED_SPEEDS 0x4000

/* SwitchInfo, by octets. */
#define SI_LINEAR_CAP 0
#define SI_MCAST_CAP 4
#define SI_LINEAR_TOP 6
#define SI_LIFE_STATE 11
#define SI_STATE_CHANGED 0x04
#define SI_ENFORCE_CAP 14
#define SI_FLAGS 16

static struct {
	struct sma_port port[CARD_MAX_PFS + 1];		/* 0: the management port */
	u8 info[17];
	u8 lft[LID_MAX + 1];
	u8 mft[MFT_ENTRIES / MFT_BLOCK][64];
	u8 seen[CARD_MAX_PFS + 1];
	bool made;
} sw;

static void put16(u8 *to, u16 value)
{
	to[0] = value >> 8;
	to[1] = value;
}

static u16 get16(const u8 *from)
{
	return from[0] << 8 | from[1];
}

static void put64(u8 *to, u64 value)
{
	__be64 v = cpu_to_be64(value);

	memcpy(to, &v, 8);
}

/* A port as it is after power-on or when its link went down. */
static void reset_port(struct sma_port *p, unsigned int local)
{
	u8 *i = p->info;

	memset(i, 0, sizeof(p->info));
	put64(i + 8, 0xfe80000000000000ULL);
	i[PI_LOCAL_PORT] = local;
	i[PI_WIDTH_ENABLED] = 0xf;
	i[PI_WIDTH_SUPPORTED] = 0xf;
	i[PI_SPEED] = 0x07;
	i[PI_MTU_SL] = IB_MTU_4096 << 4;
	i[PI_VL_CAP] = 4 << 4;
	i[PI_MTU_CAP] = IB_MTU_4096;
	i[PI_VLS] = 4 << 4;
	i[PI_GUID_CAP] = 8;
	i[PI_RESPONSE] = 16;
	i[PI_SPEED_EXT_ENABLED] = 0x07;
	p->state = IB_PORT_INIT;
}

void sma_init(struct card_fn *pf)
{
	unsigned int n;

	reset_port(&pf->sma, HOST_PORT);
	memset(pf->sm_pkey, 0, sizeof(pf->sm_pkey));
	for (n = 0; n < PKEY_MAX; n++)
		pf->sm_pkey[n] = pkey_of_knob(pf, n);
}

static void make_switch(void)
{
	unsigned int n;

	if (sw.made)
		return;
	sw.made = true;
	for (n = 0; n <= CARD_MAX_PFS; n++)
		reset_port(&sw.port[n], n);
	sw.port[0].state = IB_PORT_ACTIVE;
	put16(sw.info + SI_LINEAR_CAP, LID_MAX + 1);
	put16(sw.info + SI_MCAST_CAP, MFT_ENTRIES);
	put16(sw.info + SI_ENFORCE_CAP, 32);
	sw.info[SI_FLAGS] = 0x08;		/* enhanced port 0 */
	memset(sw.lft, 0xff, sizeof(sw.lft));
}

/* The PF behind a port of the switch, if its link is up. */
static struct card_fn *behind(unsigned int port)
{
	struct card_fn *pf = port && port <= card_pfs ? card_pf[port - 1] : NULL;

	return pf && !pf->eth && pf->up && pf->port_state != LINK_DOWN ? pf : NULL;
}

static unsigned int port_of(struct card_fn *pf)
{
	unsigned int n;

	for (n = 0; n < card_pfs; n++)
		if (card_pf[n] == pf)
			return n + 1;
	return 0;
}

/* What is not kept but found out: link and state. */
static void show_port(const struct sma_port *p, struct card_fn *link, bool up, u8 *to)
{
	u32 caps = link ? link->vport.cap_mask | EXTENDED_SPEEDS : EXTENDED_SPEEDS;
	__be32 be = cpu_to_be32(caps);

	memcpy(to, p->info, sizeof(p->info));
	memcpy(to + PI_CAPS, &be, 4);
	to[PI_WIDTH_ACTIVE] = 2;			/* 4x */
	to[PI_STATE] = 0x7 << 4 | (up ? p->state : IB_PORT_DOWN);
	to[PI_PHYSICAL] = (up ? 5 : 2) << 4 | 2;
	to[PI_SPEED] |= 0x4 << 4;
	to[PI_SPEED_EXT] = 0x4 << 4 | 0x7;		/* HDR of FDR, EDR, HDR */
}

/* What the subnet manager that is built in has set. */
static void show_built_in(struct card_fn *pf, u8 *to)
{
	put16(to + PI_LID, pf->lid);
	put16(to + PI_SM_LID, pf->k_sm && pf->lid ? SM_LID : 0);
	if (pf->port_state == LINK_ACTIVE)
		to[PI_STATE] = (to[PI_STATE] & 0xf0) | IB_PORT_ACTIVE;
}

/* False if a state is asked for that cannot be had. */
static bool set_port(struct sma_port *p, bool up, const u8 *from)
{
	static const struct { u8 at, len; } settable[] = {
		{ 0, 20 }, { 26, 2 }, { PI_WIDTH_ENABLED, 1 }, { PI_LMC, 1 },
		{ PI_MTU_SL, 1 }, { PI_HIGH_LIMIT, 1 }, { PI_STALL, 1 },
		{ PI_VLS, 1 },
	};
	u8 state = from[PI_STATE] & 0xf;
	int i;

	if (state && !up)
		return false;
	if ((state == IB_PORT_ARMED && p->state == IB_PORT_DOWN) ||
	    (state == IB_PORT_ACTIVE && p->state < IB_PORT_ARMED) || state > IB_PORT_ACTIVE)
		return false;
	for (i = 0; i < ARRAY_SIZE(settable); i++)
		memcpy(p->info + settable[i].at, from + settable[i].at, settable[i].len);
	p->info[PI_TIMEOUT] = from[PI_TIMEOUT] & 0x1f;
	if (state == IB_PORT_DOWN)
		p->state = IB_PORT_INIT;
	else if (state)
		p->state = state;
	return true;
}

static void set_host_port(struct card_fn *pf, const u8 *from)
{
	bool reregister = from[PI_TIMEOUT] & CLIENT_REREGISTER;
	struct mlx5_eqe_port_state port = { .port = HOST_PORT << 4 };

	pf->lid = get16(pf->sma.info + PI_LID);
	pf->sm_lid = get16(pf->sma.info + PI_SM_LID);
	port_pass(pf);
	if (reregister)
		event_async(pf, MLX5_EVENT_TYPE_PORT_CHANGE,
			    MLX5_PORT_CHANGE_SUBTYPE_CLIENT_REREG, &port, sizeof(port));
}

static void pkey_block(struct card_fn *pf, u32 block, bool set, u8 *info)
{
	struct mlx5_eqe_port_state port = { .port = HOST_PORT << 4 };
	unsigned int i;

	if (block >= PKEY_MAX / 32)
		return;
	for (i = 0; i < 32; i++) {
		if (set)
			pf->sm_pkey[block * 32 + i] = get16(info + 2 * i);
		put16(info + 2 * i, pkey_at(pf, block * 32 + i));
	}
	if (set)
		event_async(pf, MLX5_EVENT_TYPE_PORT_CHANGE,
			    MLX5_PORT_CHANGE_SUBTYPE_PKEY, &port, sizeof(port));
}

static void node_info(u8 *info, u8 type, u8 ports, u64 guid, u64 port_guid,
		      u16 device, u8 local)
{
	info[0] = 1;
	info[1] = 1;
	info[2] = type;
	info[3] = ports;
	put64(info + 4, guid);
	put64(info + 12, guid);
	put64(info + 20, port_guid);
	put16(info + 28, type == 1 ? PKEY_MAX : 32);
	put16(info + 30, device);
	info[36] = local;
	info[38] = 0x02;			/* Mellanox */
	info[39] = 0xc9;
}

/* The agent of a card's port; info is request and answer. */
__be16 sma_host(struct card_fn *fn, bool set, u16 attribute, u32 modifier, u8 *info)
{
	struct card_fn *pf = fn->pf;
	bool up = pf->port_state != LINK_DOWN;

	if (!set && attribute != 0x0016)
		memset(info, 0, 64);
	switch (attribute) {
	case 0x0010:				/* NodeDescription */
		if (set)
			strscpy(pf->node_desc, (char *)info, sizeof(pf->node_desc));
		memcpy(info, pf->node_desc, sizeof(pf->node_desc));
		return 0;
	case 0x0011:				/* NodeInfo */
		if (set)
			return BAD_ATTRIBUTE;
		node_info(info, 1, 1, pf->vport.node_guid, pf->vport.port_guid,
			  0x101b, HOST_PORT);
		return 0;
	case 0x0014:				/* GUIDInfo: the rest are nobody's */
		if (!modifier)
			put64(info, pf->vport.port_guid);
		return 0;
	case 0x0015:				/* PortInfo */
		if (set && !set_port(&pf->sma, up, info))
			return BAD_FIELD;
		if (set)
			set_host_port(pf, info);
		show_port(&pf->sma, pf, up, info);
		if (!pf->k_real_sm)
			show_built_in(pf, info);
		return 0;
	case 0x0016:				/* P_KeyTable */
		pkey_block(pf, modifier & 0xffff, set, info);
		return 0;
	case 0x0017:				/* SLtoVL, VLArbitration: accepted */
	case 0x0018:
	case EXTENDED_PORT_INFO:
		return 0;
	}
	return BAD_ATTRIBUTE;
}

/* As the PF at that port of the switch has it. */
static bool has_own_sm(unsigned int from_port)
{
	struct card_fn *pf = behind(from_port);

	return pf && pf->k_switch_sm;
}

static __be16 switch_port_info(unsigned int from_port, bool set, u32 port, u8 *info)
{
	struct card_fn *pf = behind(port);
	bool up = !port || pf;

	if (port > CARD_MAX_PFS)
		return BAD_FIELD;
	if (set && !set_port(&sw.port[port], up, info))
		return BAD_FIELD;
	show_port(&sw.port[port], NULL, up, info);
	if (!port && has_own_sm(from_port))
		info[PI_CAPS + 3] |= PORT_IS_SM;
	/* The port by which the question came, not the one that was asked about. */
	info[PI_LOCAL_PORT] = from_port;
	return 0;
}

static __be16 sma_switch(unsigned int from_port, bool set, u16 attribute,
			 u32 modifier, u8 *info)
{
	u8 *kept = NULL;

	switch (attribute) {
	case 0x0010:
		memset(info, 0, 64);
		strscpy((char *)info, "software switch", 64);
		return 0;
	case 0x0011:
		memset(info, 0, 64);
		node_info(info, 2, CARD_MAX_PFS, SWITCH_GUID, SWITCH_GUID, 0xcf08,
			  from_port);
		return 0;
	case 0x0012:				/* SwitchInfo */
		if (set) {
			put16(sw.info + SI_LINEAR_TOP, get16(info + SI_LINEAR_TOP));
			/* Writing the bit clears it. */
			sw.info[SI_LIFE_STATE] = (info[SI_LIFE_STATE] & ~SI_STATE_CHANGED) |
				(sw.info[SI_LIFE_STATE] & ~info[SI_LIFE_STATE] & SI_STATE_CHANGED);
		}
		memset(info, 0, 64);
		memcpy(info, sw.info, sizeof(sw.info));
		return 0;
	case 0x0014:
		memset(info, 0, 64);
		if (!modifier)
			put64(info, SWITCH_GUID);
		return 0;
	case 0x0015:
		return switch_port_info(from_port, set, modifier & 0xff, info);
	case 0x0016:				/* nothing is enforced */
	case 0x0017:
	case 0x0018:
	case EXTENDED_PORT_INFO:
		if (!set)
			memset(info, 0, 64);
		return 0;
	case 0x0019:				/* LinearForwardingTable */
		if (modifier <= LID_MAX / LFT_BLOCK)
			kept = sw.lft + modifier * LFT_BLOCK;
		break;
	case 0x001b:				/* MulticastForwardingTable */
		if ((modifier & 0x1ff) < MFT_ENTRIES / MFT_BLOCK && !(modifier >> 28))
			kept = sw.mft[modifier & 0x1ff];
		break;
	case 0x0020:				/* SMInfo */
		sm_info(info, SWITCH_GUID, 15);
		return 0;
	default:
		return BAD_ATTRIBUTE;
	}
	if (!kept)
		return BAD_FIELD;
	if (set)
		memcpy(kept, info, 64);
	else
		memcpy(info, kept, 64);
	return 0;
}

/* Answers in place; false for what goes to a driver, or nowhere. */
static bool answer(struct card_fn *host, unsigned int from_port, struct ib_smp *smp)
{
	bool set = smp->method == IB_MGMT_METHOD_SET;
	u16 attribute = be16_to_cpu(smp->attr_id);
	u32 modifier = be32_to_cpu(smp->attr_mod);
	__be16 status;

	if ((!set && smp->method != IB_MGMT_METHOD_GET) ||
	    (smp->attr_id == IB_SMP_ATTR_SM_INFO && (host || !has_own_sm(from_port))))
		return false;
	status = host ? sma_host(host, set, attribute, modifier, smp->data) :
			sma_switch(from_port, set, attribute, modifier, smp->data);
	smp->method = IB_MGMT_METHOD_GET_RESP;
	smp->status = status;
	if (smp->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		smp->status |= DIRECTION;
	return true;
}

static void deliver(struct card_fn *to, struct packet *p, u16 slid)
{
	p->slid = slid;
	p->dlid = be16_to_cpu(IB_LID_PERMISSIVE);
	p->dqpn = 0;
	p->sqpn = 0;
	p->has_grh = false;
	wire_deliver(to, p);
}

/*
 * By directed route.  On the way out hop_ptr is 1 when the packet reaches the
 * switch, 2 at a host behind it; on the way back 1 at the host that asked.  At
 * most one switch is on the way, and behind a host there is nothing.
 */
static void directed(struct packet *p, struct ib_smp *smp)
{
	struct card_fn *from = p->from->pf, *to;
	unsigned int in = port_of(from);

	if (smp->status & DIRECTION) {
		/* An answer of a driver's: back to who asked. */
		to = smp->hop_cnt == 2 && smp->hop_ptr == 2 ? behind(smp->return_path[1]) : NULL;
		if (!to)
			return;
		smp->hop_ptr = 1;
		deliver(to, p, be16_to_cpu(IB_LID_PERMISSIVE));
		return;
	}
	if (smp->hop_ptr != 1 || smp->hop_cnt < 1 || smp->hop_cnt > 2)
		return;
	smp->return_path[1] = in;
	if (smp->hop_cnt == 1) {
		if (!answer(NULL, in, smp))
			return;
	} else {
		to = behind(smp->initial_path[2]);
		if (!to)
			return;
		smp->return_path[2] = HOST_PORT;
		if (!answer(to, 0, smp)) {
			smp->hop_ptr = 2;
			deliver(to, p, be16_to_cpu(IB_LID_PERMISSIVE));
			return;
		}
	}
	smp->hop_ptr = 1;
	deliver(from, p, be16_to_cpu(IB_LID_PERMISSIVE));
}

static void by_lid(struct packet *p, struct ib_smp *smp)
{
	u16 switch_lid = get16(sw.port[0].info + PI_LID);
	struct card_fn *to = NULL;
	unsigned int n;

	if (p->dlid == switch_lid) {
		if (answer(NULL, port_of(p->from->pf), smp))
			deliver(p->from->pf, p, switch_lid);
		return;
	}
	for (n = 1; n <= card_pfs; n++)
		if (behind(n) && behind(n)->lid == p->dlid)
			to = behind(n);
	if (!to)
		return;
	if (answer(to, 0, smp))
		deliver(p->from->pf, p, p->dlid);
	else
		deliver(to, p, p->slid);
}

/* A management packet from a driver's QP 0. */
void sma_packet(struct packet *p)
{
	struct ib_smp *smp = (void *)p->data;

	make_switch();
	if (p->len != sizeof(*smp) || !port_of(p->from->pf) || !behind(port_of(p->from->pf)))
		return;
	count(p->from, C_smp);
	if (smp->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		directed(p, smp);
	else if (smp->mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED)
		by_lid(p, smp);
}

/* The link of a PF went up or down, as the switch sees it. */
void sma_link(struct card_fn *pf, bool up)
{
	unsigned int port = port_of(pf);

	make_switch();
	if (!port || sw.seen[port] == up)
		return;
	sw.seen[port] = up;
	reset_port(&sw.port[port], port);
	sw.info[SI_LIFE_STATE] |= SI_STATE_CHANGED;
	pf->sma.state = IB_PORT_INIT;
}

/* What the switch's own subnet manager has set in a port whose link is up. */
void sma_by_switch(struct card_fn *pf)
{
	unsigned int port = port_of(pf);

	if (!port || (pf->sma.state == IB_PORT_ACTIVE && pf->sm_lid == SM_LID))
		return;
	if (!pf->lid)
		pf->lid = SM_LID + port;
	pf->sm_lid = SM_LID;
	put16(pf->sma.info + PI_LID, pf->lid);
	put16(pf->sma.info + PI_SM_LID, SM_LID);
	put16(sw.port[0].info + PI_LID, SM_LID);
	put16(sw.port[0].info + PI_SM_LID, SM_LID);
	pf->sma.state = IB_PORT_ACTIVE;
	sw.port[port].state = IB_PORT_ACTIVE;
}
