// SPDX-License-Identifier: GPL-2.0-only
/*
 * What tests read, under /sys/kernel/debug/ibcard: of each function its
 * counters, its commands by name and what its driver holds.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "card.h"

static struct dentry *top;

#define COUNTER_NAME(name) #name,
static const char * const counter_names[] = { CARD_COUNTERS(COUNTER_NAME) };

#define NAMED(op) case MLX5_CMD_OP_##op: return #op;

/* Those that the drivers send to a card of this kind, and a few more. */
const char *opcode_name(u16 opcode)
{
	switch (opcode) {
	NAMED(QUERY_HCA_CAP)
	NAMED(QUERY_ADAPTER)
	NAMED(INIT_HCA)
	NAMED(TEARDOWN_HCA)
	NAMED(ENABLE_HCA)
	NAMED(DISABLE_HCA)
	NAMED(QUERY_PAGES)
	NAMED(MANAGE_PAGES)
	NAMED(SET_HCA_CAP)
	NAMED(QUERY_ISSI)
	NAMED(SET_ISSI)
	NAMED(SET_DRIVER_VERSION)
	NAMED(CREATE_MKEY)
	NAMED(QUERY_MKEY)
	NAMED(DESTROY_MKEY)
	NAMED(QUERY_SPECIAL_CONTEXTS)
	NAMED(CREATE_EQ)
	NAMED(DESTROY_EQ)
	NAMED(QUERY_EQ)
	NAMED(CREATE_CQ)
	NAMED(DESTROY_CQ)
	NAMED(QUERY_CQ)
	NAMED(MODIFY_CQ)
	NAMED(CREATE_QP)
	NAMED(DESTROY_QP)
	NAMED(RST2INIT_QP)
	NAMED(INIT2RTR_QP)
	NAMED(RTR2RTS_QP)
	NAMED(RTS2RTS_QP)
	NAMED(2ERR_QP)
	NAMED(2RST_QP)
	NAMED(QUERY_QP)
	NAMED(INIT2INIT_QP)
	NAMED(MAD_IFC)
	NAMED(CREATE_SRQ)
	NAMED(DESTROY_SRQ)
	NAMED(CREATE_XRC_SRQ)
	NAMED(DESTROY_XRC_SRQ)
	NAMED(QUERY_XRC_SRQ)
	NAMED(QUERY_VPORT_STATE)
	NAMED(MODIFY_VPORT_STATE)
	NAMED(QUERY_NIC_VPORT_CONTEXT)
	NAMED(MODIFY_NIC_VPORT_CONTEXT)
	NAMED(QUERY_HCA_VPORT_CONTEXT)
	NAMED(MODIFY_HCA_VPORT_CONTEXT)
	NAMED(QUERY_HCA_VPORT_GID)
	NAMED(QUERY_HCA_VPORT_PKEY)
	NAMED(QUERY_VNIC_ENV)
	NAMED(QUERY_VPORT_COUNTER)
	NAMED(ALLOC_Q_COUNTER)
	NAMED(DEALLOC_Q_COUNTER)
	NAMED(QUERY_Q_COUNTER)
	NAMED(ALLOC_PD)
	NAMED(DEALLOC_PD)
	NAMED(ALLOC_UAR)
	NAMED(DEALLOC_UAR)
	NAMED(ACCESS_REG)
	NAMED(ATTACH_TO_MCG)
	NAMED(DETACH_FROM_MCG)
	NAMED(NOP)
	NAMED(ALLOC_XRCD)
	NAMED(DEALLOC_XRCD)
	NAMED(ALLOC_TRANSPORT_DOMAIN)
	NAMED(DEALLOC_TRANSPORT_DOMAIN)
	NAMED(QUERY_CONG_STATUS)
	NAMED(CREATE_TIR)
	NAMED(MODIFY_TIR)
	NAMED(DESTROY_TIR)
	NAMED(CREATE_SQ)
	NAMED(MODIFY_SQ)
	NAMED(DESTROY_SQ)
	NAMED(CREATE_RQ)
	NAMED(MODIFY_RQ)
	NAMED(DESTROY_RQ)
	NAMED(CREATE_RMP)
	NAMED(DESTROY_RMP)
	NAMED(QUERY_RMP)
	NAMED(CREATE_TIS)
	NAMED(DESTROY_TIS)
	NAMED(CREATE_RQT)
	NAMED(MODIFY_RQT)
	NAMED(DESTROY_RQT)
	NAMED(SET_FLOW_TABLE_ROOT)
	NAMED(CREATE_FLOW_TABLE)
	NAMED(MODIFY_FLOW_TABLE)
	NAMED(DESTROY_FLOW_TABLE)
	NAMED(CREATE_FLOW_GROUP)
	NAMED(DESTROY_FLOW_GROUP)
	NAMED(SET_FLOW_TABLE_ENTRY)
	NAMED(DELETE_FLOW_TABLE_ENTRY)
	NAMED(CREATE_GENERAL_OBJECT)
	}
	return "OTHER";
}

