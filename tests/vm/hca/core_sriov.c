// SPDX-License-Identifier: GPL-2.0-only
/*
 * SR-IOV as firmware and PF driver keep it: GUIDs are zero and policy Down
 * until set; a VF's firmware values go with the VF, the PF driver's copy is
 * written back when VFs are enabled again, and goes with the PF driver.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "sim.h"

/* What setting a GUID answers when a test asked it to go wrong. */
static int injected(struct sim_func *pf, bool *drop)
{
	char value[SIM_VALUE_LEN];

	*drop = false;
	if (!sim_knob_str(pf->pdev, "guid_write", value) || !strcmp(value, "ok"))
		return 0;
	*drop = !strcmp(value, "drop");
	return *drop ? 0 : -sim_knob_errno(pf->pdev, "guid_write");
}

static struct sim_vf *vf_of(struct sim_func *pf, int vf)
{
	if (vf < 0 || vf >= pf->total_vfs || !pf->vfs[vf].enabled)
		return NULL;
	return &pf->vfs[vf];
}

int sim_vf_set_guid(struct sim_func *pf, int index, unsigned int port, u64 guid,
		    bool from_netlink)
{
	struct sim_vf *vf;
	bool drop;
	int err;

	sim_fw_cmd(pf, port ? SIM_C_set_port_guid : SIM_C_set_node_guid);
	mutex_lock(&pf->sriov_lock);
	vf = vf_of(pf, index);
	err = vf ? injected(pf, &drop) : -EINVAL;
	if (err)
		goto out;
	/* The driver believes the firmware's OK, dropped or not. */
	if (!port) {
		vf->cache.node_guid = guid;
		vf->node_valid |= from_netlink;
		if (!drop)
			vf->fw.node_guid = guid;
	} else {
		vf->cache.port_guid[port - 1] = guid;
		vf->port_valid |= from_netlink;
		if (!drop)
			vf->fw.port_guid[port - 1] = guid;
	}
out:
	mutex_unlock(&pf->sriov_lock);
	return err;
}
EXPORT_SYMBOL_GPL(sim_vf_set_guid);

int sim_vf_set_policy(struct sim_func *pf, int index, enum sim_policy policy)
{
	struct sim_vf *vf;
	int err;

	sim_fw_cmd(pf, SIM_C_set_policy);
	mutex_lock(&pf->sriov_lock);
	vf = vf_of(pf, index);
	err = vf ? 0 : -EINVAL;
	if (!err) {
		vf->cache.policy = policy;
		vf->fw.policy = policy;
	}
	mutex_unlock(&pf->sriov_lock);
	if (!err)
		sim_event_family(pf);
	return err;
}
EXPORT_SYMBOL_GPL(sim_vf_set_policy);

int sim_vf_query(struct sim_func *pf, int index, struct sim_vf *out)
{
	struct sim_vf *vf;

	sim_fw_cmd(pf, SIM_C_query_vf);
	sim_silence(pf, "vf_query_ms");
	mutex_lock(&pf->sriov_lock);
	vf = vf_of(pf, index);
	if (vf) {
		out->fw = vf->fw;
		out->cache = vf->cache;
		out->node_valid = vf->node_valid;
		out->port_valid = vf->port_valid;
	}
	mutex_unlock(&pf->sriov_lock);
	return vf ? 0 : -EINVAL;
}
EXPORT_SYMBOL_GPL(sim_vf_query);

/*
 * The policy in force for a VF's own port.  Read without the lock: a port
 * that changes at this moment is looked at again by the event that follows.
 */
enum sim_policy sim_vf_own_policy(struct sim_func *f)
{
	if (!f->pf)
		return SIM_POLICY_FOLLOW;
	return READ_ONCE(f->pf->vfs[f->vf_index].fw.policy);
}
EXPORT_SYMBOL_GPL(sim_vf_own_policy);

