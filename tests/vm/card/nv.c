// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings that firmware keeps, and the way by which the vendor's tools reach
 * them: the vendor-specific capability of configuration space, behind it
 * spaces of registers, in one of them a command interface with a mailbox, and
 * in that the registers of the settings.
 *
 * Settings are kept at the end of the hidden memory, which a reboot of the
 * machine leaves as it is.  A setting that is written is the one of the next
 * boot; nv_start() makes it the current one.
 *
 * Configuration space is read and written with interrupts off, so nothing
 * waits: a command that takes time is done when it is asked for after that.
 */
#include <linux/io.h>
#include "card.h"

#define MAGIC 0x6e763031

enum space { SPACE_ICMD_EXT = 1, SPACE_CR, SPACE_ICMD, SPACE_SEMAPHORE = 0xa };

#define CR_HW_ID 0xf0014
#define HW_ID_CONNECTX6 0x20f
#define ICMD_CTRL 0
#define ICMD_BUSY 1
#define ICMD_SIZE 0x1000
#define ICMD_MAILBOX 0x100000
#define ICMD_REGISTER_ACCESS 0x9001
#define ICMD_BAD_OPCODE 1
#define METHOD_SET 2
#define ADDRESS_FLAG (1U << 31)
#define STATUS_SUPPORTED (1U << 29)

/* What a register answers. */
#define REG_NOT_SUPPORTED 4
#define REG_NOT_AVAILABLE 8
#define REG_BAD_CONFIG 0x20

enum { NV_MGIR = 0x9020, NV_NVDA = 0x9024, NV_NVDI, NV_MFRL = 0x9028,
       NV_NVQC = 0x9030, NV_NVIA = 0x9033, NV_NVQGC, NV_MQIS = 0x9064 };

static const struct { u16 id; const char *name; } registers[] = {
	{ NV_MGIR, "MGIR" }, { NV_NVDA, "NVDA" }, { NV_NVDI, "NVDI" },
	{ NV_MFRL, "MFRL" }, { NV_NVQC, "NVQC" }, { NV_NVIA, "NVIA" },
	{ NV_NVQGC, "NVQGC" }, { NV_MQIS, "MQIS" },
};

/* Groups of settings: of the card, of a port, of a function. */
enum group { NV_PCI, NV_LINK, NV_KEEP, NV_PF, NV_GROUPS };
enum { CLASS_CARD, CLASS_PORT, CLASS_PF = 3 };
#define NV_PCI_CAP 0x81			/* what NV_PCI can be, of the card */

static const struct { u8 class; u16 index; u8 dwords, version; } groups[] = {
	[NV_PCI] = { CLASS_CARD, 0x80, 3, 0 },
	[NV_LINK] = { CLASS_PORT, 0x12, 1, 0 },
	[NV_KEEP] = { CLASS_PORT, 0x190, 1, 3 },
	[NV_PF] = { CLASS_PF, 0x80, 4, 0 },
};

typedef u32 nv_values[NV_GROUPS][4];

enum setting { SRIOV_EN, NUM_OF_VFS, PF_NUM_OF_VF_VALID, LINK_TYPE, PF_NUM_OF_VF };
#define LINK_TYPE_ETH 2

/* Those that have an effect here, by the tool's names. */
static const struct { const char *name; enum group group; u8 dword, shift; u32 mask; } settings[] = {
	[SRIOV_EN] = { "SRIOV_EN", NV_PCI, 1, 31, 1 },
	[NUM_OF_VFS] = { "NUM_OF_VFS", NV_PCI, 1, 0, 0xffff },
	[PF_NUM_OF_VF_VALID] = { "PF_NUM_OF_VF_VALID", NV_PCI, 0, 14, 1 },
	[LINK_TYPE] = { "LINK_TYPE", NV_LINK, 0, 2, 3 },
	[PF_NUM_OF_VF] = { "PF_NUM_OF_VF", NV_PF, 2, 0, 0xffff },
};

/* What is kept, of each PF; settings of a card are those of its first one. */
static struct {
	u32 magic;
	struct nv_kept {
		u32 held;		/* a reboot does not load them */
		nv_values current_, next;
	} pf[CARD_MAX_PFS];
} kept;
static nv_values factory[CARD_MAX_PFS];
static void __iomem *store;
static DEFINE_SPINLOCK(nv_lock);
static u32 semaphores[CARD_MAX_PFS + 1][16];	/* of a card */

static void save(void)
{
	memcpy_toio(store, &kept, sizeof(kept));
}

