// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sick card: questions that its firmware leaves without an answer, and locks
 * that are not given back because their owner waits for such an answer.  Who
 * waits for any of it sleeps uninterruptibly until it is taken back; in mlx5 that
 * is up to 60 s for each command (wait_func(), mlx5/core/cmd.c).
 */
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <linux/wait.h>
#include "sim.h"

static DECLARE_WAIT_QUEUE_HEAD(knobs_changed);

void sim_knobs_changed(void)
{
	wake_up_all(&knobs_changed);
}

static bool is_silent(struct pci_dev *pdev, const char *knob,
		      unsigned long since)
{
	char value[SIM_VALUE_LEN];
	unsigned int ms;

	if (!sim_knob_str(pdev, knob, value))
		return false;
	if (!strcmp(value, SIM_EVER))
		return true;
	return !kstrtouint(value, 0, &ms) &&
	       time_before(jiffies, since + msecs_to_jiffies(ms));
}

/* In short sleeps, so that the kernel's watchdog has nothing to report. */
void sim_silence(struct sim_func *f, const char *knob)
{
	unsigned long since = jiffies;

	while (is_silent(f->pdev, knob, since))
		wait_event_timeout(knobs_changed,
				   !is_silent(f->pdev, knob, since), HZ / 20);
}
EXPORT_SYMBOL_GPL(sim_silence);

static int holder(void *data)
{
	struct sim_hold *h = data;

	if (h->pdev)
		device_lock(&h->pdev->dev);
	else
		rtnl_lock();
	complete(&h->held);
	set_current_state(TASK_UNINTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule_timeout(HZ);
		set_current_state(TASK_UNINTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	if (h->pdev)
		device_unlock(&h->pdev->dev);
	else
		rtnl_unlock();
	return 0;
}

static int take(struct sim_hold *h)
{
	unsigned int domain, bus, slot, function;
	struct task_struct *task;

	if (h->bdf) {
		if (sscanf(h->bdf, "%x:%x:%x.%u", &domain, &bus, &slot,
			   &function) != 4)
			return -EINVAL;
		h->pdev = pci_get_domain_bus_and_slot(domain, bus,
						      PCI_DEVFN(slot, function));
		if (!h->pdev)
			return -ENODEV;
	}
	init_completion(&h->held);
	task = kthread_run(holder, h, "ibsim_hold");
	if (IS_ERR(task)) {
		pci_dev_put(h->pdev);
		return PTR_ERR(task);
	}
	h->task = task;
	wait_for_completion(&h->held);
	return 0;
}

void sim_hold_end(struct sim_hold *h)
{
	if (!h->task)
		return;
	kthread_stop(h->task);
	h->task = NULL;
	pci_dev_put(h->pdev);
	h->pdev = NULL;
}

static int hold_get(void *data, u64 *held)
{
	struct sim_hold *h = data;

	mutex_lock(&h->mutex);
	*held = !!h->task;
	mutex_unlock(&h->mutex);
	return 0;
}

/* Returns once the lock is held, or given back. */
static int hold_set(void *data, u64 held)
{
	struct sim_hold *h = data;
	int err = 0;

	mutex_lock(&h->mutex);
	if (!held)
		sim_hold_end(h);
	else if (!h->task)
		err = take(h);
	mutex_unlock(&h->mutex);
	return err;
}

DEFINE_SIMPLE_ATTRIBUTE(hold_fops, hold_get, hold_set, "%llu\n");

void sim_hold_init(struct sim_hold *h, const char *name, const char *bdf,
		   struct dentry *dir)
{
	mutex_init(&h->mutex);
	h->bdf = bdf;
	debugfs_create_file(name, 0600, dir, h, &hold_fops);
}
