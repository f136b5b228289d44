// SPDX-License-Identifier: GPL-2.0-only
/*
 * mlx4's alias GUIDs: below the RDMA device of a PF, iov/ports/1/
 * {admin_guids,gids}/<I>.  Entry 0 is the PF's, entry I that of VF I - 1.
 * What is written is a request to the SM; gids shows what it granted.  With
 * guid_write=drop it grants nothing.
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
	int index;
	char name[8];
};

struct sim_alias {
	struct kobject *iov, *ports, *port, *admin_guids, *gids;
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
	return sysfs_emit(buf, "%llx\n", vf.cache.port_guid);
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
		guid = SIM_SM_GUID + e->index;
	err = sim_vf_set_guid(e->func, e->index - 1, false, guid, false);
	return err ?: len;
}

static ssize_t gid_show(struct kobject *kobj, struct kobj_attribute *attr,
			char *buf)
{
	struct alias_entry *e = container_of(attr, struct alias_entry, gid);
	struct sim_vf vf;
	u64 guid;

	if (ask(e, &vf))
		guid = e->func->port_guid[0];
	else
		guid = vf.fw.port_guid;
	return sysfs_emit(buf, "fe80:0000:0000:0000:%04x:%04x:%04x:%04x\n",
			  (u16)(guid >> 48), (u16)(guid >> 32),
			  (u16)(guid >> 16), (u16)guid);
}

static int add_entry(struct sim_alias *a, struct sim_func *f, int index)
{
	struct alias_entry *e = &a->entries[index];
	int err;

	e->func = f;
	e->index = index;
	snprintf(e->name, sizeof(e->name), "%d", index);
	sysfs_attr_init(&e->admin.attr);
	e->admin.attr.name = e->name;
	e->admin.attr.mode = 0644;
	e->admin.show = admin_show;
	e->admin.store = admin_store;
	sysfs_attr_init(&e->gid.attr);
	e->gid.attr.name = e->name;
	e->gid.attr.mode = 0444;
	e->gid.show = gid_show;
	err = sysfs_create_file(a->admin_guids, &e->admin.attr);
	return err ?: sysfs_create_file(a->gids, &e->gid.attr);
}

static void put(struct kobject *kobj)
{
	if (kobj)
		kobject_put(kobj);
}

/* Removing a directory removes the files in it. */
void sim_alias_del(struct sim_ib *ib)
{
	struct sim_alias *a = ib->alias;

	if (!a)
		return;
	ib->alias = NULL;
	put(a->gids);
	put(a->admin_guids);
	put(a->port);
	put(a->ports);
	put(a->iov);
	kfree(a);
}

int sim_alias_add(struct sim_ib *ib)
{
	struct sim_func *f = ib->func;
	struct sim_alias *a;
	int i, err = 0;

	if (f->is_vf || !f->num_vfs)
		return 0;
	a = kzalloc(struct_size(a, entries, f->num_vfs + 1), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	ib->alias = a;
	a->iov = kobject_create_and_add("iov", &ib->ibdev.dev.kobj);
	if (a->iov)
		a->ports = kobject_create_and_add("ports", a->iov);
	if (a->ports)
		a->port = kobject_create_and_add("1", a->ports);
	if (a->port)
		a->admin_guids = kobject_create_and_add("admin_guids", a->port);
	if (a->admin_guids)
		a->gids = kobject_create_and_add("gids", a->port);
	if (!a->gids)
		err = -ENOMEM;
	for (i = 0; !err && i <= f->num_vfs; i++)
		err = add_entry(a, f, i);
	if (err)
		sim_alias_del(ib);
	return err;
}
