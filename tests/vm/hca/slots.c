// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters per PCI address, and our files in debugfs:
 *   ibsim/mlx5_core/set                rules (write to add, read to list)
 *   ibsim/mlx5_core/counters           sums over all functions
 *   ibsim/mlx5_core/<BDF>/counters     one function; write anything to clear
 *   ibsim/mlx5_core/rtnl               1 holds RTNL, 0 gives it back
 *   ibsim/mlx5_core/<BDF>/device_lock  the same for the device's lock
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "sim.h"

static LIST_HEAD(slots);
static DEFINE_MUTEX(slots_lock);
static struct dentry *root;
static struct sim_hold rtnl;

#define SIM_COUNTER_NAME(name) #name,
static const char * const names[] = { SIM_COUNTERS(SIM_COUNTER_NAME) };

static int slot_show(struct seq_file *m, void *unused)
{
	struct sim_slot *slot = m->private;
	int i;

	for (i = 0; i < SIM_C_NR; i++)
		seq_printf(m, "%s %ld\n", names[i],
			   atomic_long_read(&slot->counter[i]));
	return 0;
}

static int slot_open(struct inode *inode, struct file *file)
{
	return single_open(file, slot_show, inode->i_private);
}

static ssize_t slot_clear(struct file *file, const char __user *buf,
			  size_t len, loff_t *pos)
{
	struct sim_slot *slot = file_inode(file)->i_private;
	int i;

	for (i = 0; i < SIM_C_NR; i++)
		atomic_long_set(&slot->counter[i], 0);
	return len;
}

static const struct file_operations slot_fops = {
	.open = slot_open,
	.read = seq_read,
	.write = slot_clear,
	.llseek = seq_lseek,
	.release = single_release,
};

static int total_show(struct seq_file *m, void *unused)
{
	struct sim_slot *slot;
	int i;

	mutex_lock(&slots_lock);
	for (i = 0; i < SIM_C_NR; i++) {
		long sum = 0;

		list_for_each_entry(slot, &slots, node)
			sum += atomic_long_read(&slot->counter[i]);
		seq_printf(m, "%s %ld\n", names[i], sum);
	}
	mutex_unlock(&slots_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(total);

static int set_show(struct seq_file *m, void *unused)
{
	sim_knobs_show(m);
	return 0;
}

static int set_open(struct inode *inode, struct file *file)
{
	return single_open(file, set_show, NULL);
}

static ssize_t set_write(struct file *file, const char __user *buf, size_t len,
			 loff_t *pos)
{
	char *text;
	int err;

	if (len > PAGE_SIZE)
		return -E2BIG;
	text = memdup_user_nul(buf, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	err = sim_knobs_add(text);
	kfree(text);
	if (err)
		return err;
	sim_knobs_changed();
	sim_event_all();
	return len;
}

static const struct file_operations set_fops = {
	.open = set_open,
	.read = seq_read,
	.write = set_write,
	.llseek = seq_lseek,
	.release = single_release,
};

struct sim_slot *sim_slot_get(struct pci_dev *pdev)
{
	struct sim_slot *slot;

	mutex_lock(&slots_lock);
	list_for_each_entry(slot, &slots, node)
		if (!strcmp(slot->bdf, pci_name(pdev)))
			goto out;
	slot = kzalloc(sizeof(*slot), GFP_KERNEL);
	if (!slot)
		goto out;
	strscpy(slot->bdf, pci_name(pdev), sizeof(slot->bdf));
	list_add_tail(&slot->node, &slots);
	slot->dir = debugfs_create_dir(slot->bdf, root);
	debugfs_create_file("counters", 0600, slot->dir, slot, &slot_fops);
	sim_hold_init(&slot->device_lock, "device_lock", slot->bdf, slot->dir);
out:
	mutex_unlock(&slots_lock);
	return slot;
}

void sim_slots_init(void)
{
	/* ibsim/ is shared by all our modules and left behind, empty. */
	struct dentry *top = debugfs_lookup("ibsim", NULL);

	if (!top)
		top = dget(debugfs_create_dir("ibsim", NULL));
	root = debugfs_create_dir(SIM_CORE, top);
	dput(top);
	debugfs_create_file("set", 0600, root, NULL, &set_fops);
	debugfs_create_file("counters", 0400, root, NULL, &total_fops);
	sim_hold_init(&rtnl, "rtnl", NULL, root);
}

void sim_slots_free(void)
{
	struct sim_slot *slot, *next;

	debugfs_remove_recursive(root);
	sim_hold_end(&rtnl);
	list_for_each_entry_safe(slot, next, &slots, node) {
		sim_hold_end(&slot->device_lock);
		kfree(slot);
	}
}