/* A VF reads its GUIDs once, when its driver starts. */
void sim_vf_latch(struct sim_func *f)
{
	struct sim_vf_values *fw = &f->pf->vfs[f->vf_index].fw;
	char value[SIM_VALUE_LEN];
	unsigned int i, port;

	if (sim_knob_str(f->pdev, "latch", value) && !strcmp(value, "stale")) {
		f->node_guid = f->slot->last_node_guid;
		memcpy(f->port_guid, f->slot->last_port_guid,
		       sizeof(f->port_guid));
		return;
	}
	/* Not under sriov_lock: enabling VFs probes them while holding it. */
	f->node_guid = READ_ONCE(fw->node_guid);
	for (i = 0; i < f->nports; i++) {
		port = f->first_port + i;
		f->port_guid[i] = READ_ONCE(fw->port_guid[port - 1]);
#ifdef SIM_MLX4
		/* No SM was asked. */
		if (!sim_link(f->pf, port))
			f->port_guid[i] = 0;
#endif
	}
	f->slot->last_node_guid = f->node_guid;
	memcpy(f->slot->last_port_guid, f->port_guid, sizeof(f->port_guid));
}

static void enable_hca(struct sim_func *f, int num)
{
	int i;

	mutex_lock(&f->sriov_lock);
	for (i = 0; i < num; i++) {
		f->vfs[i].fw = f->vfs[i].cache;
		f->vfs[i].enabled = true;
	}
	f->num_vfs = num;
	mutex_unlock(&f->sriov_lock);
}

static void disable_hca(struct sim_func *f)
{
	static const struct sim_vf_values none;
	int i;

	mutex_lock(&f->sriov_lock);
	for (i = 0; i < f->total_vfs; i++) {
		f->vfs[i].enabled = false;
		f->vfs[i].fw = none;
	}
	f->num_vfs = 0;
	mutex_unlock(&f->sriov_lock);
}

static void sriov_off(struct sim_func *f)
{
	pci_disable_sriov(f->pdev);
	sim_ofed_del_vfs(f);
	disable_hca(f);
}

static int sriov_set(struct sim_func *f, int num)
{
	int err;

	if (!num) {
		sriov_off(f);
		return 0;
	}
	err = -sim_knob_errno(f->pdev, "sriov_errno");
	if (err)
		return err;
	if (num < 0 || num > f->total_vfs)
		return -EINVAL;
	if (pci_num_vf(f->pdev))
		return -EBUSY;
	/* Before the VFs exist, so that their first probe sees the GUIDs. */
	enable_hca(f, num);
	err = sim_ofed_add_vfs(f, num);
	if (!err)
		err = pci_enable_sriov(f->pdev, num);
	if (err) {
		sim_ofed_del_vfs(f);
		disable_hca(f);
		return err;
	}
	return num;
}

/* OFED's own file does not take the PCI core's lock, hence ours. */
int sim_sriov_set(struct sim_func *f, int num)
{
	int ret;

	sim_fw_cmd(f, SIM_C_sriov_configure);
	mutex_lock(&f->enable_lock);
	ret = sriov_set(f, num);
	mutex_unlock(&f->enable_lock);
	return ret;
}

int sim_sriov_configure(struct pci_dev *pdev, int num)
{
	return sim_sriov_set(pci_get_drvdata(pdev), num);
}

int sim_sriov_init(struct sim_func *f)
{
	int err, i;

	if (f->is_vf)
		return 0;
	f->total_vfs = pci_sriov_get_totalvfs(f->pdev);
	if (f->total_vfs <= 0) {
		f->total_vfs = 0;
		return 0;
	}
	f->vfs = kcalloc(f->total_vfs, sizeof(*f->vfs), GFP_KERNEL);
	if (!f->vfs)
		return -ENOMEM;
	for (i = 0; i < f->total_vfs; i++) {
		f->vfs[i].pf = f;
		f->vfs[i].index = i;
#ifdef SIM_MLX4
		/* What the SM gives by itself; the link is the PF's. */
		f->vfs[i].cache.port_guid[0] = 0x0014050000000000ULL + i + 1;
		f->vfs[i].cache.port_guid[1] = 0x0014050000000100ULL + i + 1;
		f->vfs[i].cache.policy = SIM_POLICY_FOLLOW;
#endif
	}
	err = sim_ofed_init(f);
	if (err)
		kfree(f->vfs);
	return err;
}

void sim_sriov_exit(struct sim_func *f)
{
	if (!f->vfs)
		return;
	sim_ofed_close(f);
	if (pci_num_vf(f->pdev))
		sriov_off(f);
	sim_ofed_exit(f);
	kfree(f->vfs);
}