static unsigned int number(struct card_fn *pf)
{
	unsigned int p;

	for (p = 0; card_pf[p] != pf; p++)
		;
	return p;
}

static struct nv_kept *kept_of(struct card_fn *pf)
{
	return &kept.pf[number(pf)];
}

/* The Nth function of the same card, or NULL. */
static struct card_fn *function(struct card_fn *pf, unsigned int n)
{
	unsigned int p;

	for (p = 0; p < card_pfs; p++)
		if (card_pf[p]->card == pf->card && !n--)
			return card_pf[p];
	return NULL;
}

static unsigned int functions(struct card_fn *pf)
{
	unsigned int n = 0;

	while (function(pf, n))
		n++;
	return n;
}

static u32 get(nv_values values, enum setting s)
{
	return values[settings[s].group][settings[s].dword] >> settings[s].shift &
	       settings[s].mask;
}

static void put(nv_values values, enum setting s, u32 value)
{
	u32 *dword = &values[settings[s].group][settings[s].dword];

	*dword &= ~(settings[s].mask << settings[s].shift);
	*dword |= (value & settings[s].mask) << settings[s].shift;
}

/* NAME:NUMBER+NAME:NUMBER, over what is in VALUES. */
bool nv_parse(const char *text, u32 (*values)[4])
{
	char copy[VALUE_LEN], *rest = copy, *one;
	int s;

	strscpy(copy, text, sizeof(copy));
	while ((one = strsep(&rest, "+"))) {
		char *name = strsep(&one, ":");
		u32 value;

		if (!one || kstrtou32(one, 0, &value))
			return false;
		for (s = 0; s < ARRAY_SIZE(settings); s++)
			if (!strcmp(name, settings[s].name))
				break;
		if (s == ARRAY_SIZE(settings) || value > settings[s].mask)
			return false;
		put(values, s, value);
	}
	return true;
}

static unsigned int max_vfs(struct card_fn *pf)
{
	struct card_fn *one;
	unsigned int n, max = 0;

	for (n = 0; (one = function(pf, n)); n++)
		max = max(max, one->total_vfs);
	return max;
}

/* With what a PF leaves the factory: what pf= says of its card, and the knob. */
static void make(struct card_fn *pf, nv_values values)
{
	char text[VALUE_LEN];

	memset(values, 0, sizeof(nv_values));
	values[NV_PCI][0] = 1U << 31;		/* SR-IOV's are valid */
	values[NV_PCI][1] = functions(pf) << 16;
	values[NV_PF][0] = 1U << 22;
	put(values, SRIOV_EN, max_vfs(pf) > 0);
	put(values, NUM_OF_VFS, max_vfs(pf));
	put(values, PF_NUM_OF_VF, pf->total_vfs);
	put(values, LINK_TYPE, pf->eth ? LINK_TYPE_ETH : 1);
	if (knob_text(pf, "nv", text))
		nv_parse(text, values);
}

/* How many VFs the settings leave to a PF. */
unsigned int nv_vfs(struct card_fn *pf)
{
	u32 (*card)[4] = kept_of(function(pf, 0))->current_;

	if (!get(card, SRIOV_EN))
		return 0;
	return min(pf->total_vfs, get(card, PF_NUM_OF_VF_VALID) ?
		   get(kept_of(pf)->current_, PF_NUM_OF_VF) : get(card, NUM_OF_VFS));
}

/* A boot: AT is the memory where settings are kept, one page. */
void nv_start(void __iomem *at)
{
	unsigned int p;
	bool fresh;

	BUILD_BUG_ON(sizeof(kept) > PAGE_SIZE);
	store = at;
	memcpy_fromio(&kept, store, sizeof(kept));
	fresh = kept.magic != MAGIC + card_pfs;
	kept.magic = MAGIC + card_pfs;
	for (p = 0; p < card_pfs; p++) {
		struct nv_kept *k = &kept.pf[p];

		make(card_pf[p], factory[p]);
		if (fresh)
			memcpy(k->next, factory[p], sizeof(k->next));
		if (fresh || !k->held)
			memcpy(k->current_, k->next, sizeof(k->current_));
		card_pf[p]->eth = get(k->current_, LINK_TYPE) == LINK_TYPE_ETH;
	}
	save();
}

void nv_knobs(struct card_fn *pf)
{
	struct nv_kept *k = kept_of(pf);
	char value[VALUE_LEN];
	bool held = knob_text(pf, "nv_load", value) && !strcmp(value, "power");

	spin_lock(&nv_lock);
	if (k->held != held) {
		k->held = held;
		save();
	}
	spin_unlock(&nv_lock);
}

