// SPDX-License-Identifier: GPL-2.0-only
/*
 * The PCI half of the simulated HCA.  Like the real mlx5_core it knows
 * nothing of ib_core: it binds PCI functions, waits for "firmware", and offers
 * each to the RDMA half (core_bind.c).
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "sim.h"

/* ConnectX node GUIDs, as the first five bytes of Mellanox's own range. */
#define GUID_BASE 0x98039b0300000000ULL

/* The part of a probe in which real firmware takes one function at a time. */
#define SERIAL_MS 10

static LIST_HEAD(funcs);
static DEFINE_MUTEX(funcs_lock);

static unsigned int init_delay_ms;
module_param(init_delay_ms, uint, 0400);
MODULE_PARM_DESC(init_delay_ms, "sleep uninterruptibly while loading");

#ifdef SIM_MLX4
/* ConnectX-3 makes its VFs when the PF is probed, and never else. */
/* One number; or those of port 1 alone, of port 2 alone, and of both. */
static int num_vfs[3], num_vfs_argc;
module_param_array(num_vfs, int, &num_vfs_argc, 0444);
MODULE_PARM_DESC(num_vfs, "VFs of each PF");
static int probe_vf[3], probe_vf_argc;
module_param_array(probe_vf, int, &probe_vf_argc, 0444);
MODULE_PARM_DESC(probe_vf, "so many of them are driven here");

static int of_kind(const int *numbers, int argc, int kind)
{
	if (argc != 1)
		return numbers[kind];
	return kind == 2 ? numbers[0] : 0;
}

static int all_vfs(void)
{
	return num_vfs[0] + num_vfs[1] + num_vfs[2];
}

/* Which kind of VF it is, and its PLACE among those. */
static int kind_of(int vf, int *place)
{
	int kind, n;

	for (kind = 0; kind < 2; kind++) {
		n = of_kind(num_vfs, num_vfs_argc, kind);
		if (vf < n)
			break;
		vf -= n;
	}
	*place = vf;
	return kind;
}

static bool is_probed(int vf)
{
	int place, kind = kind_of(vf, &place);

	return place < of_kind(probe_vf, probe_vf_argc, kind);
}
#endif

static int set_param(const char *text, const struct kernel_param *kp)
{
	int err = sim_knobs_add(text);

	/* The module will not load, so nobody else would free them. */
	if (err)
		sim_knobs_free();
	return err;
}

static const struct kernel_param_ops set_ops = { .set = set_param };
module_param_cb(set, &set_ops, NULL, 0);
MODULE_PARM_DESC(set, "WHO/KNOB=VALUE[,...], may be repeated");

unsigned int sim_vf_ports(struct sim_func *pf, int vf, unsigned int *first)
{
#ifdef SIM_MLX4
	int place, kind = kind_of(vf, &place);

	*first = kind == 1 ? 2 : 1;
	return kind == 2 ? pf->nports : 1;
#else
	*first = 1;
	return 1;
#endif
}
EXPORT_SYMBOL_GPL(sim_vf_ports);

bool sim_link(struct sim_func *f, unsigned int port)
{
	char value[SIM_VALUE_LEN];

	return !sim_knob_port(f->pdev, "link", port, value) ||
	       strcmp(value, "down");
}
EXPORT_SYMBOL_GPL(sim_link);

bool sim_port_is_eth(struct sim_func *f, unsigned int port)
{
	char value[SIM_VALUE_LEN];

	return sim_knob_port(f->pdev, "link_layer", port, value) &&
	       !strcasecmp(value, "eth");
}
EXPORT_SYMBOL_GPL(sim_port_is_eth);

/* The RDMA half hangs its "ports may have changed" hook in here. */
void sim_set_event(struct sim_func *f, void (*event)(void *ctx), void *ctx)
{
	mutex_lock(&f->event_lock);
	f->event = event;
	f->event_ctx = ctx;
	mutex_unlock(&f->event_lock);
}
EXPORT_SYMBOL_GPL(sim_set_event);

void sim_event(struct sim_func *f)
{
	mutex_lock(&f->event_lock);
	if (f->event)
		f->event(f->event_ctx);
	mutex_unlock(&f->event_lock);
}

