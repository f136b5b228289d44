// SPDX-License-Identifier: GPL-2.0-only
/*
 * Root buses of the card's own, with their configuration space: memory with a
 * mask of what may be written.  SR-IOV, MSI-X and resets are the PCI core's
 * work; here are only the registers that it reads and writes.
 *
 * The BARs lie in memory that mem= on the kernel command line has hidden from
 * the kernel, so that ioremap works on it.  (memmap= will not do: the PCI core
 * keeps windows away from what e820 calls reserved.)
 *
 * Configuration space is read and written under the PCI core's own spinlock,
 * interrupts off; what needs work is noted and done by the threads.
 */
#include <linux/ioport.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "card.h"

#define CAP_PM 0x40
#define CAP_VPD 0x48
#define CAP_EXP 0x60
#define CAP_MSIX 0x9c
#define CAP_VSEC 0xc0
#define EXT_SERIAL 0x100
#define EXT_SRIOV 0x180

static char *memory = "0x40000000,0x4000000";
module_param(memory, charp, 0400);
MODULE_PARM_DESC(memory, "ADDRESS,SIZE of memory that mem= has hidden");

static unsigned int vf_vectors = 3;
module_param(vf_vectors, uint, 0400);
MODULE_PARM_DESC(vf_vectors, "MSI-X vectors of each VF");

static unsigned int link_speed = 4, link_width = 16;
module_param(link_speed, uint, 0400);
MODULE_PARM_DESC(link_speed, "PCIe link: 1 is 2.5 GT/s, 4 is 16 GT/s");
module_param(link_width, uint, 0400);
MODULE_PARM_DESC(link_width, "PCIe lanes");

/* A card: its functions share a bus. */
struct root {
	struct pci_sysdata sysdata;	/* first: what the kernel hands back */
	struct resource buses;
	struct pci_bus *bus;
	struct card_fn *fn[256];
};

static struct root *roots[CARD_MAX_PFS + 1];
static struct resource window = {
	.name = CARD_NAME,
	.flags = IORESOURCE_MEM,
};
static void __iomem *window_map;

static void set8(struct card_fn *fn, int at, u8 value, u8 mask)
{
	fn->config[at] = value;
	fn->writable[at] = mask;
}

static void set16(struct card_fn *fn, int at, u16 value, u16 mask)
{
	set8(fn, at, value, mask);
	set8(fn, at + 1, value >> 8, mask >> 8);
}

static void set32(struct card_fn *fn, int at, u32 value, u32 mask)
{
	set16(fn, at, value, mask);
	set16(fn, at + 2, value >> 16, mask >> 16);
}

static u32 get(struct card_fn *fn, int at, int size)
{
	u32 value = 0;
	int i;

	for (i = 0; i < size; i++)
		value |= (u32)READ_ONCE(fn->config[at + i]) << (8 * i);
	return value;
}

static struct card_fn *fn_at(struct pci_bus *bus, unsigned int devfn)
{
	struct root *root = container_of(bus->sysdata, struct root, sysdata);

	return root->fn[devfn];
}

/* VFs answer once their PF has them enabled. */
static bool present(struct card_fn *fn)
{
	return fn && !READ_ONCE(fn->gone) &&
	       (!fn->is_vf || bus_vfs_enabled(fn->pf));
}

/* A read is over when the flag is set, a write when it is not; writes go nowhere. */
static void vpd_pass(struct card_fn *fn)
{
	u16 at = get(fn, CAP_VPD + PCI_VPD_ADDR, 2);
	int i;

	if (!fn->vpd_asked || now_ns() < fn->vpd_due)
		return;
	fn->vpd_asked = false;
	if (!(at & PCI_VPD_ADDR_F))
		for (i = 0; i < 4; i++)
			fn->config[CAP_VPD + PCI_VPD_DATA + i] =
				at + i < fn->vpd_len ? fn->vpd[at + i] : 0;
	fn->config[CAP_VPD + PCI_VPD_ADDR + 1] ^= PCI_VPD_ADDR_F >> 8;
}