/* Whose settings of which group a type speaks of; NULL: of none. */
static struct card_fn *owner(struct card_fn *pf, u32 type, enum group *group)
{
	enum group g;

	for (g = 0; g < NV_GROUPS; g++) {
		*group = g;
		if (type >> 24 != groups[g].class)
			continue;
		switch (groups[g].class) {
		case CLASS_CARD:
			if ((type & 0xffffff) == groups[g].index)
				return function(pf, 0);
			break;
		case CLASS_PORT:
			if ((type & 0xffff) == groups[g].index)
				return function(pf, (type >> 16 & 0xff) - 1);
			break;
		case CLASS_PF:
			if ((type & 0x3ff) == groups[g].index)
				return pf;
			break;
		}
	}
	return NULL;
}

static u8 read_caps(struct card_fn *pf, u32 *r)
{
	memset(r + 3, 0, 5 * sizeof(u32));
	r[3] = 1U << 31 | 1 << 11;		/* a number of VFs of each PF */
	r[4] = (u32)(max_vfs(pf) > 0) << 31 | 1 << 29 | functions(pf) << 16 | max_vfs(pf);
	return 0;
}

/* A header with type, three dwords, and the values of a group. */
static u8 nvda(struct card_fn *pf, bool set, u32 *r)
{
	enum group g;
	struct card_fn *of = owner(pf, r[1], &g);
	size_t size;
	u32 *from;

	if (!of && !set && r[1] == NV_PCI_CAP)
		return read_caps(pf, r);
	if (!of)
		return set ? REG_BAD_CONFIG : REG_NOT_AVAILABLE;
	size = groups[g].dwords * sizeof(u32);
	if (set) {
		if (g == NV_PCI && (r[4] & 0xffff) > max_vfs(pf))
			return REG_BAD_CONFIG;
		count(pf, C_nv_write);
		memcpy(kept_of(of)->next[g], r + 3, size);
		save();
		return 0;
	}
	from = kept_of(of)->next[g];
	if (r[0] & 1 << 22)
		from = kept_of(of)->current_[g];
	if (r[0] & 1 << 23)
		from = factory[number(of)][g];
	r[0] = (r[0] & ~0x1ffU) | size;
	memcpy(r + 3, from, size);
	return 0;
}

static void back_to_factory(struct card_fn *pf, u32 *type)
{
	enum group g, one = NV_GROUPS;
	struct card_fn *of = type ? owner(pf, *type, &one) : NULL;
	unsigned int n;

	count(pf, C_nv_write);
	for (n = 0; n < functions(pf); n++) {
		unsigned int p = number(function(pf, n));

		for (g = 0; g < NV_GROUPS; g++)
			if (!type || (card_pf[p] == of && g == one))
				memcpy(kept.pf[p].next[g], factory[p][g], sizeof(factory[p][g]));
	}
	save();
}

static u8 access(struct card_fn *pf, u16 id, bool set, u32 *r)
{
	unsigned int i;
	char knob[24];
	enum group g;
	u8 status;

	for (i = 0; i < ARRAY_SIZE(registers) && registers[i].id != id; i++)
		;
	if (i == ARRAY_SIZE(registers))
		return REG_NOT_SUPPORTED;
	snprintf(knob, sizeof(knob), "nv_status.%s%s", registers[i].name,
		 set ? "_SET" : "");
	status = knob_number(pf, knob, 0);
	if (status)
		return status;
	switch (id) {
	case NV_MGIR:
		r[1] = functions(pf) << 16;
		return 0;
	case NV_NVQC:
		r[1] = owner(pf, r[0], &g) ? 3 | groups[g].version << 4 :
		       r[0] == NV_PCI_CAP ? 1 : 0;
		return 0;
	case NV_NVQGC:
		r[0] = 1 | (knob_number(pf, "nv_current", 1) ? 2 : 0);
		return 0;
	case NV_NVDA:
		return nvda(pf, set, r);
	case NV_NVDI:
		back_to_factory(pf, r + 1);
		return 0;
	case NV_NVIA:
		back_to_factory(pf, NULL);
		return 0;
	case NV_MFRL:
		return 0;
	}
	return REG_NOT_SUPPORTED;
}

