// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a PCI function gets its RDMA device: by an auxiliary device mlx5_core.rdma.N,
 * for which udev loads mlx5_ib; before Linux 5.11 by a call of mlx5_ib, which
 * mlx5_core asks the kernel to load, and under one lock for all functions.
 */
#include <linux/err.h>
#include <linux/idr.h>
#include <linux/kmod.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "sim.h"

#if SIM_OLDER

static LIST_HEAD(bound);
static const struct sim_interface *interface;
static DEFINE_MUTEX(interface_lock);	/* and of bound */

static void add(struct sim_func *f)
{
	f->rdma = interface->add(f);
	if (IS_ERR(f->rdma))
		f->rdma = NULL;
}

static void del(struct sim_func *f)
{
	if (f->rdma)
		interface->remove(f->rdma);
	f->rdma = NULL;
}

int sim_rdma_add(struct sim_func *f)
{
	mutex_lock(&interface_lock);
	list_add_tail(&f->bound, &bound);
	if (interface)
		add(f);
	mutex_unlock(&interface_lock);
	return request_module_nowait(SIM_FAMILY "_ib");
}

void sim_rdma_del(struct sim_func *f)
{
	mutex_lock(&interface_lock);
	list_del(&f->bound);
	del(f);
	mutex_unlock(&interface_lock);
}

void sim_register_interface(const struct sim_interface *i)
{
	struct sim_func *f;

	mutex_lock(&interface_lock);
	interface = i;
	list_for_each_entry(f, &bound, bound)
		add(f);
	mutex_unlock(&interface_lock);
}
EXPORT_SYMBOL_GPL(sim_register_interface);

void sim_unregister_interface(void)
{
	struct sim_func *f;

	mutex_lock(&interface_lock);
	list_for_each_entry(f, &bound, bound)
		del(f);
	interface = NULL;
	mutex_unlock(&interface_lock);
}
EXPORT_SYMBOL_GPL(sim_unregister_interface);

#else

static DEFINE_IDA(adev_ids);

static void adev_release(struct device *dev)
{
	struct auxiliary_device *adev = to_auxiliary_dev(dev);

	ida_free(&adev_ids, adev->id);
	kfree(container_of(adev, struct sim_adev, adev));
}

int sim_rdma_add(struct sim_func *f)
{
	struct sim_adev *sadev = kzalloc(sizeof(*sadev), GFP_KERNEL);
	int err, id;

	if (!sadev)
		return -ENOMEM;
	id = ida_alloc(&adev_ids, GFP_KERNEL);
	if (id < 0) {
		kfree(sadev);
		return id;
	}
	sadev->func = f;
	sadev->adev.id = id;
	sadev->adev.name = SIM_ADEV_NAME;
	sadev->adev.dev.parent = &f->pdev->dev;
	sadev->adev.dev.release = adev_release;
	err = auxiliary_device_init(&sadev->adev);
	if (err) {
		ida_free(&adev_ids, id);
		kfree(sadev);
		return err;
	}
	err = auxiliary_device_add(&sadev->adev);
	if (err)
		auxiliary_device_uninit(&sadev->adev);
	else
		f->adev = &sadev->adev;
	return err;
}

void sim_rdma_del(struct sim_func *f)
{
	if (!f->adev)
		return;
	auxiliary_device_delete(f->adev);
	auxiliary_device_uninit(f->adev);
}

#endif
