// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sysfs files that OFED's mlx5_core adds and mainline has not:
 *   <PF>/mlx5_num_vfs, <PF>/sriov/<N>/{node,port,policy}
 * with their lax parsing and their error numbers.  The knob ofed=0 leaves
 * them out.  mlx4 has none of these.
 */
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include "sim.h"

struct vf_attr {
	struct attribute attr;
	ssize_t (*show)(struct sim_vf *vf, char *buf);
	ssize_t (*store)(struct sim_vf *vf, const char *buf, size_t len);
};

static ssize_t guid_show(struct sim_vf *vf, char *buf, bool node)
{
	struct sim_vf now;
	u64 guid;
	u8 b[8];
	int err;

	err = sim_vf_query(vf->pf, vf->index, &now);
	if (err)
		return err;
	guid = node ? now.fw.node_guid : now.fw.port_guid[0];
	*(__be64 *)b = cpu_to_be64(guid);
	return sysfs_emit(buf, "%8phC\n", b);
}

/* Eight hexadecimal fields and whatever else, as OFED's sscanf has it. */
static ssize_t guid_store(struct sim_vf *vf, const char *buf, size_t len,
			  bool node)
{
	unsigned int b[8];
	u64 guid = 0;
	int i, err;

	sim_count(vf->pf, SIM_C_sysfs_write);
	if (sscanf(buf, "%02x:%02x:%02x:%02x:%02x:%02x:%02x:%02x", &b[0], &b[1],
		   &b[2], &b[3], &b[4], &b[5], &b[6], &b[7]) != 8)
		return -EINVAL;
	for (i = 0; i < 8; i++)
		guid = guid << 8 | (b[i] & 0xff);
	err = sim_vf_set_guid(vf->pf, vf->index, !node, guid, false);
	return err ?: len;
}

static ssize_t node_show(struct sim_vf *vf, char *buf)
{
	return guid_show(vf, buf, true);
}

static ssize_t node_store(struct sim_vf *vf, const char *buf, size_t len)
{
	return guid_store(vf, buf, len, true);
}

static ssize_t port_show(struct sim_vf *vf, char *buf)
{
	return guid_show(vf, buf, false);
}

static ssize_t port_store(struct sim_vf *vf, const char *buf, size_t len)
{
	return guid_store(vf, buf, len, false);
}

static const char * const policies[] = { "Down", "Up", "Follow" };

static ssize_t policy_show(struct sim_vf *vf, char *buf)
{
	struct sim_vf now;
	int err;

	err = sim_vf_query(vf->pf, vf->index, &now);
	if (err)
		return err;
	return sysfs_emit(buf, "%s\n", policies[now.fw.policy]);
}

static ssize_t policy_store(struct sim_vf *vf, const char *buf, size_t len)
{
	int policy, err;

	sim_count(vf->pf, SIM_C_sysfs_write);
	policy = sysfs_match_string(policies, buf);
	if (policy < 0)
		return -EINVAL;
	err = sim_vf_set_policy(vf->pf, vf->index, policy);
	return err ?: len;
}

#define VF_ATTR(name) \
	static struct vf_attr name##_attr = __ATTR(name, 0644, name##_show, \
						   name##_store)
VF_ATTR(node);
VF_ATTR(port);
VF_ATTR(policy);

static struct attribute *vf_attrs[] = {
	&node_attr.attr, &port_attr.attr, &policy_attr.attr, NULL,
};
ATTRIBUTE_GROUPS(vf);

static ssize_t vf_attr_show(struct kobject *kobj, struct attribute *attr,
			    char *buf)
{
	return container_of(attr, struct vf_attr, attr)
		->show(container_of(kobj, struct sim_vf, kobj), buf);
}

static ssize_t vf_attr_store(struct kobject *kobj, struct attribute *attr,
			     const char *buf, size_t len)
{
	return container_of(attr, struct vf_attr, attr)
		->store(container_of(kobj, struct sim_vf, kobj), buf, len);
}

static const struct sysfs_ops vf_sysfs_ops = {
	.show = vf_attr_show,
	.store = vf_attr_store,
};

/* The memory belongs to the PF's array; kobject_del drains all users. */
static void vf_release(struct kobject *kobj)
{
}

static struct kobj_type vf_type = {
	.release = vf_release,
	.sysfs_ops = &vf_sysfs_ops,
	.default_groups = vf_groups,
};

static ssize_t mlx5_num_vfs_show(struct device *dev,
				 struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", pci_num_vf(to_pci_dev(dev)));
}

static ssize_t mlx5_num_vfs_store(struct device *dev,
				  struct device_attribute *attr,
				  const char *buf, size_t len)
{
	struct pci_dev *pdev = to_pci_dev(dev);
	struct sim_func *f = pci_get_drvdata(pdev);
	int num, now = pci_num_vf(pdev), ret;

	sim_count(f, SIM_C_sysfs_write);
	if (kstrtoint(buf, 0, &num))
		return -EINVAL;
	if (num > f->total_vfs)
		return -ERANGE;
	if (num == now)
		return len;
	if (num && now)
		return -EBUSY;
	ret = sim_sriov_set(f, num);
	return ret < 0 ? ret : len;
}
static DEVICE_ATTR(mlx5_num_vfs, 0600, mlx5_num_vfs_show, mlx5_num_vfs_store);

int sim_ofed_init(struct sim_func *f)
{
	int err;

	f->ofed = !strcmp(SIM_FAMILY, "mlx5") &&
		  sim_knob_u64(f->pdev, "ofed", 1) && !sim_port_is_eth(f, 1);
	if (!f->ofed)
		return 0;
	f->sriov_kobj = kobject_create_and_add("sriov", &f->pdev->dev.kobj);
	if (!f->sriov_kobj)
		return -ENOMEM;
	err = device_create_file(&f->pdev->dev, &dev_attr_mlx5_num_vfs);
	if (err)
		kobject_put(f->sriov_kobj);
	return err;
}

/* After this nobody can enable VFs by our file any more. */
void sim_ofed_close(struct sim_func *f)
{
	if (f->ofed)
		device_remove_file(&f->pdev->dev, &dev_attr_mlx5_num_vfs);
}

void sim_ofed_exit(struct sim_func *f)
{
	if (f->ofed)
		kobject_put(f->sriov_kobj);
}

int sim_ofed_add_vfs(struct sim_func *f, int num)
{
	int i, err;

	if (!f->ofed)
		return 0;
	for (i = 0; i < num; i++) {
		struct kobject *kobj = &f->vfs[i].kobj;

		memset(kobj, 0, sizeof(*kobj));
		err = kobject_init_and_add(kobj, &vf_type, f->sriov_kobj, "%d",
					   i);
		if (err) {
			kobject_put(kobj);
			return err;
		}
		f->vfs[i].kobj_live = true;
		kobject_uevent(kobj, KOBJ_ADD);
	}
	return 0;
}

void sim_ofed_del_vfs(struct sim_func *f)
{
	int i;

	for (i = 0; i < f->total_vfs; i++) {
		if (!f->vfs[i].kobj_live)
			continue;
		f->vfs[i].kobj_live = false;
		kobject_del(&f->vfs[i].kobj);
		kobject_put(&f->vfs[i].kobj);
	}
}