static int counters_show(struct seq_file *m, void *unused)
{
	struct card_fn *fn = m->private;
	int i;

	for (i = 0; i < C_NR; i++)
		seq_printf(m, "%s %ld\n", counter_names[i],
			   atomic_long_read(&fn->counter[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static int commands_show(struct seq_file *m, void *unused)
{
	struct card_fn *fn = m->private;
	u32 op, other = 0;

	for (op = 0; op < MLX5_CMD_OP_MAX; op++) {
		u32 n = READ_ONCE(fn->by_opcode[op]);

		if (n && strcmp(opcode_name(op), "OTHER"))
			seq_printf(m, "%s %u\n", opcode_name(op), n);
		else
			other += n;
	}
	if (other)
		seq_printf(m, "OTHER %u\n", other);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(commands);

static int held_show(struct seq_file *m, void *unused)
{
	spin_lock(&card_lock);
	objects_show(m->private, m);
	spin_unlock(&card_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(held);

static int left_show(struct seq_file *m, void *unused)
{
	spin_lock(&card_lock);
	objects_show_left(m->private, m);
	spin_unlock(&card_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(left);

static int totals_show(struct seq_file *m, void *unused)
{
	struct card_fn *fn;
	unsigned int p;
	int i, c;

	for (c = 0; c < C_NR; c++) {
		long sum = 0;

		for (p = 0; p < card_pfs; p++)
			for_each_fn_of(card_pf[p], fn, i)
				sum += atomic_long_read(&fn->counter[c]);
		seq_printf(m, "%s %ld\n", counter_names[c], sum);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(totals);

static int set_show(struct seq_file *m, void *unused)
{
	knobs_show(m);
	return 0;
}

static int set_open(struct inode *inode, struct file *file)
{
	return single_open(file, set_show, NULL);
}

static ssize_t set_write(struct file *file, const char __user *from,
			 size_t len, loff_t *at)
{
	char *text = memdup_user_nul(from, len);
	int err;

	if (IS_ERR(text))
		return PTR_ERR(text);
	err = knobs_add(text);
	kfree(text);
	return err ?: len;
}

static const struct file_operations set_fops = {
	.owner = THIS_MODULE,
	.open = set_open,
	.read = seq_read,
	.write = set_write,
	.llseek = seq_lseek,
	.release = single_release,
};

void account_start(void)
{
	struct card_fn *fn;
	unsigned int p;
	int i;

	top = debugfs_create_dir(CARD_NAME, NULL);
	debugfs_create_file("set", 0600, top, NULL, &set_fops);
	debugfs_create_file("counters", 0400, top, NULL, &totals_fops);
	for (p = 0; p < card_pfs; p++)
		for_each_fn_of(card_pf[p], fn, i) {
			struct dentry *dir = debugfs_create_dir(fn->name, top);

			debugfs_create_file("counters", 0400, dir, fn, &counters_fops);
			debugfs_create_file("commands", 0400, dir, fn, &commands_fops);
			debugfs_create_file("held", 0400, dir, fn, &held_fops);
			debugfs_create_file("left", 0400, dir, fn, &left_fops);
		}
}

void account_stop(void)
{
	debugfs_remove_recursive(top);
	top = NULL;
}