/* A PF and the VFs that may follow its link. */
void sim_event_family(struct sim_func *pf)
{
	struct sim_func *f;

	mutex_lock(&funcs_lock);
	list_for_each_entry(f, &funcs, node)
		if (f == pf || f->pf == pf)
			sim_event(f);
	mutex_unlock(&funcs_lock);
}

void sim_event_all(void)
{
	struct sim_func *f;

	mutex_lock(&funcs_lock);
	list_for_each_entry(f, &funcs, node)
		sim_event(f);
	mutex_unlock(&funcs_lock);
}

static u64 default_guid(struct pci_dev *pdev)
{
	return GUID_BASE | (u64)(pci_domain_nr(pdev->bus) & 0xff) << 24 |
	       pdev->bus->number << 16 | pdev->devfn << 8;
}

static void read_identity(struct sim_func *f)
{
	unsigned int port;

	f->first_port = 1;
	f->nports = f->is_vf ? 1 : sim_knob_u64(f->pdev, "ports", 1);
	f->nports = clamp(f->nports, 1U, (unsigned int)SIM_MAX_PORTS);
	if (f->pf) {
		f->nports = sim_vf_ports(f->pf, f->vf_index, &f->first_port);
		sim_vf_latch(f);
		return;
	}
	f->node_guid = sim_knob_u64(f->pdev, "node_guid",
				    default_guid(f->pdev));
	for (port = 1; port <= f->nports; port++) {
		char knob[16];

		snprintf(knob, sizeof(knob), "port%u_guid", port);
		f->port_guid[port - 1] = sim_knob_u64(f->pdev, knob,
						      f->node_guid + port);
	}
}

static int injected_failure(struct sim_func *f)
{
	int err = sim_knob_errno(f->pdev, "probe_errno");
	long nth = sim_knob_u64(f->pdev, "probe_fail_nth", 0);

	if (nth && atomic_long_read(&f->slot->counter[SIM_C_probe]) != nth)
		return 0;
	if (nth && !err)
		err = EIO;
	return -err;
}

#if SIM_OLDER
static int vf_number(struct pci_dev *vf)
{
	struct pci_dev *pf = vf->physfn;
	int at = pci_find_ext_capability(pf, PCI_EXT_CAP_ID_SRIOV);
	u16 offset, stride;

	pci_read_config_word(pf, at + PCI_SRIOV_VF_OFFSET, &offset);
	pci_read_config_word(pf, at + PCI_SRIOV_VF_STRIDE, &stride);
	return (pci_dev_id(vf) - pci_dev_id(pf) - offset) / (stride ?: 1);
}
#else
#define vf_number pci_iov_vf_id
#endif

static struct sim_func *func_new(struct pci_dev *pdev)
{
	struct sim_func *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return NULL;
	f->slot = sim_slot_get(pdev);
	if (!f->slot) {
		kfree(f);
		return NULL;
	}
	f->pdev = pdev;
	/* A passed-through VF is a VF by device number, without a PF here. */
	f->is_vf = pdev->is_virtfn || pdev->device == 0x101c ||
		   pdev->device == 0x1004;
	if (pdev->is_virtfn && pdev->physfn->driver == &sim_pci_driver) {
		f->pf = pci_get_drvdata(pdev->physfn);
		f->vf_index = vf_number(pdev);
	}
	mutex_init(&f->serial_lock);
	mutex_init(&f->enable_lock);
	mutex_init(&f->sriov_lock);
	mutex_init(&f->event_lock);
	return f;
}

static int sim_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct sim_func *f = func_new(pdev);
	int err;

	if (!f)
		return -ENOMEM;
	sim_count(f, SIM_C_probe);
#ifdef SIM_MLX4
	if (pdev->is_virtfn && !is_probed(f->vf_index)) {
		pci_info(pdev, "Skipping virtual function:%d\n", f->vf_index);
		err = -ENODEV;
		goto fail;
	}