/* Does the command in the mailbox: operation (4 dwords), header of the register (1 dword), register. */
static void icmd(struct card_fn *pf)
{
	struct nv_gateway *gw = &pf->gateway;
	u32 *m = gw->mailbox, ctrl = gw->icmd_ctrl & ~0xff01U;

	if (gw->icmd_ctrl >> 16 == ICMD_REGISTER_ACCESS)
		m[0] = (m[0] & ~0x7f00U) |
		       access(pf, m[1] >> 16, (m[1] >> 8 & 0x7f) == METHOD_SET, m + 5) << 8;
	else
		ctrl |= ICMD_BAD_OPCODE << 8;
	gw->icmd_ctrl = ctrl;
}

static bool space_known(u16 space)
{
	return space == SPACE_ICMD_EXT || space == SPACE_CR || space == SPACE_ICMD ||
	       space == SPACE_SEMAPHORE;
}

/* A semaphore is taken by who writes first, until zero is written. */
static void take(u32 *semaphore, u32 value)
{
	if (!value || !*semaphore)
		*semaphore = value;
}

/* The register of a space, if there is one. */
static u32 *place(struct card_fn *pf, u32 at)
{
	struct nv_gateway *gw = &pf->gateway;

	if (gw->space == SPACE_SEMAPHORE && at / 4 < ARRAY_SIZE(semaphores[0]))
		return &semaphores[pf->card][at / 4];
	if (gw->space != SPACE_ICMD)
		return NULL;
	if (at == ICMD_CTRL)
		return &gw->icmd_ctrl;
	if (at >= ICMD_MAILBOX && at < ICMD_MAILBOX + sizeof(gw->mailbox))
		return &gw->mailbox[(at - ICMD_MAILBOX) / 4];
	return NULL;
}

static u32 space_read(struct card_fn *pf, u32 at)
{
	u32 *of = place(pf, at);

	if (of == &pf->gateway.icmd_ctrl && *of & ICMD_BUSY && now_ns() >= pf->gateway.due)
		icmd(pf);
	if (of)
		return *of;
	if (pf->gateway.space == SPACE_ICMD && at == ICMD_SIZE)
		return sizeof(pf->gateway.mailbox);
	return pf->gateway.space == SPACE_CR && at == CR_HW_ID ? HW_ID_CONNECTX6 : 0;
}

static void space_write(struct card_fn *pf, u32 at, u32 value)
{
	u32 *of = place(pf, at);

	if (!of)
		return;
	if (pf->gateway.space == SPACE_SEMAPHORE)
		take(of, value);
	else
		*of = value;
	if (of == &pf->gateway.icmd_ctrl && value & ICMD_BUSY)
		pf->gateway.due = now_ns() + knob_number(pf, "nv_ms", 0) * NSEC_PER_MSEC;
}

u32 nv_read(struct card_fn *pf, unsigned int reg)
{
	struct nv_gateway *gw = &pf->gateway;
	u32 value = 0;

	count(pf, C_vsec);
	spin_lock(&nv_lock);
	switch (reg) {
	case VSEC_CONTROL:
		value = gw->space | (space_known(gw->space) ? STATUS_SUPPORTED : 0);
		break;
	case VSEC_COUNTER:
		value = ++gw->counter;
		break;
	case VSEC_SEMAPHORE:
		value = knob_number(pf, "nv_stuck", 0) ?: gw->semaphore;
		break;
	case VSEC_ADDRESS:
		value = gw->address;
		break;
	case VSEC_DATA:
		value = gw->data;
		break;
	}
	spin_unlock(&nv_lock);
	return value;
}

void nv_write(struct card_fn *pf, unsigned int reg, u32 value)
{
	struct nv_gateway *gw = &pf->gateway;

	count(pf, C_vsec);
	spin_lock(&nv_lock);
	switch (reg) {
	case VSEC_CONTROL:
		gw->space = value;
		break;
	case VSEC_SEMAPHORE:
		take(&gw->semaphore, value);
		break;
	case VSEC_ADDRESS:
		/* The flag turns over when it is done. */
		if (value & ADDRESS_FLAG)
			space_write(pf, value & ~ADDRESS_FLAG, gw->data);
		else
			gw->data = space_read(pf, value);
		gw->address = value ^ ADDRESS_FLAG;
		break;
	case VSEC_DATA:
		gw->data = value;
		break;
	}
	spin_unlock(&nv_lock);
}

/* Whether nv_status.NAME is one of them; with _SET it is what a write answers. */
bool nv_register(const char *name)
{
	size_t len = strlen(name);
	int i;

	if (len > 4 && !strcmp(name + len - 4, "_SET"))
		len -= 4;
	for (i = 0; i < ARRAY_SIZE(registers); i++)
		if (strlen(registers[i].name) == len && !strncmp(registers[i].name, name, len))
			return true;
	return false;
}