/* A register of the vendor-specific capability, as whole as its users want it. */
static bool in_vsec(struct card_fn *fn, int where, int size)
{
	return !fn->is_vf && size == 4 && where >= CAP_VSEC + VSEC_CONTROL &&
	       where < CAP_VSEC + VSEC_SIZE;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where,
		       int size, u32 *value)
{
	struct card_fn *fn = fn_at(bus, devfn);

	if (!present(fn) || where + size > CARD_CONFIG_SIZE) {
		*value = ~0U;
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	vpd_pass(fn);
	*value = in_vsec(fn, where, size) ? nv_read(fn, where - CAP_VSEC) :
					    get(fn, where, size);
	return PCIBIOS_SUCCESSFUL;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where,
			int size, u32 value)
{
	struct card_fn *fn = fn_at(bus, devfn);
	bool master;
	int i;

	if (!present(fn) || where + size > CARD_CONFIG_SIZE)
		return PCIBIOS_DEVICE_NOT_FOUND;
	if (in_vsec(fn, where, size)) {
		nv_write(fn, where - CAP_VSEC, value);
		return PCIBIOS_SUCCESSFUL;
	}
	master = bus_master_on(fn);
	for (i = 0; i < size; i++) {
		u8 mask = fn->writable[where + i];
		u8 byte = value >> (8 * i);

		WRITE_ONCE(fn->config[where + i],
			   (fn->config[where + i] & ~mask) | (byte & mask));
	}
	/*
	 * From here on the driver's memory is not the card's any more, and may
	 * soon be somebody else's: a pass that is under way must have ended, and
	 * the next one, before which the driver may have allowed bus mastering
	 * again as it does in health recovery, must know of nothing in it.
	 */
	if (master && !bus_master_on(fn)) {
		spin_lock(&card_lock);
		firmware_drop_state(fn);
		spin_unlock(&card_lock);
	}
	if (fn->vpd_len && where <= CAP_VPD + PCI_VPD_ADDR + 1 &&
	    where + size > CAP_VPD + PCI_VPD_ADDR + 1) {
		fn->vpd_asked = true;
		fn->vpd_due = now_ns() + READ_ONCE(fn->k_vpd_ms) * NSEC_PER_MSEC;
	}
	if (get(fn, CAP_EXP + PCI_EXP_DEVCTL, 2) & PCI_EXP_DEVCTL_BCR_FLR) {
		fn->config[CAP_EXP + PCI_EXP_DEVCTL + 1] &=
			~(PCI_EXP_DEVCTL_BCR_FLR >> 8);
		WRITE_ONCE(fn->flr, true);
	}
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops ops = { .read = config_read, .write = config_write };

bool bus_vfs_enabled(struct card_fn *pf)
{
	return pf->cap_sriov &&
	       get(pf, pf->cap_sriov + PCI_SRIOV_CTRL, 2) & PCI_SRIOV_CTRL_VFE;
}

bool bus_msix_on(struct card_fn *fn)
{
	u16 flags = get(fn, CAP_MSIX + PCI_MSIX_FLAGS, 2);

	return (flags & PCI_MSIX_FLAGS_ENABLE) && !(flags & PCI_MSIX_FLAGS_MASKALL);
}

bool bus_master_on(struct card_fn *fn)
{
	return get(fn, PCI_COMMAND, 2) & PCI_COMMAND_MASTER;
}

static u64 bar_address(struct card_fn *fn)
{
	u64 low, high;

	if (fn->is_vf) {
		int at = fn->pf->cap_sriov + PCI_SRIOV_BAR;

		low = get(fn->pf, at, 4) & PCI_BASE_ADDRESS_MEM_MASK;
		high = get(fn->pf, at + 4, 4);
		return (high << 32 | low) + (u64)fn->vf * BAR_SIZE_VF;
	}
	low = get(fn, PCI_BASE_ADDRESS_0, 4) & PCI_BASE_ADDRESS_MEM_MASK;
	high = get(fn, PCI_BASE_ADDRESS_1, 4);
	return high << 32 | low;
}

/* Whether BAR 0 is where it can be reached, and if so maps it. */
bool bus_memory_on(struct card_fn *fn)
{
	u64 at = bar_address(fn);
	size_t size = fn->is_vf ? BAR_SIZE_VF : BAR_SIZE_PF;

	if (fn->is_vf && !bus_vfs_enabled(fn->pf))
		return false;
	if (at < window.start || at + size - 1 > window.end)
		return false;
	fn->bar = window_map + (at - window.start);
	fn->iseg = fn->bar;
	return true;
}

/* What a function level reset does to configuration space. */
void bus_flr_done(struct card_fn *fn)
{
	fn->config[CAP_MSIX + PCI_MSIX_FLAGS + 1] &=
		~((PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL) >> 8);
	if (fn->cap_sriov) {
		fn->config[fn->cap_sriov + PCI_SRIOV_CTRL] = 0;
		fn->config[fn->cap_sriov + PCI_SRIOV_NUM_VF] = 0;
	}
	WRITE_ONCE(fn->flr, false);
}

static void express(struct card_fn *fn, u8 next)
{
	int at = CAP_EXP;

	set8(fn, at, PCI_CAP_ID_EXP, 0);
	set8(fn, at + 1, next, 0);
	set16(fn, at + PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_ENDPOINT << 4, 0);
	set32(fn, at + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_RBER | 2, 0);
	set16(fn, at + PCI_EXP_DEVCTL, 0, 0xffff);
	set32(fn, at + PCI_EXP_LNKCAP, 4 | 16 << 4, 0);
	set16(fn, at + PCI_EXP_LNKCTL, 0, 0x0fff);
	set16(fn, at + PCI_EXP_LNKSTA, 0, 0);
	set32(fn, at + PCI_EXP_DEVCAP2, 0, 0);
	set16(fn, at + PCI_EXP_DEVCTL2, 0, 0xffff);
	set32(fn, at + PCI_EXP_LNKCAP2, 0x1e, 0);
	fn->cap_exp = at;
}

static void msix(struct card_fn *fn)
{
	set8(fn, CAP_MSIX, PCI_CAP_ID_MSIX, 0);
	set16(fn, CAP_MSIX + PCI_MSIX_FLAGS, fn->vector_count - 1,
	      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	set32(fn, CAP_MSIX + PCI_MSIX_TABLE, BAR_MSIX_TABLE, 0);
	set32(fn, CAP_MSIX + PCI_MSIX_PBA, BAR_MSIX_PBA, 0);
	fn->cap_msix = CAP_MSIX;
}

static void sriov(struct card_fn *pf, u8 first_vf)
{
	int at = EXT_SRIOV;
	char value[VALUE_LEN];
	u16 total = min_t(u64, nv_vfs(pf),
			  knob_number(pf, "totalvfs", pf->total_vfs));

	/* A card may have the capability and no VFs. */
	if (!nv_vfs(pf) && !knob_text(pf, "totalvfs", value))
		return;
	set32(pf, EXT_SERIAL, PCI_EXT_CAP_ID_DSN | 1 << 16 | EXT_SRIOV << 20, 0);
	set32(pf, at, PCI_EXT_CAP_ID_SRIOV | 1 << 16, 0);
	set16(pf, at + PCI_SRIOV_CTRL, 0, 0x1f);
	set16(pf, at + PCI_SRIOV_INITIAL_VF, total, 0);
	set16(pf, at + PCI_SRIOV_TOTAL_VF, total, 0);
	set16(pf, at + PCI_SRIOV_NUM_VF, 0, 0xffff);
	set8(pf, at + PCI_SRIOV_FUNC_LINK, pf->devfn, 0);
	set16(pf, at + PCI_SRIOV_VF_OFFSET, first_vf - pf->devfn, 0);
	set16(pf, at + PCI_SRIOV_VF_STRIDE, 1, 0);
	set16(pf, at + PCI_SRIOV_VF_DID, 0x101c, 0);
	set32(pf, at + PCI_SRIOV_SUP_PGSIZE, 0x553, 0);
	set32(pf, at + PCI_SRIOV_SYS_PGSIZE, 1, ~0U);
	set32(pf, at + PCI_SRIOV_BAR,
	      PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
	      ~(BAR_SIZE_VF - 1));
	set32(pf, at + PCI_SRIOV_BAR + 4, 0, ~0U);
	pf->cap_sriov = at;
}

/* Where the next field goes; one that has no room is left out. */
static u8 *vpd_field(u8 *to, const u8 *end, const char *key, const char *text,
		     size_t len)
{
	if (to + 3 + len > end)
		return to;
	memcpy(to, key, 2);
	to[2] = len;
	memcpy(to + 3, text, len);
	return to + 3 + len;
}

/* Product data as lspci -vv shows it. */
static void product_data(struct card_fn *pf)
{
	static const char name[] = "ConnectX-6 VPI adapter card, played in software";
	char serial[16], value[VALUE_LEN], *rest = value, *one;
	const u8 *end = pf->vpd + sizeof(pf->vpd) - 5;
	u8 *p = pf->vpd, *fields, sum = 0;
	size_t i, len;

	if (!knob_text(pf, "vpd", value))
		*value = 0;
	if (!strcmp(value, "broken")) {
		memset(pf->vpd, 0xff, sizeof(pf->vpd));
		return;
	}
	memset(pf->vpd, 0, sizeof(pf->vpd));
	*p++ = PCI_VPD_LRDT_ID_STRING;
	*p++ = sizeof(name) - 1;
	*p++ = 0;
	memcpy(p, name, sizeof(name) - 1);
	p += sizeof(name) - 1;
	*p++ = PCI_VPD_LRDT_RO_DATA;
	fields = p;
	p += 2;
	p = vpd_field(p, end, "PN", "MCX653105A-HDAT", 15);
	p = vpd_field(p, end, "EC", "AC", 2);
	len = snprintf(serial, sizeof(serial), "CARD%02u", pf->card);
	p = vpd_field(p, end, "SN", serial, len);
	while ((one = strsep(&rest, "+")))
		if (strlen(one) > 3)
			p = vpd_field(p, end, one, one + 3, strlen(one + 3));
	memcpy(p, "RV\1", 3);
	p += 4;
	len = p - fields - 2;
	fields[0] = len;
	fields[1] = len >> 8;
	for (i = 0; i < p - pf->vpd - 1; i++)
		sum += pf->vpd[i];
	p[-1] = -sum;
	*p = 0x78;			/* end */
}

/* What of configuration space knobs may change while the card is at work. */
void bus_knobs(struct card_fn *fn)
{
	u16 link = knob_number(fn, "pcie_speed", link_speed) |
		   knob_number(fn, "pcie_width", link_width) << 4;

	WRITE_ONCE(fn->k_vpd_ms, knob_number(fn, "vpd_ms", 0));
	/* The standard wants a VF to leave that to its PF. */
	if (fn->is_vf)
		return;
	nv_knobs(fn);
	set16(fn, CAP_EXP + PCI_EXP_LNKSTA, link, 0);
	if (fn->vpd_len)
		product_data(fn);
}

static void vpd(struct card_fn *pf)
{
	char value[VALUE_LEN];

	if (knob_text(pf, "vpd", value) && !strcmp(value, "none"))
		return;
	set8(pf, CAP_VPD, PCI_CAP_ID_VPD, 0);
	set8(pf, CAP_VPD + 1, CAP_EXP, 0);
	set16(pf, CAP_VPD + PCI_VPD_ADDR, 0, 0xffff);
	set32(pf, CAP_VPD + PCI_VPD_DATA, 0, ~0U);
	set8(pf, CAP_PM + 1, CAP_VPD, 0);
	pf->vpd_len = sizeof(pf->vpd);
}

static void identity(struct card_fn *fn, bool several)
{
	/* The standard wants a VF to answer thus: its PF tells what it is. */
	set16(fn, PCI_VENDOR_ID, fn->is_vf ? 0xffff : PCI_VENDOR_ID_MELLANOX, 0);
	set16(fn, PCI_DEVICE_ID, fn->is_vf ? 0xffff : 0x101b, 0);
	set16(fn, PCI_COMMAND, 0, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
	      PCI_COMMAND_PARITY | PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	set16(fn, PCI_STATUS, PCI_STATUS_CAP_LIST, 0);
	set16(fn, PCI_CLASS_DEVICE, fn->eth ? 0x0200 : 0x0207, 0);
	set8(fn, PCI_CACHE_LINE_SIZE, 0, 0xff);
	set8(fn, PCI_HEADER_TYPE, several ? 0x80 : 0, 0);
	set16(fn, PCI_SUBSYSTEM_VENDOR_ID, PCI_VENDOR_ID_MELLANOX, 0);
	set16(fn, PCI_SUBSYSTEM_ID, 0x0008, 0);
	set8(fn, PCI_CAPABILITY_LIST, fn->is_vf ? CAP_EXP : CAP_PM, 0);
	set8(fn, PCI_INTERRUPT_LINE, 0, 0xff);
	express(fn, CAP_MSIX);
	msix(fn);
	if (fn->is_vf)
		return;
	set32(fn, PCI_BASE_ADDRESS_0,
	      PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
	      ~(BAR_SIZE_PF - 1));
	set32(fn, PCI_BASE_ADDRESS_1, 0, ~0U);
	set8(fn, CAP_PM, PCI_CAP_ID_PM, 0);
	set8(fn, CAP_PM + 1, CAP_EXP, 0);
	set16(fn, CAP_PM + PCI_PM_PMC, 3, 0);
	set8(fn, CAP_MSIX + 1, CAP_VSEC, 0);
	set8(fn, CAP_VSEC, PCI_CAP_ID_VNDR, 0);
	set8(fn, CAP_VSEC + 2, VSEC_SIZE, 0);
	/* Software reset on leaving D3 is not what this card does. */
	set16(fn, CAP_PM + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET, 0x3);
	set32(fn, EXT_SERIAL, PCI_EXT_CAP_ID_DSN | 1 << 16, 0);
	set32(fn, EXT_SERIAL + 4, 0x00a0b000 + fn->card, 0);
	set32(fn, EXT_SERIAL + 8, 0x0c42a103, 0);
}

static struct card_fn *make(unsigned int card, u8 devfn)
{
	struct card_fn *fn = kvzalloc(sizeof(*fn), GFP_KERNEL);
	int i;

	if (!fn)
		return NULL;
	fn->card = card;
	fn->devfn = devfn;
	snprintf(fn->name, sizeof(fn->name), "%04x:%02x:%02x.%d", CARD_DOMAIN,
		 card, PCI_SLOT(devfn), PCI_FUNC(devfn));
	INIT_LIST_HEAD(&fn->objects);
	INIT_LIST_HEAD(&fn->cqs_waiting);
	for (i = 0; i < OBJ_TYPES; i++)
		xa_init_flags(&fn->lookup[i], XA_FLAGS_ALLOC);
	fn->config = kzalloc(CARD_CONFIG_SIZE, GFP_KERNEL);
	fn->writable = kzalloc(CARD_CONFIG_SIZE, GFP_KERNEL);
	fn->by_opcode = kcalloc(MLX5_CMD_OP_MAX, sizeof(u32), GFP_KERNEL);
	fn->this_probe = kcalloc(MLX5_CMD_OP_MAX, sizeof(u32), GFP_KERNEL);
	if (!fn->config || !fn->writable || !fn->by_opcode || !fn->this_probe) {
		kfree(fn->config);
		kfree(fn->writable);
		kfree(fn->by_opcode);
		kfree(fn->this_probe);
		kvfree(fn);
		return NULL;
	}
	return fn;
}

static void unmake(struct card_fn *fn)
{
	int i;

	if (!fn)
		return;
	for (i = 0; i < OBJ_TYPES; i++)
		xa_destroy(&fn->lookup[i]);
	kfree(fn->given.page);
	kfree(fn->lent.page);
	kfree(fn->config);
	kfree(fn->writable);
	kfree(fn->by_opcode);
	kfree(fn->this_probe);
	kvfree(fn);
}

/*
 * The type of a PF's port, with which that of its VFs goes.  Its class changes
 * with it, which the kernel reads when it finds the function.
 */
void bus_type(struct card_fn *pf)
{
	char value[VALUE_LEN];
	unsigned int v;

	if (!knob_text(pf, "link_type", value))
		return;
	pf->eth = !strcmp(value, "eth");
	set16(pf, PCI_CLASS_DEVICE, pf->eth ? 0x0200 : 0x0207, 0);
	for (v = 0; v < pf->total_vfs; v++) {
		pf->vfs[v]->eth = pf->eth;
		set16(pf->vfs[v], PCI_CLASS_DEVICE, pf->eth ? 0x0200 : 0x0207, 0);
	}
}

/*
 * What pf= says: CARD.FUNCTION:VFS[:eth],...  Card N is bus N of the domain;
 * functions of one card are its ports.
 */
int bus_parse(const char *text)
{
	char *copy = kstrdup(text, GFP_KERNEL), *rest = copy, *one;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	while (!err && (one = strsep(&rest, ", \n"))) {
		unsigned int card, function, vfs = 0;
		char type[4] = "ib";
		struct card_fn *pf;

		if (!*one)
			continue;
		if (sscanf(one, "%u.%u:%u:%3s", &card, &function, &vfs, type) < 2 ||
		    !card || card > CARD_MAX_PFS || function > 7 ||
		    vfs > CARD_MAX_VFS || card_pfs == CARD_MAX_PFS ||
		    (strcmp(type, "ib") && strcmp(type, "eth"))) {
			pr_err(CARD_NAME ": not understood: pf=%s\n", one);
			err = -EINVAL;
			break;
		}
		pf = make(card, function);
		if (!pf) {
			err = -ENOMEM;
			break;
		}
		pf->pf = pf;
		pf->total_vfs = vfs;
		pf->eth = !strcmp(type, "eth");
		card_pf[card_pfs++] = pf;
	}
	kfree(copy);
	return err;
}

/* VFs of all functions of a card follow on its PFs. */
static int populate(struct root *root, unsigned int card)
{
	unsigned int i, v, next = 0, pfs = 0;

	for (i = 0; i < card_pfs; i++) {
		if (card_pf[i]->card != card)
			continue;
		pfs++;
		next = max_t(unsigned int, next, card_pf[i]->devfn + 1);
	}
	for (i = 0; i < card_pfs; i++) {
		struct card_fn *pf = card_pf[i];

		if (pf->card != card)
			continue;
		if (root->fn[pf->devfn])
			return -EEXIST;
		pf->vector_count = MSIX_VECTORS_MAX;
		root->fn[pf->devfn] = pf;
		identity(pf, pfs > 1);
		vpd(pf);
		bus_knobs(pf);
		sriov(pf, next);
		pf->vfs = kcalloc(pf->total_vfs + 1, sizeof(*pf->vfs), GFP_KERNEL);
		if (!pf->vfs)
			return -ENOMEM;
		for (v = 0; v < pf->total_vfs; v++, next++) {
			struct card_fn *vf;

			if (next > 255)
				return -ENOSPC;
			vf = make(card, next);
			if (!vf)
				return -ENOMEM;
			vf->is_vf = true;
			vf->pf = pf;
			vf->vf = v;
			vf->eth = pf->eth;
			vf->vector_count = clamp_t(unsigned int, vf_vectors, 1,
						   MSIX_VECTORS_MAX);
			pf->vfs[v] = vf;
			root->fn[next] = vf;
			identity(vf, false);
		}
	}
	return pfs ? 0 : -ENOENT;
}

static int scan(struct root *root, unsigned int card)
{
	LIST_HEAD(resources);
	unsigned int i;

	root->sysdata.domain = CARD_DOMAIN;
	root->sysdata.node = NUMA_NO_NODE;
	root->buses = (struct resource){
		.name = CARD_NAME, .flags = IORESOURCE_BUS,
		.start = card, .end = card,
	};
	pci_add_resource(&resources, &window);
	pci_add_resource(&resources, &root->buses);
	pci_lock_rescan_remove();
	root->bus = pci_create_root_bus(NULL, card, &ops, &root->sysdata, &resources);
	if (!root->bus) {
		pci_unlock_rescan_remove();
		pci_free_resource_list(&resources);
		return -ENODEV;
	}
	pci_scan_child_bus(root->bus);
	pci_bus_assign_resources(root->bus);
	/* The functions must be at work before a driver may look at them. */
	for (i = 0; i < 256; i++)
		if (root->fn[i] && !root->fn[i]->is_vf) {
			spin_lock(&card_lock);
			firmware_reset(root->fn[i]);
			spin_unlock(&card_lock);
			if (!root->fn[i]->powered)
				pr_err(CARD_NAME ": %s got no place for its registers\n",
				       root->fn[i]->name);
		}
	pci_bus_add_devices(root->bus);
	pci_unlock_rescan_remove();
	return 0;
}

int bus_start(void)
{
	unsigned long long start, size;
	unsigned int card;
	int err;

	if (sscanf(memory, "%lli,%lli", &start, &size) != 2 || !size) {
		pr_err(CARD_NAME ": not understood: memory=%s\n", memory);
		return -EINVAL;
	}
	window.start = start;
	/* The last page is for settings, out of which the kernel takes no addresses. */
	window.end = start + size - PAGE_SIZE - 1;
	if (page_is_ram(start >> PAGE_SHIFT) ||
	    request_resource(&iomem_resource, &window)) {
		pr_err(CARD_NAME ": %s is not hidden: mem= is missing\n", memory);
		return -EBUSY;
	}
	window_map = ioremap(start, size);
	if (!window_map) {
		release_resource(&window);
		return -ENOMEM;
	}
	nv_start(window_map + size - PAGE_SIZE);
	for (card = 1; card <= CARD_MAX_PFS; card++) {
		struct root *root = kzalloc(sizeof(*root), GFP_KERNEL);

		if (!root)
			return -ENOMEM;
		err = populate(root, card);
		if (err == -ENOENT) {
			kfree(root);
			continue;
		}
		roots[card] = root;
		if (err)
			return err;
	}
	account_start();
	err = firmware_start();
	if (err)
		return err;
	for (card = 1; card <= CARD_MAX_PFS; card++) {
		err = roots[card] ? scan(roots[card], card) : 0;
		if (err)
			return err;
	}
	return 0;
}

/* Also after a start that went half-way. */
void bus_stop(void)
{
	unsigned int card, i;

	for (card = 1; card <= CARD_MAX_PFS; card++) {
		if (!roots[card] || !roots[card]->bus)
			continue;
		pci_lock_rescan_remove();
		pci_stop_root_bus(roots[card]->bus);
		pci_remove_root_bus(roots[card]->bus);
		pci_unlock_rescan_remove();
	}
	firmware_stop();
	account_stop();
	for (card = 1; card <= CARD_MAX_PFS; card++) {
		for (i = 0; roots[card] && i < 256; i++)
			if (roots[card]->fn[i])
				firmware_drop_state(roots[card]->fn[i]);
		for (i = 0; roots[card] && i < 256; i++)
			if (roots[card]->fn[i] && roots[card]->fn[i]->is_vf)
				unmake(roots[card]->fn[i]);
		kfree(roots[card]);
		roots[card] = NULL;
	}
	for (i = 0; i < card_pfs; i++) {
		kfree(card_pf[i]->vfs);
		unmake(card_pf[i]);
	}
	card_pfs = 0;
	if (window_map) {
		iounmap(window_map);
		release_resource(&window);
		window_map = NULL;
	}
}