#endif
	err = pci_enable_device(pdev);
	if (err)
		goto fail;
	/* As a real firmware's, this wait does not answer to signals. */
	msleep(sim_knob_u64(pdev, "probe_delay_ms", 0));
	mutex_lock(f->pf ? &f->pf->serial_lock : &f->serial_lock);
	msleep(sim_knob_u64(pdev, "probe_serial_ms", SERIAL_MS));
	mutex_unlock(f->pf ? &f->pf->serial_lock : &f->serial_lock);
	err = injected_failure(f);
	if (err) {
		pci_err(pdev, "probe_one:1694:(pid %d): mlx5_init_one failed with error code %d\n",
			task_pid_nr(current), err);
		goto disable;
	}
	read_identity(f);
	pci_set_drvdata(pdev, f);
	err = sim_sriov_init(f);
	if (err)
		goto disable;
	mutex_lock(&funcs_lock);
	list_add_tail(&f->node, &funcs);
	mutex_unlock(&funcs_lock);

#ifdef SIM_MLX4
	if (!f->is_vf && f->total_vfs && all_vfs()) {
		err = sim_sriov_set(f, min(all_vfs(), f->total_vfs));
		if (err < 0)
			pci_err(pdev, "Failed to enable SR-IOV, continuing without SR-IOV (err = %d)\n",
				err);
	}
#endif

	/* As in mlx5, trouble with the RDMA half does not fail the probe. */
	err = sim_rdma_add(f);
	if (err)
		pci_err(pdev, "RDMA half: error %d\n", err);
#ifdef SIM_MLX4
	if (sim_types_init(f))
		pci_err(pdev, "no port types in sysfs\n");
#endif
	return 0;
disable:
	pci_set_drvdata(pdev, NULL);
	pci_disable_device(pdev);
fail:
	sim_count(f, SIM_C_probe_failed);
	kfree(f);
	return err;
}

static void sim_remove(struct pci_dev *pdev)
{
	struct sim_func *f = pci_get_drvdata(pdev);

	sim_count(f, SIM_C_remove);
#ifdef SIM_MLX4
	sim_types_exit(f);
#endif
	sim_rdma_del(f);
	sim_sriov_exit(f);
	mutex_lock(&funcs_lock);
	list_del(&f->node);
	mutex_unlock(&funcs_lock);
	pci_set_drvdata(pdev, NULL);
	pci_disable_device(pdev);
	kfree(f);
}

static const struct pci_device_id ids[] = {
#ifdef SIM_MLX4
	{ PCI_VDEVICE(MELLANOX, 0x1003) },	/* ConnectX-3 */
	{ PCI_VDEVICE(MELLANOX, 0x1004) },	/* its VFs */
	{ PCI_VDEVICE(MELLANOX, 0x1007) },	/* ConnectX-3 Pro */
#else
	{ PCI_VDEVICE(MELLANOX, 0x1011) },	/* Connect-IB */
	{ PCI_VDEVICE(MELLANOX, 0x1013) },	/* ConnectX-4 */
	{ PCI_VDEVICE(MELLANOX, 0x1014) },
	{ PCI_VDEVICE(MELLANOX, 0x1017) },	/* ConnectX-5 */
	{ PCI_VDEVICE(MELLANOX, 0x1018) },
	{ PCI_VDEVICE(MELLANOX, 0x101b) },	/* ConnectX-6 */
	{ PCI_VDEVICE(MELLANOX, 0x101c) },
	{ PCI_VDEVICE(MELLANOX, 0x1021) },	/* ConnectX-7 */
#endif
	{ }
};
MODULE_DEVICE_TABLE(pci, ids);

struct pci_driver sim_pci_driver = {
	.name = SIM_CORE,
	.id_table = ids,
	.probe = sim_probe,
	.remove = sim_remove,
#ifndef SIM_MLX4
	.sriov_configure = sim_sriov_configure,
#endif
};

static int __init sim_core_init(void)
{
	int err;

	if (init_delay_ms)
		msleep(init_delay_ms);
	sim_slots_init();
	err = pci_register_driver(&sim_pci_driver);
	if (err) {
		sim_slots_free();
		sim_knobs_free();
	}
	return err;
}

static void __exit sim_core_exit(void)
{
	pci_unregister_driver(&sim_pci_driver);
	sim_slots_free();
	sim_knobs_free();
}

module_init(sim_core_init);
module_exit(sim_core_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated HCA, PCI half (" SIM_CORE ")");
