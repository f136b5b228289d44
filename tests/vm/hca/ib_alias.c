// SPDX-License-Identifier: GPL-2.0-only
/*
 * mlx4's alias GUIDs, below the RDMA device of a PF:
 *
 *   iov/ports/<P>/{admin_guids,gids}/<I>	for each port of the PF
 *   iov/<ADDRESS>/ports/<P>/gid_idx/0		for each port that a function has
 *
 * Entry 0 is the PF's, entry I that of VF I - 1.  What is written is a request
 * to the SM; gids shows what it granted.  With guid_write=drop it grants
 * nothing, and of a port without link it is not asked.
 */
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include "ib.h"

/* What an SM gives by itself (OUI 00:14:05). */
#define SIM_SM_GUID 0x0014050000000000ULL

struct alias_entry {
	struct kobj_attribute admin;
	struct kobj_attribute gid;
	struct sim_func *func;
	unsigned int port;
	int index;
	char name[8];
};

/* What a function has: the same for each of its ports. */
struct alias_func {
	struct kobj_attribute gid_idx;
	int index;
};

/* Directories are put in the reverse of the order in which they were made. */
struct sim_alias {
	struct kobject **dirs;
	int ndirs, size;
	struct alias_func *funcs;
	struct alias_entry entries[];
};

static int ask(struct alias_entry *e, struct sim_vf *vf)
{
	return e->index ? sim_vf_query(e->func, e->index - 1, vf) : -EINVAL;
}

static ssize_t admin_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	struct alias_entry *e = container_of(attr, struct alias_entry, admin);
	struct sim_vf vf;

	if (ask(e, &vf))
		return sysfs_emit(buf, "0\n");
	return sysfs_emit(buf, "%llx\n", vf.cache.port_guid[e->port - 1]);
}

static ssize_t admin_store(struct kobject *kobj, struct kobj_attribute *attr,
			   const char *buf, size_t len)
{
	struct alias_entry *e = container_of(attr, struct alias_entry, admin);
	u64 guid = 0;
	int err;

	sim_count(e->func, SIM_C_sysfs_write);
	/* As in mlx4, what cannot be read is not reported. */
	if (!e->index || sscanf(buf, "%llx", &guid) != 1)
		return len;
	if (!guid)
		guid = SIM_SM_GUID + ((e->port - 1) << 8) + e->index;
	err = sim_vf_set_guid(e->func, e->index - 1, e->port, guid, false);
	return err ?: len;
}

static ssize_t gid_show(struct kobject *kobj, struct kobj_attribute *attr,
			char *buf)
{
	struct alias_entry *e = container_of(attr, struct alias_entry, gid);
	struct sim_vf vf;
	u64 guid;

	if (ask(e, &vf))
		guid = e->func->port_guid[e->port - 1];
	else if (sim_link(e->func, e->port))
		guid = vf.fw.port_guid[e->port - 1];
	else
		guid = 0;
	return sysfs_emit(buf, "fe80:0000:0000:0000:%04x:%04x:%04x:%04x\n",
			  (u16)(guid >> 48), (u16)(guid >> 32),
			  (u16)(guid >> 16), (u16)guid);
}

static ssize_t gid_idx_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%d\n",
			  container_of(attr, struct alias_func, gid_idx)->index);
}

static struct kobject *dir(struct sim_alias *a, const char *name,
			   struct kobject *parent)
{
	struct kobject *made = NULL;

	if (parent && a->ndirs < a->size)
		made = kobject_create_and_add(name, parent);
	if (made)
		a->dirs[a->ndirs++] = made;
	return made;
}

static void attribute(struct kobj_attribute *attr, const char *name, int mode)
{
	sysfs_attr_init(&attr->attr);
	attr->attr.name = name;
	attr->attr.mode = mode;
}

static int add_port(struct sim_alias *a, struct sim_func *f, unsigned int port,
		    struct kobject *ports)
{
	struct alias_entry *e = &a->entries[(port - 1) * (f->num_vfs + 1)];
	struct kobject *own, *admin_guids, *gids;
	char name[8];
	int i, err = 0;

	snprintf(name, sizeof(name), "%u", port);
	own = dir(a, name, ports);
	admin_guids = dir(a, "admin_guids", own);
	gids = dir(a, "gids", own);
	if (!admin_guids || !gids)
		return -ENOMEM;
	for (i = 0; !err && i <= f->num_vfs; i++, e++) {
		e->func = f;
		e->port = port;
		e->index = i;
		snprintf(e->name, sizeof(e->name), "%d", i);
		attribute(&e->admin, e->name, 0644);
		e->admin.show = admin_show;
		e->admin.store = admin_store;
		attribute(&e->gid, e->name, 0444);
		e->gid.show = gid_show;
		err = sysfs_create_file(admin_guids, &e->admin.attr);
		if (!err)
			err = sysfs_create_file(gids, &e->gid.attr);
	}
	return err;
}

/* As mlx4 names it: by the PF's bus, and the number of the function. */
static int add_func(struct sim_alias *a, struct sim_func *f, int index,
		    struct kobject *iov)
{
	struct alias_func *func = &a->funcs[index];
	unsigned int first = 1, n = f->nports;
	struct kobject *ports;
	char name[32];
	int err = 0;

	func->index = index;
	attribute(&func->gid_idx, "0", 0444);
	func->gid_idx.show = gid_idx_show;
	snprintf(name, sizeof(name), "%.8s%.2d.%d", pci_name(f->pdev),
		 index / 8, index % 8);
	if (index)
		n = sim_vf_ports(f, index - 1, &first);
	ports = dir(a, "ports", dir(a, name, iov));
	for (; !err && n; n--, first++) {
		struct kobject *gid_idx;

		snprintf(name, sizeof(name), "%u", first);
		gid_idx = dir(a, "gid_idx", dir(a, name, ports));
		err = gid_idx ? sysfs_create_file(gid_idx, &func->gid_idx.attr) :
				-ENOMEM;
	}
	return err;
}

static void alias_free(struct sim_alias *a)
{
	/* Removing a directory removes the files in it. */
	while (a->ndirs)
		kobject_put(a->dirs[--a->ndirs]);
	kfree(a->dirs);
	kfree(a->funcs);
	kfree(a);
}

void sim_alias_del(struct sim_ib *ib)
{
	struct sim_alias *a = ib->alias;

	ib->alias = NULL;
	if (a)
		alias_free(a);
}

int sim_alias_add(struct sim_ib *ib)
{
	struct sim_func *f = ib->func;
	struct kobject *iov, *ports;
	struct sim_alias *a;
	unsigned int port;
	int i, n, err;

	if (f->is_vf || !f->num_vfs)
		return 0;
	n = f->num_vfs + 1;
	a = kzalloc(struct_size(a, entries, n * f->nports), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	a->size = 2 + 3 * f->nports + n * (2 + 2 * f->nports);
	a->dirs = kcalloc(a->size, sizeof(*a->dirs), GFP_KERNEL);
	a->funcs = kcalloc(n, sizeof(*a->funcs), GFP_KERNEL);
	err = a->dirs && a->funcs ? 0 : -ENOMEM;
	iov = err ? NULL : dir(a, "iov", &ib->ibdev.dev.kobj);
	ports = err ? NULL : dir(a, "ports", iov);
	for (port = 1; !err && port <= f->nports; port++)
		err = add_port(a, f, port, ports);
	for (i = 0; !err && i < n; i++)
		err = add_func(a, f, i, iov);
	if (err)
		alias_free(a);
	else
		ib->alias = a;
	return err;
}
